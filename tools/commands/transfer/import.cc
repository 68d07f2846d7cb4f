// import: proves, reserves, enters, and says what came.
#include "tools/commands/transfer/import.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "base/bytes.h"
#include "engine/text/text_file.h"
#include "store/disk_plan.h"
#include "store/edit/live_intake.h"
#include "store/ram_plan.h"
#include "store/tenants.h"
#include "store/transfer/import.h"
#include "store/transfer/resting_intake.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/progress.h"
#include "tools/commands/text_form.h"
#include "tools/commands/transfer/import_source.h"

namespace ember {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Status check_scope(const std::string& name) {
  return name == kSharedScopeName ? Status() : check_tenant_name(name);
}

Result<ScopeMap> scope_map(const std::vector<std::string>& pairs) {
  ScopeMap scopes;
  for (const std::string& pair : pairs) {
    const size_t sign = pair.find('=');
    if (sign == std::string::npos) {
      return Error{ErrorCode::kInvalidArgument,
                   "--scope " + pair + ": expected FROM=TO, a scope of the file and its name here"};
    }
    const std::string from = pair.substr(0, sign);
    const std::string to = pair.substr(sign + 1);
    EMBER_TRY(check_scope(from));
    EMBER_TRY(check_scope(to));
    if (!scopes.emplace(from, to).second) {
      return Error{ErrorCode::kInvalidArgument, "--scope " + from + ": is given twice"};
    }
  }
  return scopes;
}

// The digest of a tokenizer is over the plain bytes of its files (engine/runtime/namespace_entry).
Status check_tokenizer(const BlockHash& digest, const NamespaceEntry::Files& files) {
  std::string all;
  for (const auto& [name, bytes] : files) {
    EMBER_ASSIGN(const std::string text, unpack_text(bytes, name));
    append_value(all, static_cast<uint64_t>(text.size()));
    all += text;
  }
  if (digest128(as_bytes(all)) == digest) return {};
  return {ErrorCode::kCorruption, "tokenizer " + digest.hex() + ": its files are those of another"};
}

// Nothing where there is no store yet, at rest, or where its making was cut short.
Result<std::shared_ptr<StoreReader>> open_known(const ImportOptions& options,
                                                CommandContext& context, bool held) {
  if (!held && nothing_is_stored(options.store.resolved())) return std::shared_ptr<StoreReader>();
  return context.open_reader(options.store);
}

// The store's folder, or the nearest one above it that is there.
std::string nearest_folder(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error);
  while (!fs::is_directory(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder.string();
}

Json counts_json(const IntakeCounts& counts) {
  return {{"blocks", counts.blocks},
          {"tails", counts.tails},
          {"conversations", counts.conversations},
          {"stored_bytes", counts.stored_bytes}};
}

void print_report(const ImportReport& report, const ImportOptions& options, CommandIo& io) {
  for (const std::string& remark : report.remarks) {
    io.err << "emberkv: warning: " << one_line(remark, 1000) << std::endl;
  }
  if (options.json) {
    io.out << Json({{"dry_run", options.dry_run},
                    {"new", counts_json(report.fresh)},
                    {"known", counts_json(report.known)},
                    {"differing", report.differing},
                    {"newer_here", report.newer_here},
                    {"namespaces", report.name_spaces},
                    {"left_out_by_export", report.left_out}})
                  .dump(-1, ' ', false, Json::error_handler_t::replace)
           << std::endl;
    return;
  }
  const auto words = [](const IntakeCounts& counts) {
    return counted(counts.blocks, "block") + ", " + counted(counts.tails, "tail") + " and " +
           counted(counts.conversations, "conversation");
  };
  io.out << (options.dry_run ? "would import " : "imported ") << words(report.fresh) << " ("
         << human_bytes(report.fresh.stored_bytes) << ")";
  if (!(report.known == IntakeCounts{})) io.out << "; there already: " << words(report.known);
  if (report.differing > 0) {
    io.out << "; with other latents, which stay: " << counted(report.differing, "block");
  }
  if (report.newer_here > 0) {
    io.out << "; gone on here, and left so: " << counted(report.newer_here, "conversation");
  }
  if (report.left_out > 0) {
    io.out << "; the export lacks " << grouped(report.left_out) << " of what it was to hold";
  }
  io.out << std::endl;
}

// What may lie there, before anything is opened for writing.
struct Room {
  uint64_t limit_bytes = 0;   // of the store
  uint64_t blocks_bytes = 0;  // of those, for its blocks
  uint64_t file_bytes = 0;    // that its blocks take now
  uint64_t live_bytes = 0;    // of those, what blocks hold

  uint64_t most_spooled() const { return limit_bytes - std::min(limit_bytes, file_bytes); }
  Status check(uint64_t more_bytes) const {
    if (more_bytes <= blocks_bytes - std::min(blocks_bytes, live_bytes)) return {};
    return {ErrorCode::kCapacity, "it brings " + human_bytes(more_bytes) + ", and of the " +
                                      human_bytes(blocks_bytes) + " for blocks in a store of " +
                                      human_bytes(limit_bytes) + " " + human_bytes(live_bytes) +
                                      " are in use"};
  }
};

Result<Room> room_of(const ImportOptions& options, StoreReader* known) {
  Room room;
  const std::optional<BlockCacheStats> live = known == nullptr ? std::nullopt : known->live_stats();
  room.limit_bytes = live ? live->disk_limit_bytes : options.disk_bytes;
  if (room.limit_bytes == 0) {
    EMBER_ASSIGN(room.limit_bytes, default_disk_bytes(options.store.resolved()));
  }
  EMBER_ASSIGN(const DiskPlan plan, plan_disk(room.limit_bytes));
  room.blocks_bytes = plan.blocks_bytes;
  if (known == nullptr) return room;
  room.file_bytes = known->disk_stats().file_bytes;
  for (const DiskTier::EpochUse& epoch : known->epochs()) room.live_bytes += epoch.live_bytes;
  return room;
}

Result<ImportReport> enter_live(const LiveCache& live, CommandContext& context, Importer& importer,
                                ImportSource& source, const ImportReport& plan) {
  LiveEditorCalls calls{.call = live.call, .wait_for = live.wait_for, .cancelled = [&context] {
                          return context.io.stopped();
                        }};
  const auto is_open = [claims = context.claims](const std::string& conversation) {
    return claims != nullptr && claims->taken(conversation);
  };
  EMBER_ASSIGN(const std::unique_ptr<RecordIntake> intake,
               open_live_intake(*live.cache, std::move(calls), is_open));
  EMBER_TRY(intake->reserve(plan.fresh.stored_bytes));
  EMBER_ASSIGN(ByteSource again, source.again());
  return importer.enter(std::move(again), *intake);
}

Result<ImportReport> enter_at_rest(const ImportOptions& options, Importer& importer,
                                   ImportSource& source, const ImportReport& plan) {
  const std::string path = options.store.resolved();
  EMBER_ASSIGN(const std::unique_ptr<RestingIntake> intake,
               RestingIntake::open(path, options.disk_bytes, options.store.encryption));
  const auto enter = [&]() -> Result<ImportReport> {
    EMBER_TRY(intake->reserve(plan.fresh.stored_bytes));
    EMBER_ASSIGN(ByteSource again, source.again());
    return importer.enter(std::move(again), *intake);
  };
  Result<ImportReport> entered = enter();
  if (!entered.ok()) intake->take_back();
  return entered;
}

}  // namespace

Result<int> run_import(const ImportOptions& options, CommandContext& context) {
  CommandIo& io = context.io;
  if (!options.dry_run) EMBER_TRY(context.may_change(options.store));
  EMBER_ASSIGN(ScopeMap scopes, scope_map(options.scopes));
  const Result<LiveCache> live = context.open_live(options.store);
  EMBER_ASSIGN(const std::shared_ptr<StoreReader> known, open_known(options, context, live.ok()));
  EMBER_ASSIGN(const Room room, room_of(options, known.get()));
  const std::string path = known == nullptr ? options.store.resolved() : known->facts().path;
  EMBER_ASSIGN(const std::unique_ptr<ImportSource> source,
               ImportSource::open(options.file, io, nearest_folder(path), room.most_spooled()));
  Progress progress(io);
  const char* doing = "proving";
  const auto show = [&](uint64_t done, uint64_t planned) {
    progress.show(doing,
                  std::min(1.0, static_cast<double>(done) / static_cast<double>(planned + 1)));
    return !io.stopped();
  };
  Importer importer(
      {.scopes = std::move(scopes), .check_tokenizer = check_tokenizer, .progress = show},
      known.get());
  const auto named = [&options](const Error& error) {
    return Error{error.code, options.file + ": " + error.message};
  };
  const Result<ImportReport> plan = importer.prove(source->first());
  if (!plan.ok()) return named(plan.error());
  const Status fits = room.check(plan->fresh.stored_bytes);
  if (!fits.ok()) return named(fits.error());
  if (options.dry_run) {
    progress.clear();
    print_report(*plan, options, io);
    return kExitOk;
  }
  doing = "entering";
  EMBER_ASSIGN(ImportReport entered, live.ok()
                                         ? enter_live(*live, context, importer, *source, *plan)
                                         : enter_at_rest(options, importer, *source, *plan));
  entered.differing = plan->differing;
  progress.clear();
  print_report(entered, options, io);
  return kExitOk;
}

}  // namespace ember
