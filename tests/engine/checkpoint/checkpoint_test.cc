// Checkpoint: shards by the index alone, refusals by tensor, and a fingerprint that resharding
// keeps.
#include "engine/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace ember::testing {
namespace {

const std::vector<float> kFirst = {1, 2, 3, 4};
const std::vector<float> kSecond = {5, 6};

TensorToWrite tensor(const std::string& name, const std::vector<float>& values) {
  return {name, DType::kF32, {values.size()}, std::as_bytes(std::span(values))};
}

void write_sharded(const TempFolder& folder) {
  ASSERT_TRUE(write_safetensors(folder / "x1.safetensors", {tensor("b", kSecond)}).ok());
  ASSERT_TRUE(
      write_safetensors(folder / "x2.safetensors", {tensor("a", kFirst), tensor("stale", kFirst)})
          .ok());
  folder.write("model.safetensors.index.json",
               R"({"metadata": {}, "weight_map": {"a": "x2.safetensors", "b": "x1.safetensors"}})");
}

void write_single(const TempFolder& folder) {
  ASSERT_TRUE(
      write_safetensors(folder / "model.safetensors", {tensor("a", kFirst), tensor("b", kSecond)})
          .ok());
}

Error refusal(const std::string& folder) {
  auto opened = Checkpoint::open(folder);
  if (opened.ok()) return {ErrorCode::kBusy, "it was accepted"};
  return opened.error();
}

TEST(CheckpointTest, ReshardingKeepsTensorsAndFingerprint) {
  const TempFolder one;
  const TempFolder many;
  write_single(one);
  write_sharded(many);
  const auto a = std::move(Checkpoint::open(one.path())).value();
  const auto b = std::move(Checkpoint::open(many.path())).value();
  EXPECT_EQ(a->names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(b->names(), a->names());
  EXPECT_EQ(a->total_bytes(), 24u);
  EXPECT_EQ(a->fingerprint({}).value(), b->fingerprint({}).value());
  EXPECT_EQ(load_unaligned<float>(b->tensor("b", {2}).value().bytes.data()), 5.0f);
}

// Each kind of tensor by both of its names.
const std::pair<const char*, const char*> kConverted[] = {
    {"embed.weight", "model.embed_tokens.weight"},
    {"norm.weight", "model.norm.weight"},
    {"head.weight", "lm_head.weight"},
    {"layers.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
    {"layers.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"},
    {"layers.0.attn.wq.weight", "model.layers.0.self_attn.q_proj.weight"},
    {"layers.12.attn.wq_a.scale", "model.layers.12.self_attn.q_a_proj.weight_scale_inv"},
    {"layers.12.attn.q_norm.weight", "model.layers.12.self_attn.q_a_layernorm.weight"},
    {"layers.12.attn.wq_b.weight", "model.layers.12.self_attn.q_b_proj.weight"},
    {"layers.12.attn.wkv_a.weight", "model.layers.12.self_attn.kv_a_proj_with_mqa.weight"},
    {"layers.12.attn.kv_norm.weight", "model.layers.12.self_attn.kv_a_layernorm.weight"},
    {"layers.12.attn.wkv_b.weight", "model.layers.12.self_attn.kv_b_proj.weight"},
    {"layers.12.attn.wo.scale", "model.layers.12.self_attn.o_proj.weight_scale_inv"},
    {"layers.0.ffn.w1.weight", "model.layers.0.mlp.gate_proj.weight"},
    {"layers.0.ffn.w2.weight", "model.layers.0.mlp.down_proj.weight"},
    {"layers.0.ffn.w3.weight", "model.layers.0.mlp.up_proj.weight"},
    {"layers.3.ffn.gate.weight", "model.layers.3.mlp.gate.weight"},
    {"layers.3.ffn.gate.bias", "model.layers.3.mlp.gate.e_score_correction_bias"},
    {"layers.3.ffn.experts.17.w2.scale",
     "model.layers.3.mlp.experts.17.down_proj.weight_scale_inv"},
    {"layers.3.ffn.shared_experts.w3.weight", "model.layers.3.mlp.shared_experts.up_proj.weight"}};

TEST(CheckpointTest, AConvertedOneIsThePublishedOne) {
  const TempFolder converted, published;
  std::vector<TensorToWrite> ours, theirs;
  for (const auto& [from, to] : kConverted) {
    ours.push_back(tensor(from, kFirst));
    theirs.push_back(tensor(to, kFirst));
  }
  ASSERT_TRUE(write_safetensors(converted / "model0-mp1.safetensors", ours).ok());
  ASSERT_TRUE(write_safetensors(published / "model.safetensors", theirs).ok());
  const auto a = std::move(Checkpoint::open(converted.path())).value();
  const auto b = std::move(Checkpoint::open(published.path())).value();
  EXPECT_EQ(a->names(), b->names());
  EXPECT_EQ(a->fingerprint({}).value(), b->fingerprint({}).value());
}

TEST(CheckpointTest, ConvertedNamesThatAreUnknownStayAndDoublesAndPartsAreRefused) {
  const TempFolder unknown, doubled, part;
  ASSERT_TRUE(write_safetensors(unknown / "model0-mp1.safetensors",
                                {tensor("layers.0.attn.indexer.wk.weight", kFirst)})
                  .ok());
  const auto opened = std::move(Checkpoint::open(unknown.path())).value();
  EXPECT_EQ(opened->names(), std::vector<std::string>{"layers.0.attn.indexer.wk.weight"});
  ASSERT_TRUE(write_safetensors(doubled / "model0-mp1.safetensors",
                                {tensor("embed.weight", kFirst),
                                 tensor("model.embed_tokens.weight", kFirst)})
                  .ok());
  EXPECT_NE(refusal(doubled.path()).message.find("model.embed_tokens.weight"), std::string::npos);
  ASSERT_TRUE(
      write_safetensors(part / "model0-mp8.safetensors", {tensor("embed.weight", kFirst)}).ok());
  const Error refused = refusal(part.path());
  EXPECT_EQ(refused.code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.message.find("model0-mp8.safetensors"), std::string::npos);
}

TEST(CheckpointTest, FingerprintSeesEveryByteNameAndShape) {
  const auto print_of = [](const std::vector<TensorToWrite>& tensors) {
    const TempFolder folder;
    EXPECT_TRUE(write_safetensors(folder / "model.safetensors", tensors).ok());
    return std::move(Checkpoint::open(folder.path())).value()->fingerprint({}).value();
  };
  std::vector<float> changed = kFirst;
  changed[3] = 4.5f;
  TensorToWrite reshaped = tensor("a", kFirst);
  reshaped.shape = {2, 2};
  const BlockHash base = print_of({tensor("a", kFirst)});
  EXPECT_NE(base, print_of({tensor("a", changed)}));
  EXPECT_NE(base, print_of({tensor("b", kFirst)}));
  EXPECT_NE(base, print_of({reshaped}));
  EXPECT_EQ(base, print_of({tensor("a", kFirst)}));
}

TEST(CheckpointTest, MissingAndMisshapenTensorsAreNamed) {
  const TempFolder folder;
  write_single(folder);
  const auto checkpoint = std::move(Checkpoint::open(folder.path())).value();
  const Error missing = checkpoint->tensor("c", {3}).error();
  EXPECT_EQ(missing.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(missing.message.find("tensor c is missing"), std::string::npos);
  const Error shape = checkpoint->tensor("a", {2, 3}).error();
  EXPECT_NE(shape.message.find("tensor a: found shape [4], expected [2, 3]"), std::string::npos)
      << shape.message;
}

TEST(CheckpointTest, Fp8WeightsAreRefusedByDtype) {
  const TempFolder folder;
  const std::vector<std::byte> bytes(4);
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors",
                                {{"w", DType::kU8, {2, 2}, ConstBytes(bytes)}})
                  .ok());
  const Error error =
      std::move(Checkpoint::open(folder.path())).value()->tensor("w", {2, 2}).error();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_NE(error.message.find("dtype uint8 is not supported"), std::string::npos);
}

TEST(CheckpointTest, ShardsStayInTheFolder) {
  for (const char* name : {"../x.safetensors", "/etc/passwd", "..", "", "a\\\\b"}) {
    const TempFolder folder;
    folder.write("model.safetensors.index.json",
                 std::string(R"({"weight_map": {"a": ")") + name + "\"}}");
    const Error error = refusal(folder.path());
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << name;
    EXPECT_NE(error.message.find("weight_map.a"), std::string::npos) << error.message;
  }
}

TEST(CheckpointTest, MissingFilesAreNamed) {
  const TempFolder folder;
  EXPECT_EQ(refusal(folder / "absent").code, ErrorCode::kIo);
  EXPECT_NE(refusal(folder.path()).message.find("model.safetensors"), std::string::npos);
  write_sharded(folder);
  std::filesystem::remove(folder / "x1.safetensors");
  const Error error = refusal(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kIo);
  EXPECT_NE(error.message.find("x1.safetensors"), std::string::npos);
}

TEST(CheckpointTest, AnIndexThatLiesIsRefused) {
  const TempFolder folder;
  write_sharded(folder);
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "x1.safetensors"}})");
  const Error error = refusal(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kCorruption);
  EXPECT_NE(error.message.find("tensor a"), std::string::npos) << error.message;
}

