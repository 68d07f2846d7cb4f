// Listing and clearing what is kept aside.
#include "tools/commands/change/quarantine.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "store/quarantine.h"
#include "store/taken_aside.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;

// A record's file, or a database's.
struct Kept {
  std::string file;
  std::string what;  // "block", "tail", "file"
  std::string hash;  // of a record
  uint64_t bytes = 0;
  int64_t unix_us = 0;
  std::string reason;
};

// Needs no database that opens: that is when one looks here.
Result<std::vector<Kept>> kept_in(const std::string& path) {
  EMBER_TRY(StoreDirectory::stored_version(path));
  std::vector<Kept> all;
  const auto quarantine = Quarantine::open(path + "/quarantine", UINT64_MAX, true);
  for (const QuarantineRow& row : quarantine->list()) {
    all.push_back({row.file, row.tail ? "tail" : "block", row.hash.hex(), row.bytes, row.unix_us,
                   row.reason});
  }
  for (const TakenAside& file : list_taken_aside(path)) {
    all.push_back({file.file, "file", "", file.bytes, file.unix_us,
                   "taken aside by a repair as it was found"});
  }
  return all;
}

void print_line(const Json& json, std::ostream& out) {
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

Json json_of(const Kept& kept) {
  Json json = {{"file", kept.file}, {"what", kept.what}};
  if (!kept.hash.empty()) json["hash"] = kept.hash;
  json["bytes"] = kept.bytes;
  json["unix_us"] = kept.unix_us;
  json["reason"] = kept.reason;
  return json;
}

void print_table(const std::vector<Kept>& all, CommandIo& io) {
  const int64_t now_us = system_clock().unix_us();
  TextTable table({{"file"}, {"what"}, {"bytes", true}, {"age", true}, {"reason"}});
  uint64_t bytes = 0;
  for (const Kept& kept : all) {
    bytes += kept.bytes;
    table.add({kept.file, kept.what, human_bytes(kept.bytes), age_text(kept.unix_us, now_us),
               one_line(kept.reason, 200)});
  }
  if (!all.empty()) io.out << table.text(io.width, io.colour);
  io.out << grouped(all.size()) << " kept aside, " << human_bytes(bytes) << '\n' << std::flush;
}

}  // namespace

Result<int> run_list_quarantine(const ListQuarantineOptions& options, CommandContext& context) {
  EMBER_ASSIGN(const std::vector<Kept> all, kept_in(context.path_of(options.store)));
  if (!options.json) {
    print_table(all, context.io);
    return kExitOk;
  }
  for (const Kept& kept : all) print_line(json_of(kept), context.io.out);
  context.io.out << std::flush;
  return kExitOk;
}

Result<int> run_show_quarantine(const ShowQuarantineOptions& options, CommandContext& context) {
  CommandIo& io = context.io;
  EMBER_ASSIGN(const std::vector<Kept> all, kept_in(context.path_of(options.store)));
  const auto found = std::find_if(all.begin(), all.end(), [&options](const Kept& kept) {
    return kept.file == options.file || (!kept.hash.empty() && kept.hash == options.file);
  });
  if (found == all.end()) {
    return Error{ErrorCode::kInvalidArgument,
                 options.file + ": nothing of this name is kept aside (emberkv quarantine list)"};
  }
  Json json = json_of(*found);
  const std::string path = context.path_of(options.store);
  const std::string folder = path + "/quarantine";
  if (found->what == "file") {
    json["path"] = taken_aside_folder(path) + "/" + found->file;
  } else {
    json["path"] = folder + "/" + found->file;
    EMBER_ASSIGN(const QuarantineEntry entry, read_quarantine_file(folder + "/" + found->file));
    json["position"] = entry.position;
    json["record_bytes"] = entry.found.record.size();
    json["groups"] = Json::array();
    for (const std::optional<std::string>& group : entry.found.groups) {
      json["groups"].push_back(group ? Json(group->size()) : Json(nullptr));
    }
  }
  if (options.json) {
    print_line(json, io.out);
  } else {
    for (const auto& [name, value] : json.items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      io.out << name << ": " << printable(text) << '\n';
    }
  }
  io.out << std::flush;
  return kExitOk;
}

Result<int> run_clear_quarantine(const ClearQuarantineOptions& options, CommandContext& context) {
  CommandIo& io = context.io;
  if (!can_consent(options.consent, io)) return kExitUsage;
  if (!options.consent.dry_run) EMBER_TRY(context.may_change(options.store));
  EMBER_ASSIGN(std::vector<Kept> all, kept_in(context.path_of(options.store)));
  for (const std::string& file : options.files) {
    const bool known =
        std::any_of(all.begin(), all.end(), [&file](const Kept& one) { return one.file == file; });
    if (!known) {
      return Error{ErrorCode::kInvalidArgument,
                   file + ": nothing of this name is kept aside (emberkv quarantine list)"};
    }
  }
  std::erase_if(all, [&options](const Kept& kept) {
    return !options.files.empty() && std::find(options.files.begin(), options.files.end(),
                                               kept.file) == options.files.end();
  });
  uint64_t bytes = 0;
  for (const Kept& kept : all) bytes += kept.bytes;
  const bool dry_run = options.consent.dry_run;
  if (!options.json && (dry_run || !options.consent.yes)) print_table(all, io);
  if (!dry_run && !all.empty()) {
    if (!confirm(options.consent, "remove these for good", io)) return kExitFailed;
    std::shared_ptr<StoreEditor> editor;
    for (const Kept& kept : all) {
      if (kept.what == "file") {
        EMBER_TRY(remove_taken_aside(context.path_of(options.store), kept.file));
        continue;
      }
      if (editor == nullptr) {
        EMBER_ASSIGN(editor, context.open_editor(options.store, 0));
      }
      EMBER_TRY(editor->drop_quarantined(kept.file));
    }
  }
  if (options.json) {
    print_line({{"dry_run", dry_run}, {"files", all.size()}, {"bytes", bytes}}, io.out);
    io.out << std::flush;
  } else {
    io.out << (dry_run ? "would remove " : "removed ") << counted(all.size(), "file") << ", "
           << human_bytes(bytes) << std::endl;
  }
  return kExitOk;
}

}  // namespace ember
