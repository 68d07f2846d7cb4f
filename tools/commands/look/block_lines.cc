// One block, one line.
#include "tools/commands/look/block_lines.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumnsBeforeText = 74;

// d h s r, a letter for each tier, a dot where the block is not: "d.s.".
std::string tier_letters(uint8_t tiers) {
  std::string letters = "dhsr";
  for (size_t i = 0; i < kTierCount; ++i) {
    if ((unsigned{tiers} >> i & 1u) == 0) letters[i] = '.';
  }
  return letters;
}

// What is out of the ordinary, in letters: see docs/cli.md.
std::string marks(const BlockNode& node) {
  std::string marks;
  if (node.damaged) marks += 'X';
  if (node.orphan) marks += 'U';
  if (!node.durable) marks += 'w';
  if (node.pinned) marks += 'p';
  if (node.leased) marks += 'L';
  return marks;
}

}  // namespace

std::string tiers_text(uint8_t tiers) {
  std::string text;
  for (size_t i = 0; i < kTierCount; ++i) {
    if ((unsigned{tiers} >> i & 1u) == 0) continue;
    if (!text.empty()) text += ' ';
    text += tier_name(static_cast<Tier>(i));
  }
  return text;
}

BlockLines::BlockLines(const BlockLinesOptions& options, CommandIo& io, StoreReader& reader)
    : options_(options),
      io_(io),
      reader_(reader),
      text_(reader),
      now_us_(system_clock().unix_us()) {}

void BlockLines::header() {
  if (options_.json) return;
  char line[120];
  std::snprintf(line, sizeof line, "%-16s  %-5s %8s %6s %10s %7s %5s %-4s %-3s", "hash", "kind",
                "position", "tokens", "bytes", "age", "hits", "tier", "");
  io_.out << (io_.colour ? "\033[1m" : "") << line << (options_.text ? "text" : "")
          << (io_.colour ? "\033[0m" : "") << '\n';
}

Status BlockLines::print(const BlockTree& tree, const BlockNode& node) {
  BlockRecord record;
  if (options_.text) {
    EMBER_ASSIGN(std::optional<BlockRecord> found, reader_.record(node.hash));
    if (found) record = std::move(*found);
  }
  print(tree, node, record);
  return {};
}

void BlockLines::print(const BlockTree& tree, const BlockNode& node, const BlockRecord& record) {
  const NamespaceHash& name_space = tree.name_spaces()[node.name_space];
  std::optional<std::string> text;
  if (options_.text) text = text_.of(name_space, record.tokens);
  if (options_.json) {
    Json json = {{"hash", node.hash.hex()},
                 {"parent", node.parent_hash.hex()},
                 {"namespace", name_space.hex()},
                 {"scope", tree.scopes()[node.scope]},
                 {"kind", node.tail ? "tail" : "block"},
                 {"position", node.position},
                 {"tokens", node.tokens},
                 {"raw_bytes", node.raw_bytes},
                 {"stored_bytes", node.stored_bytes},
                 {"hits", node.hits},
                 {"last_use_unix_us", node.last_use_unix_us},
                 {"tiers", Json::array()},
                 {"durable", node.durable},
                 {"pinned", node.pinned},
                 {"leased", node.leased},
                 {"damaged", node.damaged},
                 {"unreachable", node.orphan}};
    for (size_t i = 0; i < kTierCount; ++i) {
      if ((node.tiers >> i & 1u) != 0) json["tiers"].push_back(tier_name(static_cast<Tier>(i)));
    }
    if (text) json["text"] = valid_utf8(*text);
    io_.out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    return;
  }
  char line[160];
  std::snprintf(line, sizeof line, "%-16.16s  %-5s %8u %6u %10s %7s %5u %-4s %-3s",
                node.hash.hex().c_str(), node.tail ? "tail" : "block", node.position, node.tokens,
                human_bytes(node.stored_bytes).c_str(),
                age_text(node.last_use_unix_us, now_us_).c_str(), node.hits,
                tier_letters(node.tiers).c_str(), marks(node).c_str());
  io_.out << line;
  if (text && io_.width > kColumnsBeforeText) {
    io_.out << one_line(*text, io_.width - kColumnsBeforeText);
  }
  io_.out << '\n';
}

void BlockLines::footer(uint64_t left_out, uint64_t unreadable) {
  if (options_.json) return;
  if (left_out > 0) io_.out << "and " << grouped(left_out) << " more (--limit 0 shows all)\n";
  if (unreadable > 0) {
    io_.out << counted(unreadable, "record") << " cannot be read (emberkv verify says more)\n";
  }
}

}  // namespace ember