// A checkpoint large enough that its fingerprint is remembered.
class RememberedFingerprintTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    const std::vector<std::byte> zeros(size_t{65} << 20);
    ASSERT_TRUE(
        write_safetensors(model(), {{"w", DType::kU8, {zeros.size()}, ConstBytes(zeros)}}).ok());
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }
  std::string model() const { return folder_ / "model.safetensors"; }
  // The fingerprint, and whether the weights were read for it.
  std::pair<BlockHash, bool> take() const {
    bool hashed = false;
    const auto checkpoint = std::move(Checkpoint::open(folder_.path())).value();
    const BlockHash print = checkpoint->fingerprint([&](double) { hashed = true; }).value();
    return {print, hashed};
  }
  std::string remembered() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_.path())) {
      if (entry.is_regular_file()) return entry.path().string();
    }
    return {};
  }
  TempFolder folder_;
  TempFolder cache_;
};

TEST_F(RememberedFingerprintTest, SecondStartDoesNotHash) {
  const auto first = take();
  const auto second = take();
  EXPECT_TRUE(first.second);
  EXPECT_FALSE(second.second);
  EXPECT_EQ(first.first, second.first);
}

TEST_F(RememberedFingerprintTest, ADamagedMemoryIsIgnored) {
  const BlockHash print = take().first;
  const std::string text = read_file(remembered());
  ASSERT_FALSE(text.empty());
  for (size_t at = 0; at < text.size(); at += 23) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file(remembered(), damaged);
    const auto again = take();
    ASSERT_EQ(again.first, print) << "byte " << at;
    ASSERT_TRUE(again.second) << "byte " << at;
  }
}

TEST_F(RememberedFingerprintTest, AChangedFileIsHashedAgain) {
  const BlockHash print = take().first;
  std::fstream(model(), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(32 << 20)
      .write("x", 1);
  const auto again = take();
  EXPECT_TRUE(again.second);
  EXPECT_NE(again.first, print);
}

}  // namespace
}  // namespace ember::testing
