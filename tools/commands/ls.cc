// ls: prints block and tail records in the order of their chains, or conversations, newest first.
#include "tools/commands/ls.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/commands/store_view.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

void print_line(const Json& json, std::ostream& out) {
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

// "3 s", "12 min", "5 h", "8 d"; "-" when the time is not known.
std::string age(int64_t then_unix_us) {
  if (then_unix_us <= 0) return "-";
  const int64_t seconds = std::max<int64_t>(0, system_clock().unix_us() - then_unix_us) / 1'000'000;
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  if (seconds < 172'800) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / 86'400) + " d";
}

void print_block(const RecordRow& row, bool json, std::ostream& out) {
  const auto& [record, touch] = row;
  if (json) {
    print_line({{"hash", record.hash.hex()},
                {"parent", record.parent.hex()},
                {"namespace", record.name_space.hex()},
                {"scope", record.scope},
                {"kind", record.tail ? "tail" : "block"},
                {"position", record.position},
                {"tokens", record.tokens.size()},
                {"raw_bytes", record.raw_bytes()},
                {"stored_bytes", record.stored_bytes()},
                {"epoch", record.epoch},
                {"hits", touch.hits},
                {"last_use_unix_us", touch.last_use_unix_us}},
               out);
    return;
  }
  char line[160];
  std::snprintf(line, sizeof line, "%-16.16s  %-5s  %8u  %6zu  %12s  %8s  %5u\n",
                record.hash.hex().c_str(), record.tail ? "tail" : "block", record.position,
                record.tokens.size(), human_bytes(record.stored_bytes()).c_str(),
                age(touch.last_use_unix_us).c_str(), touch.hits);
  out << line;
}

Status list_blocks(const LsOptions& options, const StoreView& view, std::ostream& out) {
  EMBER_ASSIGN(DiskTier::Listing listing, view.disk->list());
  EMBER_ASSIGN(Conversations::TailListing tails, view.conversations->list_tails());
  std::vector<RecordRow> rows = std::move(listing.records);
  for (BlockRecord& record : tails.records) rows.emplace_back(std::move(record), TouchRecord{});
  sort_by_chain(rows);
  if (!options.json) {
    out << "hash              kind   position  tokens         bytes       age   hits\n";
  }
  const size_t shown = options.limit == 0 ? rows.size() : std::min(rows.size(), options.limit);
  for (size_t i = 0; i < shown; ++i) print_block(rows[i], options.json, out);
  if (!options.json && shown < rows.size()) {
    out << "and " << rows.size() - shown << " more (--limit 0 shows all)\n";
  }
  return {};
}

Status list_conversations(const LsOptions& options, const StoreView& view, std::ostream& out) {
  EMBER_ASSIGN(std::vector<Conversation> heads, view.conversations->list());
  if (!options.json) out << "conversation      turns  template     age\n";
  const size_t shown = options.limit == 0 ? heads.size() : std::min(heads.size(), options.limit);
  for (size_t i = 0; i < shown; ++i) {
    EMBER_ASSIGN(const Conversation whole, view.conversations->load(heads[i].id));
    if (options.json) {
      print_line({{"conversation", whole.id},
                  {"turns", whole.turns.size()},
                  {"template", whole.template_name},
                  {"namespace", whole.name_space.hex()},
                  {"created_unix_us", whole.created_unix_us},
                  {"updated_unix_us", whole.updated_unix_us}},
                 out);
      continue;
    }
    char line[160];
    std::snprintf(line, sizeof line, "%-16s  %5zu  %-11s  %s\n", whole.id.c_str(),
                  whole.turns.size(), whole.template_name.c_str(),
                  age(whole.updated_unix_us).c_str());
    out << line;
  }
  return {};
}

}  // namespace

Status run_ls(const LsOptions& options, std::ostream& out) {
  EMBER_ASSIGN(const StoreView view,
               StoreView::open(store_path_of(options.store), options.encryption));
  EMBER_TRY(options.conversations ? list_conversations(options, view, out)
                                  : list_blocks(options, view, out));
  out << std::flush;
  return {};
}

}  // namespace ember
