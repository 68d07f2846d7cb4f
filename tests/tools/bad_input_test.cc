// Bad input: one clear line that names the file or field, exit code 1, and the store as it was.
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "tests/tools/command_line.h"

namespace ember {
namespace {

namespace fs = std::filesystem;

class BadInputTest : public CommandLineTest {
 protected:
  CommandResult generate_with(const std::string& model_path,
                              const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {
        "generate",        "--json",   "--model", model_path,     "--store",
        folder_ / "store", "--prompt", "Once",    "--max-tokens", "2"};
    command.insert(command.end(), more.begin(), more.end());
    return emberkv(command);
  }
  void expect_config_refused(const std::string& from, const std::string& to,
                             const std::vector<std::string>& names) {
    expect_refused(generate_with(model_with_config(from, to)), names);
    EXPECT_FALSE(fs::exists(folder_ / "store"));
  }
};

TEST_F(BadInputTest, AMissingModelFolderIsNamed) {
  expect_refused(generate_with(folder_ / "nowhere"), {"nowhere"});
}

TEST_F(BadInputTest, AMissingCheckpointFileIsNamed) {
  const std::string copy = model_with_config("", "");
  fs::remove(copy + "/model.safetensors");
  expect_refused(generate_with(copy), {"model.safetensors"});
}

TEST_F(BadInputTest, ACutCheckpointFileIsNamed) {
  const std::string copy = model_with_config("", "");
  fs::remove(copy + "/model.safetensors");
  fs::copy_file(model() + "/model.safetensors", copy + "/model.safetensors");
  fs::resize_file(copy + "/model.safetensors", 1'000'000);
  expect_refused(generate_with(copy), {"model.safetensors"});
}

TEST_F(BadInputTest, ATensorOfAnotherShapeIsNamedWithBothShapes) {
  expect_config_refused("\"moe_intermediate_size\": 128", "\"moe_intermediate_size\": 96",
                        {"experts", "128", "96"});
}

TEST_F(BadInputTest, AnUnknownArchitectureIsNamed) {
  expect_config_refused("DeepseekV3ForCausalLM", "LlamaForCausalLM", {"LlamaForCausalLM"});
}

TEST_F(BadInputTest, Fp8WeightsOfAnotherShapeAreNamed) {
  const std::string copy = model_with_config("", "");
  const std::string whole = file_text(model() + "/model.safetensors");
  const size_t header_bytes = load_unaligned<uint64_t>(whole.data());
  nlohmann::json header = nlohmann::json::parse(whole.substr(8, header_bytes));
  nlohmann::json& tensor = header.at("lm_head.weight");
  tensor["dtype"] = "F8_E4M3";  // as many bytes, so twice as many values
  tensor["shape"][1] = tensor["shape"][1].get<size_t>() * 2;
  std::string file;
  append_value(file, uint64_t{header.dump().size()});
  fs::remove(copy + "/model.safetensors");
  write("model/model.safetensors", file + header.dump() + whole.substr(8 + header_bytes));
  expect_refused(generate_with(copy), {"lm_head.weight", "found shape"});
}

TEST_F(BadInputTest, ANumberOfLayersThatNoModelHasIsNamed) {
  expect_config_refused("\"num_hidden_layers\": 6", "\"num_hidden_layers\": 2147483648",
                        {"num_hidden_layers", "2147483648"});
}

TEST_F(BadInputTest, ARoutedScaleBeyondFloatIsNamed) {
  expect_config_refused("\"routed_scaling_factor\": 1.5", "\"routed_scaling_factor\": 1e300",
                        {"routed_scaling_factor", "1e+300"});
}

TEST_F(BadInputTest, ARopeScalingThatGivesNoFactorIsNamed) {
  expect_config_refused("\"mscale_all_dim\": 1.0", "\"mscale_all_dim\": 1e300", {"rope_scaling"});
}

TEST_F(BadInputTest, OutputThatCannotBeWrittenIsAnError) {
  ASSERT_EQ(generate_with(model()).exit_code, 0);
  const std::string stat = program_path() + " stat --store " + (folder_ / "store");
  for (const std::string closed : {" > /dev/full", " >&-"}) {
    const Result<CommandResult> result = run_command({"/bin/sh", "-c", stat + closed});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->exit_code, 1) << closed;
    EXPECT_NE(result->errors.find("output"), std::string::npos) << result->errors;
  }
}

TEST_F(BadInputTest, ATokenizerMayBeAGzip) {
  const std::string packed =
      std::string(EMBER_SOURCE_DIR) + "/tests/data/tokenizer/tokenizer.json.gz";
  const CommandResult result =
      emberkv({"tokenize", "--tokenizer", packed}, "{\"text\": \"Hello\"}\n");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, "{\"ids\":[19923]}\n");
}

