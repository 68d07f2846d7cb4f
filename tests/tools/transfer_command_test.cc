// export and import from outside: what one store has computed, another one restores.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/command_line.h"
#include "tests/tools/pseudo_terminal.h"

namespace ember {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class TransferCommandTest : public CommandLineTest {
 protected:
  Json run(std::vector<std::string> words, int exit_code = 0) {
    words.push_back("--json");
    const CommandResult result = emberkv(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.errors << result.output;
    return result.output.empty() ? Json() : Json::parse(result.output, nullptr, false);
  }
  Json export_to(const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"export", "--store", first_, "-o", folder_ / file};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Json import_from(const std::string& file, const std::string& store,
                   std::vector<std::string> more = {}, int exit_code = 0) {
    std::vector<std::string> words = {"import", "--store", store, folder_ / file};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, exit_code);
  }
  void expect_same_content(const std::string& a, const std::string& b) {
    const CommandResult result = emberkv({"diff", b, "--store", a});
    EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
  }
  std::vector<std::string> chat_words(const std::string& store,
                                      const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"chat",  "--json",  "--model",      model(),
                                      "--store", store, "--max-tokens", "10"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The events of a chat with this input, the last turn's.
  Json last_turn(const std::string& store, const std::vector<std::string>& more,
                 const std::string& input) {
    const CommandResult result = emberkv(chat_words(store, more), input);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    Json turn;
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) {
      const Json event = Json::parse(line);
      if (event.at("event") == "turn") turn = event;
    }
    EXPECT_FALSE(turn.is_null()) << result.output;
    return turn;
  }

