// Flags of the inspection commands.
#include "tools/inspection_commands.h"

#include <map>
#include <utility>

#include "tools/commands/change/conversation_edits.h"
#include "tools/commands/change/forget.h"
#include "tools/commands/change/gc.h"
#include "tools/commands/change/holder_commands.h"
#include "tools/commands/change/quarantine.h"
#include "tools/commands/change/repair.h"
#include "tools/commands/change/rm.h"
#include "tools/commands/command_context.h"
#include "tools/commands/exit_code.h"
#include "tools/commands/look/conversations.h"
#include "tools/commands/look/diff.h"
#include "tools/commands/look/du.h"
#include "tools/commands/look/explain.h"
#include "tools/commands/look/ls.h"
#include "tools/commands/look/show.h"
#include "tools/commands/look/simulate.h"
#include "tools/commands/look/stat.h"
#include "tools/commands/look/top.h"
#include "tools/commands/look/tree.h"
#include "tools/commands/look/verify.h"
#include "tools/commands/messages.h"
#include "tools/commands/talk/engine_difference.h"
#include "tools/commands/transfer/export.h"
#include "tools/commands/transfer/import.h"
#include "tools/help_form.h"
#include "tools/model_flags.h"
#include "tools/prompt_flags.h"
#include "tools/store_flags.h"

