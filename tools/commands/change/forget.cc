// forget: opens the store for changes, forgets, and says what became of the bytes.
#include "tools/commands/change/forget.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/text_form.h"

namespace ember {
namespace {

// Nobody talks meanwhile in what goes: a turn would write a part of it again.
Result<std::vector<ConversationClaim>> claim_talks(const ForgetRequest& request,
                                                   StoreReader& reader, CommandContext& context) {
  std::vector<ConversationClaim> claims;
  EMBER_ASSIGN(const std::vector<Conversation> heads, reader.conversations().list());
  for (const Conversation& head : heads) {
    if (!request.all && head.scope != request.scope) continue;
    EMBER_ASSIGN(ConversationClaim claim, context.claim(head.id));
    claims.push_back(std::move(claim));
  }
  return claims;
}

Result<ForgetReport> forget(const ForgetOptions& options, CommandContext& context) {
  // At rest looking needs no lock.
  if (options.request.dry_run && !context.open_live(options.store).ok()) {
    EMBER_ASSIGN(const RestingParts view,
                 RestingParts::open(options.store.resolved(), options.store.encryption));
    return forget_scope(view.directory.get(), *view.disk, view.conversations.get(),
                        options.request);
  }
  EMBER_ASSIGN(const std::shared_ptr<StoreEditor> editor,
               context.open_editor(options.store, options.disk_bytes));
  EMBER_ASSIGN(const std::vector<ConversationClaim> claims,
               claim_talks(options.request, editor->reader(), context));
  return editor->forget(options.request);
}

std::string fate_of_the_bytes(const ForgetReport& report, const ForgetRequest& request) {
  if (request.dry_run) return "nothing was changed";
  if (report.bytes_gone) return "no file of the store holds a byte of it any more";
  if (!report.reason.empty()) return "its bytes are still there: " + report.reason;
  const std::string key = report.keys > 0 ? "its key is destroyed, so nobody can read it; " : "";
  return key + "its bytes go when " + counted(report.epochs, "epoch") +
         " of the disk are retired to make room, or at once with --now";
}

void print_json(const ForgetReport& report, const ForgetRequest& request, std::ostream& out) {
  nlohmann::ordered_json json = {{"scope", request.all ? nullptr : nlohmann::json(request.scope)},
                                 {"dry_run", request.dry_run},
                                 {"blocks", report.blocks},
                                 {"blocks_below", report.blocks_below},
                                 {"tails", report.tails},
                                 {"conversations", report.conversations},
                                 {"stored_bytes", report.stored_bytes},
                                 {"keys_destroyed", report.keys},
                                 {"epochs", report.epochs},
                                 {"bytes_gone", report.bytes_gone}};
  if (!report.reason.empty()) json["reason"] = report.reason;
  out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

void print_text(const ForgetReport& report, const ForgetRequest& request, std::ostream& out) {
  out << (request.dry_run ? "would forget " : "forgot ") << counted(report.blocks, "block") << " ("
      << human_bytes(report.stored_bytes) << ")";
  if (report.blocks_below > 0) {
    out << ", " << grouped(report.blocks_below) << " of others below them";
  }
  out << ", " << counted(report.tails, "tail") << ", "
      << counted(report.conversations, "conversation") << "; "
      << fate_of_the_bytes(report, request) << std::endl;
}

}  // namespace

Result<int> run_forget(const ForgetOptions& options, CommandContext& context) {
  EMBER_ASSIGN(const ForgetReport report, forget(options, context));
  if (options.json) {
    print_json(report, options.request, context.io.out);
  } else {
    print_text(report, options.request, context.io.out);
  }
  return report.reason.empty() ? kExitOk : kExitFailed;
}

}  // namespace ember