TEST_F(BadInputTest, AConfigThatContradictsItselfIsRefused) {
  expect_config_refused("\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 20",
                        {"num_experts_per_tok", "20"});
}

TEST_F(BadInputTest, AConfigThatIsNoJsonIsNamed) {
  expect_config_refused("{", "{{", {"config.json"});
}

TEST_F(BadInputTest, APromptLongerThanTheContextIsRefusedWithBothLengths) {
  std::vector<std::string> command = generate_command(folder_ / "store", some_text(1, 20));
  command.insert(command.end(), {"--context-tokens", "64"});
  expect_refused(emberkv(command), {"64"});
}

TEST_F(BadInputTest, AnUnknownTemplateIsRefused) {
  expect_refused(generate_with(model(), {"--chat", "--template", "chatml"}), {"chatml"});
}

TEST_F(BadInputTest, AMessagesFileIsNamedWithWhatIsWrong) {
  const auto with_file = [this](const std::string& path) {
    return emberkv(
        {"generate", "--model", model(), "--store", folder_ / "store", "--messages-file", path});
  };
  expect_refused(with_file(folder_ / "absent.json"), {"absent.json"});
  expect_refused(with_file(write("bad.json", "[{\"role\": ")), {"bad.json"});
  expect_refused(with_file(write("number.json", "[1]")), {"number.json"});
  expect_refused(with_file(write("role.json", R"([{"role": "user"}])")), {"role.json", "content"});
  EXPECT_FALSE(fs::exists(folder_ / "store"));
}

TEST_F(BadInputTest, AMissingPromptFileIsNamed) {
  expect_refused(emberkv({"generate", "--model", model(), "--prompt-file", folder_ / "absent.txt"}),
                 {"absent.txt"});
}

TEST_F(BadInputTest, AStoreHeldByAnotherProcessIsRefusedWithItsPid) {
  Result<std::unique_ptr<ChildProcess>> holder = ChildProcess::start(
      {program_path(), "chat", "--json", "--model", model(), "--store", folder_ / "store"});
  ASSERT_TRUE(holder.ok());
  ASSERT_TRUE((*holder)->read_line().ok());
  expect_refused(generate_with(model()), {std::to_string((*holder)->pid()), "store"});
  ASSERT_TRUE((*holder)->write("/exit\n").ok());
  EXPECT_EQ(*(*holder)->wait(), 0);
  EXPECT_EQ(generate_with(model()).exit_code, 0);
}

TEST_F(BadInputTest, AKilledHolderLeavesNoLock) {
  Result<std::unique_ptr<ChildProcess>> holder = ChildProcess::start(
      {program_path(), "chat", "--json", "--model", model(), "--store", folder_ / "store"});
  ASSERT_TRUE(holder.ok());
  ASSERT_TRUE((*holder)->read_line().ok());
  (*holder)->kill_now();
  EXPECT_EQ(generate_with(model()).exit_code, 0);
}

TEST_F(BadInputTest, AStoreThatCannotBeMadeIsNamed) {
  const std::string file = write("file", "no folder");
  expect_refused(emberkv(generate_command(file + "/store", "Once")), {file});
  EXPECT_EQ(file_text(file), "no folder");
}

TEST_F(BadInputTest, AFolderThatIsNoStoreIsLeftAlone) {
  fs::create_directory(folder_ / "photos");
  write("photos/one.txt", "mine");
  const auto before = snapshot(folder_ / "photos");
  expect_refused(emberkv(generate_command(folder_ / "photos", "Once")), {"photos"});
  expect_refused(emberkv({"stat", "--store", folder_ / "photos"}), {"photos"});
  EXPECT_TRUE(snapshot(folder_ / "photos") == before);
}

TEST_F(BadInputTest, TooLittleRamIsRefusedWithWhatWouldDo) {
  expect_refused(generate_with(model(), {"--ram-bytes", "1MiB"}), {"ram"});
}

TEST_F(BadInputTest, AMalformedLineToTokenizeIsNamedByItsNumber) {
  const CommandResult result =
      emberkv({"tokenize", "--tokenizer", model()}, "{\"text\": \"one\"}\n{\"text\": 2}\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.errors.find('2'), std::string::npos) << result.errors;
  EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1);
}

TEST_F(BadInputTest, InspectionOfAnAbsentStoreFails) {
  for (const char* command : {"stat", "ls", "verify"}) {
    expect_refused(emberkv({command, "--store", folder_ / "absent"}), {"absent"});
  }
  EXPECT_FALSE(fs::exists(folder_ / "absent"));
}

}  // namespace
}  // namespace ember