namespace ember {

struct InspectionOptions {
  StatOptions stat;
  LsOptions ls;
  TreeOptions tree;
  ShowOptions show;
  DuOptions du;
  DiffOptions diff;
  VerifyOptions verify;
  ExplainOptions explain;
  PinOptions pin;
  UnpinOptions unpin;
  SnapshotOptions snapshot;
  ListConversationsOptions list_conversations;
  ShowConversationOptions show_conversation;
  ExportOptions export_options;
  ImportOptions import_options;
  ExportConversationOptions export_conversation;
  RemoveConversationsOptions remove_conversations;
  BranchConversationOptions branch_conversation;
  RmOptions rm;
  ForgetOptions forget;
  GcOptions gc;
  RepairOptions repair;
  ListQuarantineOptions list_quarantine;
  ShowQuarantineOptions show_quarantine;
  ClearQuarantineOptions clear_quarantine;
  SimulateOptions simulate;
  TopOptions top;
};

namespace {

constexpr const char* kWhich = "Which blocks";

void add_limit(CLI::App& app, uint64_t& limit) {
  app.add_option("--limit", limit, "Most lines; 0: all")
      ->capture_default_str()
      ->check(whole_number(0));
}

template <typename Value>
void add_choice(CLI::App& app, const std::string& flag, Value& target,
                const std::map<std::string, Value>& names, const std::string& help) {
  std::vector<std::string> words;
  for (const auto& [name, value] : names) words.push_back(name);
  app.add_option_function<std::string>(
         flag, [&target, names](const std::string& name) { target = names.at(name); }, help)
      ->check(CLI::IsMember(words))
      ->type_name("NAME");
}

void add_place(CLI::App& app, BlockFilter& filter) {
  app.add_option("--prefix", filter.prefix, "A block and what hangs under it, by its hash's digits")
      ->type_name("HASH")
      ->group(kWhich);
  app.add_option("--namespace", filter.name_space, "Of one namespace, by its digits")
      ->type_name("HASH")
      ->group(kWhich);
  app.add_option("--scope", filter.scope, "Of one scope: shared, or a tenant's name")
      ->type_name("NAME")
      ->group(kWhich);
}

void add_consent(CLI::App& app, Consent& consent) {
  app.add_flag("--yes", consent.yes, "Do it without asking");
  app.add_flag("--dry-run", consent.dry_run, "Only say what would be done, and change nothing");
}

void add_filter(CLI::App& app, BlockFilter& filter) {
  add_place(app, filter);
  app.add_option_function<std::string>(
         "--tier",
         [&filter](const std::string& name) {
           for (size_t i = 0; i < kTierCount; ++i) {
             if (name == tier_name(static_cast<Tier>(i))) filter.tier = static_cast<Tier>(i);
           }
         },
         "That lie in this tier: device, host, disk or remote")
      ->check(CLI::IsMember({"device", "host", "disk", "remote"}))
      ->group(kWhich);
  app.add_option("--min-hits", filter.least_hits, "Used at least so often")
      ->check(whole_number(0))
      ->group(kWhich);
  app.add_option("--max-hits", filter.most_hits, "Used at most so often")
      ->check(whole_number(0))
      ->group(kWhich);
  add_time(app, "--unused-for", filter.unused_us, "That nobody has used for so long")
      ->group(kWhich);
  add_time(app, "--used-within", filter.used_us, "Used within this time")->group(kWhich);
  app.add_flag("--tails", filter.tails_only, "Unfinished blocks at the ends of talks")
      ->group(kWhich);
  app.add_flag("--blocks", filter.blocks_only, "Full blocks")->group(kWhich);
  app.add_flag("--pinned", filter.pinned, "Pinned ones")->group(kWhich);
  app.add_flag("--leased", filter.leased, "In use by a running request")->group(kWhich);
  app.add_flag("--damaged", filter.damaged, "Holes: their bytes were proven wrong")->group(kWhich);
  app.add_flag("--unreachable", filter.unreachable, "Whose parent is not there")->group(kWhich);
}

}  // namespace

InspectionCommands::InspectionCommands(CLI::App& root)
    : options_(std::make_unique<InspectionOptions>()) {
  define_looks(root);
  define_lists(root);
  define_explain(root);
  define_holders(root);
  define_conversations(root);
  define_transfers(root);
  define_changes(root);
  define_mending(root);
  define_simulate(root);
  define_top(root);
}

InspectionCommands::~InspectionCommands() = default;

CLI::App* InspectionCommands::add_change(CLI::App& parent, const std::string& name,
                                         const std::string& help, StoreChoice& store, bool& json,
                                         const std::string& json_help) {
  CLI::App* app = parent.add_subcommand(name, help);
  add_store(*app, store.path, store.encryption);
  app->add_flag("--json", json, json_help);
  return app;
}

CLI::App* InspectionCommands::add(CLI::App& parent, const std::string& name,
                                  const std::string& help, StoreChoice& store, bool& json,
                                  const std::string& json_help) {
  CLI::App* app = add_change(parent, name, help, store, json, json_help);
  app->add_flag("--read-only", store.read_only,
                "Beside a process that holds the store and does not answer: as of its last flush");
  return app;
}

template <typename Options>
void InspectionCommands::on_parse(CLI::App* app, Options& options,
                                  Result<int> (*execute)(const Options&, CommandContext&),
                                  bool here) {
  const bool looks = app->get_option_no_throw("--read-only") != nullptr;
  app->callback([this, &options, execute, here, looks] {
    store_ = &options.store;
    runs_here_ = here;
    takes_read_only_ = looks;
    action_ = [&options, execute](CommandContext& context) { return execute(options, context); };
  });
}

void InspectionCommands::define_looks(CLI::App& root) {
  StatOptions& stat = options_->stat;
  CLI::App* app = add(root, "stat", "Show what a store holds and how well it is", stat.store,
                      stat.json, "Print one JSON object");
  app->add_flag("--brief", stat.brief, "Without what only a look at every record tells");
  on_parse(app, stat, run_stat);

  ShowOptions& show = options_->show;
  app = add(root, "show", "Show one block in full: record, groups, tokens, text, values",
            show.store, show.json, "Print one JSON object");
  app->add_option("hash", show.hash, "The block's hash, or its first digits")->required();
  on_parse(app, show, run_show);

  VerifyOptions& verify = options_->verify;
  app = add(root, "verify", "Read and prove every byte of a store", verify.store, verify.json,
            "Print one JSON object");
  app->add_option("--prefix", verify.prefix, "Only a block and what hangs under it")
      ->type_name("HASH");
  app->add_option("--sample", verify.sample, "Only so many blocks, drawn at random")
      ->check(whole_number(1));
  app->add_option("--seed", verify.seed, "Of the draw (default: another one each time)")
      ->check(whole_number(0));
  add_size(*app, "--bytes-per-second", verify.bytes_per_second,
           "Most bytes of latents proven a second (default: no limit)");
  on_parse(app, verify, run_verify);
}

void InspectionCommands::define_lists(CLI::App& root) {
  LsOptions& ls = options_->ls;
  CLI::App* app = add(root, "ls", "List blocks, parents before children", ls.store, ls.json,
                      "Print one JSON object a line");
  add_filter(*app, ls.filter);
  add_choice<LsOrder>(
      *app, "--sort", ls.order,
      {{"chain", LsOrder::kChain},
       {"none", LsOrder::kNone},
       {"age", LsOrder::kAge},
       {"hits", LsOrder::kHits},
       {"bytes", LsOrder::kBytes},
       {"tokens", LsOrder::kTokens}},
      "Order: chain (parents before children), age (latest use first), hits, bytes, "
      "tokens (most first), or none: as they lie, in the memory of a page "
      "(default: chain)");
  app->add_flag("--reverse", ls.reverse, "The other way round");
  app->add_flag("!--no-text", ls.text, "Without what the tokens say");
  add_limit(*app, ls.limit);
  on_parse(app, ls, run_ls);

  TreeOptions& tree = options_->tree;
  app = add(root, "tree", "Draw the prefixes as a tree; a run without a branch is one line",
            tree.store, tree.json, "Print one JSON object a line");
  add_place(*app, tree.filter);
  add_choice<TreeOrder>(*app, "--sort", tree.order,
                        {{"bytes", TreeOrder::kBytes},
                         {"age", TreeOrder::kAge},
                         {"hits", TreeOrder::kHits},
                         {"hash", TreeOrder::kHash}},
                        "Order of siblings: bytes or hits (most first), age (latest use first), "
                        "hash (default: bytes)");
  app->add_option("--depth", tree.depth, "Most branches below each other; 0: all")
      ->capture_default_str()
      ->check(whole_number(0));
  app->add_flag("!--no-text", tree.text, "Without what the tokens say");
  add_limit(*app, tree.limit);
  on_parse(app, tree, run_tree);

  DuOptions& du = options_->du;
  app = add(root, "du", "Add up bytes by prefix, scope or namespace", du.store, du.json,
            "Print one JSON object a line");
  add_place(*app, du.filter);
  add_choice<DuBy>(
      *app, "--by", du.by,
      {{"prefix", DuBy::kPrefix}, {"scope", DuBy::kScope}, {"namespace", DuBy::kNamespace}},
      "prefix, scope or namespace (default: prefix)");
  add_limit(*app, du.limit);
  on_parse(app, du, run_du);

  DiffOptions& diff = options_->diff;
  app = add(root, "diff", "Compare two stores by what tokens they know; ends with 1 if they differ",
            diff.store, diff.json, "Print one JSON object a line");
  app->add_option("other", diff.other, "Folder of the second store")->required();
  app->add_flag("!--no-text", diff.text, "Without what the tokens say");
  add_limit(*app, diff.limit);
  on_parse(app, diff, run_diff);
}

void InspectionCommands::define_explain(CLI::App& root) {
  ExplainOptions& explain = options_->explain;
  CLI::App* app = add(root, "explain", "Say what of a prompt would hit, and why the rest would not",
                      explain.store, explain.json, "Print one JSON object");
  CLI::Option_group* source = add_prompt(*app, explain.prompt);
  CLI::Option* talk = source->add_option("--conversation", explain.conversation,
                                         "A talk of the store: its id, or last");
  talk->type_name("ID");
  for (const char* flag : {"--chat", "--system", "--system-file"}) {
    app->get_option(flag)->excludes(talk);
  }
  source->require_option(1);
  add_attention_mode(*app, explain.attention);
  app->add_option("--namespace", explain.name_space,
                  "By its digits (default: the one that knows most of the prompt)")
      ->type_name("HASH");
  app->add_option("--scope", explain.scope, "shared, or a tenant's name")->capture_default_str();
  app->add_option("--tokenizer", explain.tokenizer,
                  "tokenizer.json or its folder (default: the one that the store keeps)")
      ->type_name("PATH");
  app->add_option("--template", explain.template_name,
                  "Chat template, as deepseek-v3 (default: found by comparing the tokenizer's)")
      ->type_name("NAME");
  app->add_flag_callback(
      "--thinking", [&explain] { explain.thinking = true; },
      "Answers begin with reasoning, where the template leaves that open");
  app->add_flag_callback(
      "--no-thinking", [&explain] { explain.thinking = false; }, "Answers begin without reasoning");
  on_parse(app, explain, run_explain);
}

void InspectionCommands::define_holders(CLI::App& root) {
  PinOptions& pin = options_->pin;
  CLI::App* app =
      add_change(root, "pin", "Keep a block and all before it while a running process lives",
                 pin.store, pin.json, "Print one JSON object");
  app->add_option("hash", pin.hash, "The last block's hash, or its first digits")->required();
  add_time(*app, "--for", pin.for_us, "For so long, at most 30d (default: 1h)");
  on_parse(app, pin, run_pin);

  UnpinOptions& unpin = options_->unpin;
  app = add_change(root, "unpin", "Let go what was pinned", unpin.store, unpin.json,
                   "Print one JSON object");
  app->add_option("hash", unpin.hash, "The last block's hash, or its first digits")->required();
  on_parse(app, unpin, run_unpin);

  SnapshotOptions& snapshot = options_->snapshot;
  app = add_change(root, "snapshot", "Copy the store of a running process, whole or not at all",
                   snapshot.store, snapshot.json, "Print one JSON object");
  app->add_option("folder", snapshot.target, "Where to; must not be there yet")->required();
  on_parse(app, snapshot, run_snapshot);
}

void InspectionCommands::define_conversations(CLI::App& root) {
  CLI::App* group = root.add_subcommand("conversations", "The talks that a store keeps");
  group->require_subcommand(1);
  ListConversationsOptions& list = options_->list_conversations;
  CLI::App* app = add(*group, "list", "List them, the latest first", list.store, list.json,
                      "Print one JSON object a line");
  add_limit(*app, list.limit);
  on_parse(app, list, run_list_conversations);
  ShowConversationOptions& show = options_->show_conversation;
  app = add(*group, "show", "Print one, a turn after the other; with --json it can be kept",
            show.store, show.json, "Print one JSON object");
  app->add_option("id", show.id, "Its 16 digits, or last")->required();
  app->add_flag("--ids", show.ids, "With --json: token ids too");
  on_parse(app, show, run_show_conversation);
  ExportConversationOptions& keep = options_->export_conversation;
  app = add(*group, "export", "Write one down whole, for people or for programs", keep.store,
            keep.json, "With --output: say what was written as one JSON object");
  app->add_option("id", keep.id, "Its 16 digits, or last")->required();
  add_choice<ConversationForm>(
      *app, "--format", keep.form,
      {{"json", ConversationForm::kJson}, {"text", ConversationForm::kText}},
      "json: all of it, and readable as a messages file; text: for people (default: json)");
  app->add_option("-o,--output", keep.file, "The file (default: standard output)")
      ->type_name("FILE");
  on_parse(app, keep, run_export_conversation);
  define_conversation_edits(*group);
}

void InspectionCommands::define_conversation_edits(CLI::App& group) {
  RemoveConversationsOptions& remove = options_->remove_conversations;
  CLI::App* app = add_change(group, "remove", "Remove talks; blocks of them stay as cache",
                             remove.store, remove.json, "Print one JSON object a line");
  app->add_option("id", remove.ids, "16 digits each, or last")->required();
  add_consent(*app, remove.consent);
  on_parse(app, remove, run_remove_conversations);

  BranchConversationOptions& branch = options_->branch_conversation;
  app = add_change(group, "branch", "Begin a talk that has another one's turns up to a place",
                   branch.store, branch.json, "Print one JSON object");
  app->add_option("id", branch.id, "Its 16 digits, or last; it stays as it is")->required();
  app->add_option("--turn", branch.turn,
                  "From 1: the first turn that the branch does not have; one past the last: all")
      ->check(whole_number(0))
      ->required();
  CLI::Option* message = app->add_option("--message", branch.message,
                                         "What is asked instead, when chat --resume goes on");
  message->type_name("TEXT");
  app->add_option("--message-file", branch.message_file, "File with it")
      ->type_name("FILE")
      ->excludes(message);
  on_parse(app, branch, run_branch_conversation);
}

void InspectionCommands::define_transfers(CLI::App& root) {
  ExportOptions& out = options_->export_options;
  CLI::App* app = add(root, "export", "Write blocks and conversations to a file for another store",
                      out.store, out.json, "Print one JSON object");
  app->add_option("-o,--output", out.output, "File that is not there yet, or - for standard output")
      ->required()
      ->type_name("FILE");
  app->add_option("--conversation", out.conversation,
                  "A talk with its blocks and its tail: its id, or last")
      ->type_name("ID");
  add_filter(*app, out.filter);
  app->add_flag("--clear", out.clear, "Also from an encrypted store: the file is not encrypted");
  on_parse(app, out, run_export);

  ImportOptions& in = options_->import_options;
  app = add(root, "import", "Take what another store has exported; all of it or nothing", in.store,
            in.json, "Print one JSON object");
  app->add_option("file", in.file, "The file, or - for standard input")->required();
  app->add_option("--scope", in.scopes,
                  "What a scope of the file is called here; may be given again")
      ->type_name("FROM=TO")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_size(*app, "--disk-bytes", in.disk_bytes,
           "Most bytes of the store, as in use (default: as for generate)");
  app->add_flag("--dry-run", in.dry_run, "Only prove it, and say what it would bring");
  on_parse(app, in, run_import);
}

void InspectionCommands::define_changes(CLI::App& root) {
  RmOptions& rm = options_->rm;
  CLI::App* app = add(root, "rm", "Remove blocks, by prefix, conversation, scope or age", rm.store,
                      rm.json, "Print one JSON object; with --dry-run one more for each block");
  add_filter(*app, rm.filter);
  CLI::Option* talk = app->add_option("--conversation", rm.conversation,
                                      "A talk, by its id or last: its text, its tails, and the "
                                      "blocks that nobody else shares");
  talk->type_name("ID")->group(kWhich);
  app->add_flag("--keep-blocks", rm.keep_blocks, "Of a talk: its text only")->needs(talk);
  add_consent(*app, rm.consent);
  on_parse(app, rm, run_rm);

  ForgetOptions& forget = options_->forget;
  app = add(root, "forget", "Make what a scope left in a store unreadable, for ever", forget.store,
            forget.json, "Print one JSON object");
  CLI::Option_group* whose = app->add_option_group("Scope", "Exactly one of these");
  whose->add_option("--scope", forget.request.scope, "Whose blocks, tails and conversations")
      ->type_name("NAME");
  whose->add_flag("--all", forget.request.all, "Those of every scope");
  whose->require_option(1);
  app->add_flag("--now", forget.request.now, "Also remove the bytes before the command ends");
  app->add_flag("--dry-run", forget.request.dry_run, "Only say what would be forgotten");
  add_size(*app, "--disk-bytes", forget.disk_bytes,
           "Most bytes of the store, as in use (default: enough for what is there)");
  on_parse(app, forget, run_forget);
}

void InspectionCommands::define_mending(CLI::App& root) {
  GcOptions& gc = options_->gc;
  CLI::App* app = add(root, "gc", "Give back now what would be given back later", gc.store, gc.json,
                      "Print one JSON object");
  app->add_flag("--foreign", gc.foreign,
                "Also blocks of other numerics builds than the one used last");
  app->add_option("--dead", gc.dead_percent, "Rewrite epochs of which so many per cent are dead")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  add_size(*app, "--disk-bytes", gc.disk_bytes,
           "Bring the store within this, the blocks first that nobody has used for longest");
  app->add_flag("--dry-run", gc.dry_run, "Only say what would be done, and change nothing");
  on_parse(app, gc, run_gc);

  RepairOptions& repair = options_->repair;
  app = add(root, "repair", "Make a store whole again out of what is left of it", repair.store,
            repair.json, "Print one JSON object");
  app->add_flag("--verify", repair.verify, "Also read and prove every block");
  add_size(*app, "--bytes-per-second", repair.bytes_per_second,
           "With --verify: most bytes of latents proven a second (default: no limit)");
  add_size(*app, "--disk-bytes", repair.disk_bytes,
           "Most bytes of the store, as in use (default: enough for what is there)");
  app->add_flag("--dry-run", repair.dry_run, "Only say what would be done, and change nothing");
  on_parse(app, repair, run_repair);

  CLI::App* group = root.add_subcommand("quarantine", "What a store keeps aside as damaged");
  group->require_subcommand(1);
  ListQuarantineOptions& list = options_->list_quarantine;
  app = add(*group, "list", "List records and files, oldest first", list.store, list.json,
            "Print one JSON object a line");
  on_parse(app, list, run_list_quarantine);
  ShowQuarantineOptions& show = options_->show_quarantine;
  app = add(*group, "show", "Show what is known of one", show.store, show.json,
            "Print one JSON object");
  app->add_option("file", show.file, "Its name as listed, or its block's hash")->required();
  on_parse(app, show, run_show_quarantine);
  ClearQuarantineOptions& clear = options_->clear_quarantine;
  app = add(*group, "clear", "Remove all of it, or what is named", clear.store, clear.json,
            "Print one JSON object");
  app->add_option("files", clear.files, "Names as listed (default: all)");
  add_consent(*app, clear.consent);
  on_parse(app, clear, run_clear_quarantine);
}

void InspectionCommands::define_simulate(CLI::App& root) {
  SimulateOptions& simulate = options_->simulate;
  CLI::App* app =
      add(root, "simulate", "Replay the store's access log against other capacities and policies",
          simulate.store, simulate.json, "Print one JSON object");
  CLI::Option* trace = app->add_option("--trace", simulate.trace.path,
                                       "Instead of the log: a public trace, JSON lines, perhaps "
                                       "zipped (Mooncake, ShareGPT, Weka)");
  trace->type_name("FILE");
  app->add_option("--starts", simulate.trace.starts, "CSV of when the trace's sessions start")
      ->type_name("FILE")
      ->needs(trace);
  app->add_option("--window", simulate.trace.window, "Which starts: 24h or 6h")
      ->capture_default_str()
      ->check(CLI::IsMember({"24h", "6h"}))
      ->needs(trace);
  app->add_option_function<std::string>(
         "--capacities",
         [&simulate](const std::string& text) {
           Result<std::vector<CapacityAsked>> asked = parse_capacities(text);
           if (!asked.ok()) throw CLI::ValidationError("--" + asked.error().message);
           simulate.capacities = std::move(asked).value();
         },
         "As --disk-bytes, or shares of the distinct blocks: 1GiB,2GiB or 5%,10% (default: around "
         "what the store has)")
      ->type_name("LIST");
  app->add_option_function<std::vector<std::string>>(
         "--policies",
         [&simulate](const std::vector<std::string>& names) {
           simulate.policies.clear();
           for (const std::string& name : names) {
             simulate.policies.push_back(*eviction_policy_of(name));
           }
         },
         "auto, leaf_lru, s3_fifo (default: all three)")
      ->delimiter(',')
      ->check(CLI::IsMember({"auto", "leaf_lru", "s3_fifo"}))
      ->type_name("LIST");
  add_size(*app, "--block-bytes", simulate.block_bytes,
           "Of a trace's blocks, as they would be stored, so that sizes are known");
  app->add_option("--plot", simulate.plot, "Draw it as an SVG picture")->type_name("FILE");
  on_parse(app, simulate, run_simulate, true);
}

void InspectionCommands::define_top(CLI::App& root) {
  TopOptions& top = options_->top;
  CLI::App* app = add(root, "top", "Watch a store on the whole terminal; h shows the keys",
                      top.store, top.json, "Print one JSON object an interval");
  add_time(*app, "--interval", top.interval_us,
           "Between two looks, at least 1s, at most 64s (default: 2s)");
  app->add_flag("--once", top.once, "Print one frame as text, and end");
  on_parse(app, top, run_top, true);
}

void InspectionCommands::take_paths_from(const std::string& folder) {
  ExplainOptions& explain = options_->explain;
  for (std::optional<std::string>* file :
       {&explain.prompt.prompt_file, &explain.prompt.messages_file, &explain.prompt.system.file}) {
    if (*file) *file = path_from(folder, **file);
  }
  options_->snapshot.target = path_from(folder, options_->snapshot.target);
  if (!options_->diff.other.empty()) {
    options_->diff.other = path_from(folder, options_->diff.other);
  }
  std::optional<std::string>& message = options_->branch_conversation.message_file;
  if (message) message = path_from(folder, *message);
  std::string& exported = options_->export_conversation.file;
  if (!exported.empty() && exported != "-") exported = path_from(folder, exported);
  SimulateOptions& simulate = options_->simulate;
  for (std::string* file : {&simulate.trace.path, &simulate.trace.starts, &simulate.plot}) {
    if (!file->empty()) *file = path_from(folder, *file);
  }
  if (!explain.tokenizer.empty()) explain.tokenizer = path_from(folder, explain.tokenizer);
  for (std::string* file : {&options_->export_options.output, &options_->import_options.file}) {
    if (*file != "-") *file = path_from(folder, *file);
  }
  std::string& key_file = store_->encryption.key_file;
  if (!key_file.empty()) key_file = path_from(folder, key_file);
}

int run_inspection(const std::vector<std::string>& words, CommandContext& context) {
  CLI::App root("EmberKV: a model's latent cache that outlives its process", "emberkv");
  root.require_subcommand(1);
  InspectionCommands commands(root);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    root.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    print_error(context.io.err, usage_error(root, error));
    return kExitUsage;
  }
  if (!context.folder.empty()) commands.take_paths_from(context.folder);
  const Result<int> result = commands.run(context);
  if (result.ok()) return *result;
  print_error(context.io.err, result.error().message);
  return kExitFailed;
}

}  // namespace ember