  const std::string first_ = folder_ / "first";
  const std::string second_ = folder_ / "second";
  const std::string prompt_ = some_text(1, 30);
};

TEST_F(TransferCommandTest, AnotherStoreRestoresWhatThisOneComputedAndAnswersTheSame) {
  const AnswerEvent computed = generate(first_, prompt_);
  generate(first_, some_text(2, 20));
  const Json out = export_to("moved.tar");
  EXPECT_GT(out.at("blocks"), 3);
  EXPECT_EQ(out.at("damaged"), 0);
  EXPECT_EQ(out.at("bytes"), fs::file_size(folder_ / "moved.tar"));
  EXPECT_EQ(import_from("moved.tar", second_, {"--dry-run"}).at("new").at("blocks"),
            out.at("blocks"));
  EXPECT_FALSE(fs::exists(second_));
  const Json in = import_from("moved.tar", second_);
  EXPECT_EQ(in.at("new").at("blocks"), out.at("blocks"));
  EXPECT_EQ(in.at("new").at("tails"), out.at("tails"));
  expect_same_content(first_, second_);
  const CommandResult list = emberkv({"ls", "--store", second_});
  EXPECT_NE(list.output.find("captain"), std::string::npos) << list.output;
  EXPECT_EQ(run({"verify", "--store", second_}).at("damaged"), 0);

  const AnswerEvent again = generate(first_, prompt_);
  const AnswerEvent moved = generate(second_, prompt_);
  EXPECT_EQ(moved.token_ids, computed.token_ids);
  EXPECT_GT(moved.disk_tokens, 0u);
  EXPECT_EQ(moved.disk_tokens, again.disk_tokens);
  EXPECT_EQ(moved.computed_tokens, again.computed_tokens);
}

TEST_F(TransferCommandTest, AConversationGoesOnElsewhereThroughAPipe) {
  const std::vector<std::string> system = {"--system", some_text(3, 20)};
  last_turn(first_, system, "What is the horse of Ada?\nAnd who?\n");
  last_turn(first_, {"--system", some_text(4, 20)}, "Another talk.\n");
  const CommandResult list = emberkv({"conversations", "list", "--store", first_, "--json"});
  std::string id;
  std::istringstream lines(list.output);
  for (std::string line; std::getline(lines, line);) id = Json::parse(line).at("conversation");
  const Result<CommandResult> piped = run_command(
      {"/bin/sh", "-c",
       program_path() + " export --store " + first_ + " --conversation " + id + " -o - | " +
           program_path() + " import --store " + second_ + " -"});
  ASSERT_TRUE(piped.ok());
  EXPECT_EQ(piped->exit_code, 0) << piped->errors;
  EXPECT_NE(piped->output.find("1 conversation"), std::string::npos) << piped->output;
  const Json stat = run({"stat", "--store", second_});
  EXPECT_EQ(stat.at("conversations"), 1);
  EXPECT_EQ(stat.at("tails"), 1);
  EXPECT_LT(stat.at("blocks"), run({"stat", "--store", first_}).at("blocks"));

  fs::copy(first_, folder_ / "twin", fs::copy_options::recursive);
  const Json at_home = last_turn(folder_ / "twin", {"--resume", id}, "Why?\n");
  const Json away = last_turn(second_, {"--resume", id}, "Why?\n");
  EXPECT_EQ(away.at("token_ids"), at_home.at("token_ids"));
  EXPECT_GT(away.at("restored_tokens").at("disk"), 0);
  EXPECT_EQ(away.at("restored_tokens"), at_home.at("restored_tokens"));

  // Back again: the talk has gone on there, and so it goes on here.
  const std::string back = folder_ / "back.tar";
  run({"export", "--store", second_, "--conversation", "last", "-o", back});
  const Json in = import_from("back.tar", first_);
  EXPECT_EQ(in.at("new").at("conversations"), 1);
  EXPECT_GT(in.at("known").at("blocks"), 0);
  EXPECT_EQ(import_from("back.tar", first_).at("known").at("conversations"), 1);
  const CommandResult shown = emberkv({"conversations", "show", id, "--store", first_});
  EXPECT_NE(shown.output.find("Why?"), std::string::npos);
  // Both went on, each its own way: neither is lost.
  EXPECT_EQ(import_from("back.tar", folder_ / "twin").is_null(), false);
  last_turn(second_, {"--resume", id}, "Here.\n");
  last_turn(folder_ / "twin", {"--resume", id}, "There.\n");
  run({"export", "--store", second_, "-o", folder_ / "fork.tar"});
  const auto before = snapshot(folder_ / "twin");
  expect_refused(emberkv({"import", folder_ / "fork.tar", "--store", folder_ / "twin"}),
                 {id, "differently"});
  EXPECT_EQ(snapshot(folder_ / "twin"), before);
}

TEST_F(TransferCommandTest, APrefixBringsTheBlocksBeforeItAndNothingElse) {
  generate(first_, prompt_);
  generate(first_, some_text(2, 30));
  const CommandResult list = emberkv({"ls", "--json", "--store", first_});
  std::string hash;
  std::istringstream lines(list.output);
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    if (row.at("position") == 2) hash = row.at("hash");
  }
  const Json out = export_to("part.tar", {"--prefix", hash});
  EXPECT_LT(out.at("blocks"), run({"stat", "--store", first_}).at("blocks"));
  import_from("part.tar", second_);
  EXPECT_EQ(run({"verify", "--store", second_}).at("unreachable"), 0);
  EXPECT_EQ(run({"stat", "--store", second_}).at("blocks"), out.at("blocks"));
}

TEST_F(TransferCommandTest, WhatIsThereIsNotWrittenAgain) {
  generate(first_, prompt_);
  const Json out = export_to("all.tar");
  import_from("all.tar", second_);
  const Json again = import_from("all.tar", second_);
  EXPECT_EQ(again.at("new").at("blocks"), 0);
  EXPECT_EQ(again.at("new").at("tails"), 0);
  EXPECT_EQ(again.at("known").at("blocks"), out.at("blocks"));
  EXPECT_EQ(again.at("differing"), 0);
  expect_refused(emberkv({"export", "--store", first_, "-o", folder_ / "all.tar"}),
                 {"all.tar", "there already"});
}

TEST_F(TransferCommandTest, ADryRunToldALimitSaysWhetherItFits) {
  generate(first_, prompt_);
  export_to("all.tar");
  for (const bool dry_run : {true, false}) {
    std::vector<std::string> words = {"import",       folder_ / "all.tar", "--store", second_,
                                      "--disk-bytes", "1MiB"};
    if (dry_run) words.push_back("--dry-run");
    expect_refused(emberkv(words), {"disk_bytes"});
    EXPECT_FALSE(fs::exists(second_));
  }
}

TEST_F(TransferCommandTest, ATerminalIsSentNoFile) {
  generate(first_, prompt_);
  for (const char* term : {"xterm", "dumb"}) {
    PseudoTerminal terminal({program_path(), "export", "--store", first_, "-o", "-"},
                            {.term = term});
    EXPECT_EQ(terminal.wait(), 1);
    EXPECT_NE(terminal.shown().find("is a terminal"), std::string::npos) << terminal.shown();
    EXPECT_EQ(terminal.shown().find("manifest.json"), std::string::npos);
  }
}

TEST_F(TransferCommandTest, WhatIsRefusedLeavesTheStoreAsItWas) {
  generate(first_, prompt_);
  export_to("all.tar");
  const std::string whole = file_text(folder_ / "all.tar");
  generate(second_, some_text(5, 10));
  const auto before = snapshot(second_);
  std::vector<std::pair<std::string, std::string>> files = {
      {"cut.tar", whole.substr(0, whole.size() / 2)},
      {"empty.tar", ""},
      {"text.tar", "This is no tar.\n"},
      {"longer.tar", whole + "x"}};
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 4);
  files.emplace_back("flipped.tar", flipped);
  for (const auto& [name, bytes] : files) {
    write(name, bytes);
    expect_refused(emberkv({"import", folder_ / name, "--store", second_}), {name});
    expect_refused(emberkv({"import", folder_ / name, "--store", folder_ / "none"}), {name});
    EXPECT_FALSE(fs::exists(folder_ / "none")) << name;
    const CommandResult piped = emberkv({"import", "-", "--store", second_}, bytes);
    expect_refused(piped, {"-: "});
  }
  expect_refused(emberkv({"import", folder_.path(), "--store", second_}), {"no regular file"});
  EXPECT_EQ(snapshot(second_), before);
}

// Whatever colours it shows.
TEST_F(TransferCommandTest, NoTerminalGetsAnExport) {
  generate(first_, prompt_);
  for (const char* term : {"xterm", "dumb"}) {
    PseudoTerminal terminal({program_path(), "export", "--store", first_, "-o", "-"},
                            {.term = term});
    EXPECT_EQ(terminal.wait(), 1) << term;
    EXPECT_NE(terminal.shown().find("standard output is a terminal"), std::string::npos) << term;
    EXPECT_EQ(terminal.shown().find("manifest.json"), std::string::npos) << term;
  }
}

// As a kill leaves it, at each step of making a store.
TEST_F(TransferCommandTest, AnImportThatWasKilledWhileItMadeTheStoreIsRunAgain) {
  generate(first_, prompt_);
  const Json out = export_to("all.tar");
  const std::string made = folder_ / "made";
  generate(made, "Hi");
  for (int step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    fs::remove_all(second_);
    fs::create_directory(second_);
    write("second/LOCK", "");
    if (step > 0) fs::copy(made + "/IDENTITY", second_);
    if (step > 1) fs::create_directory(second_ + "/blocks");
    if (step > 2) fs::copy(made + "/blocks/IDENTITY", second_ + "/blocks/");
    const auto before = snapshot(second_);
    EXPECT_EQ(import_from("all.tar", second_, {"--dry-run"}).at("new").at("blocks"),
              out.at("blocks"));
    EXPECT_EQ(snapshot(second_), before);
    EXPECT_EQ(import_from("all.tar", second_).at("new").at("blocks"), out.at("blocks"));
    expect_same_content(first_, second_);
  }
  // Files of others are left alone.
  fs::create_directory(folder_ / "foreign");
  write("foreign/letter.txt", "Dear Ada");
  expect_refused(emberkv({"import", folder_ / "all.tar", "--store", folder_ / "foreign"}),
                 {"not a store"});
}

TEST_F(TransferCommandTest, ADamagedBlockIsSaidAndTheRestIsExported) {
  generate(first_, prompt_);
  generate(first_, some_text(2, 30));
  const uint64_t blocks = run({"stat", "--store", first_}).at("blocks");
  std::string largest;
  for (const auto& entry : fs::recursive_directory_iterator(first_)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".blob") continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  ASSERT_NE(largest, "");
  std::string bytes = file_text(largest);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  write(largest.substr(folder_.path().size() + 1), bytes);
  const CommandResult result =
      emberkv({"export", "--json", "--store", first_, "-o", folder_ / "rest.tar"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.errors.find("left out"), std::string::npos) << result.errors;
  const Json out = Json::parse(result.output);
  EXPECT_EQ(out.at("damaged"), 1);
  EXPECT_GT(out.at("left_out"), 0);
  EXPECT_LT(out.at("blocks"), blocks);
  EXPECT_EQ(import_from("rest.tar", second_).at("left_out_by_export"), out.at("left_out"));
  EXPECT_EQ(run({"verify", "--store", second_}).at("damaged"), 0);
}

TEST_F(TransferCommandTest, ATenantsScopeTravelsOnlyWhenItIsNamed) {
  generate(first_, prompt_);
  export_to("all.tar");
  import_from("all.tar", second_, {"--scope", "shared=acme"});
  run({"export", "--store", second_, "-o", folder_ / "nothing.tar"});
  EXPECT_EQ(import_from("nothing.tar", folder_ / "third").at("new").at("blocks"), 0);
  run({"export", "--store", second_, "--scope", "acme", "-o", folder_ / "acme.tar"});
  expect_refused(emberkv({"import", folder_ / "acme.tar", "--store", folder_ / "third"}),
                 {"acme", "--scope acme=NAME"});
  import_from("acme.tar", folder_ / "third", {"--scope", "acme=shared"});
  expect_same_content(first_, folder_ / "third");
  for (const char* wrong : {"acme", "=shared", "acme=", "acme=sha\nred"}) {
    const CommandResult result = emberkv(
        {"import", folder_ / "acme.tar", "--store", folder_ / "third", "--scope", wrong});
    EXPECT_EQ(result.exit_code, 1) << wrong << result.errors;
  }
}

TEST_F(TransferCommandTest, AnEncryptedStoreIsExportedInClearOnlyIfThatIsSaid) {
  const std::vector<std::string> key = {"--key-file", folder_ / "master.key"};
  std::vector<std::string> words = generate_command(first_, prompt_, 4);
  words.insert(words.end(), key.begin(), key.end());
  ASSERT_EQ(emberkv(words).exit_code, 0);
  std::vector<std::string> out = {"export", "--store", first_, "-o", folder_ / "clear.tar"};
  out.insert(out.end(), key.begin(), key.end());
  expect_refused(emberkv(out), {"--clear"});
  EXPECT_FALSE(fs::exists(folder_ / "clear.tar"));
  out.push_back("--clear");
  EXPECT_EQ(emberkv(out).exit_code, 0);
  EXPECT_EQ(fs::status(folder_ / "clear.tar").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  const std::vector<std::string> other = {"--key-file", folder_ / "other.key"};
  const CommandResult piped = emberkv(
      {"import", "-", "--store", second_, "--key-file", folder_ / "other.key"},
      file_text(folder_ / "clear.tar"));
  EXPECT_EQ(piped.exit_code, 0) << piped.errors;
  EXPECT_EQ(run({"stat", "--store", second_, "--key-file", folder_ / "other.key"}).at("encrypted"),
            true);
  std::vector<std::string> again = generate_command(second_, prompt_, 4);
  again.insert(again.end(), other.begin(), other.end());
  const Json answer = Json::parse(emberkv(again).output);
  EXPECT_GT(answer.at("restored_tokens").at("disk"), 0);
}

}  // namespace
}  // namespace ember
