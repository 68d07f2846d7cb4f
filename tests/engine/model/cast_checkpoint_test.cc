// Cast: fp8 to bf16 and back, shards, index, config, and folders that must not be touched.
#include "engine/model/cast_checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/checkpoint/checkpoint.h"
#include "engine/model/weight_convert.h"
#include "tests/engine/model/random_models.h"
#include "tests/support/temp_folder.h"
#include "tools/make_random_model.h"

namespace ember::testing {
namespace {

namespace fs = std::filesystem;

const std::string kFp8Golden = EMBER_SOURCE_DIR "/tests/data/goldens_v3_fp8";

CastReport cast(const std::string& from, const std::string& to, DType dtype, bool powers = false) {
  auto report = cast_checkpoint({from, to, dtype, powers, {}});
  EXPECT_TRUE(report.ok()) << report.error().message;
  return std::move(report).value();
}

std::unique_ptr<Checkpoint> open(const std::string& folder) {
  return std::move(Checkpoint::open(folder)).value();
}

bool same_tensors(const Checkpoint& a, const Checkpoint& b) {
  if (a.names() != b.names()) return false;
  for (const std::string& name : a.names()) {
    const TensorView x = a.any_tensor(name).value();
    const TensorView y = b.any_tensor(name).value();
    if (x.dtype != y.dtype || x.shape != y.shape) return false;
    if (!std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(), y.bytes.end())) return false;
  }
  return true;
}

TEST(CastCheckpointTest, WidensEveryValueAndDropsTheScales) {
  const TempFolder folder;
  const CastReport report = cast(kFp8Golden, folder / "bf16", DType::kBf16);
  EXPECT_EQ(report.cast, 176u);
  const auto from = open(kFp8Golden);
  const auto to = open(folder / "bf16");
  for (const std::string& name : to->names()) EXPECT_FALSE(name.ends_with("_scale_inv")) << name;
  const std::string name = "model.layers.1.mlp.experts.3.down_proj.weight";  // [160, 136]
  const TensorView q = from->any_tensor(name).value();
  const TensorView s = from->any_tensor(name + "_scale_inv").value();
  const TensorView made = to->any_tensor(name).value();
  ASSERT_EQ(made.dtype, DType::kBf16);
  std::vector<float> row(136);
  const Weight weight{q.bytes.data(), q.dtype, 160, 136,
                      reinterpret_cast<const float*>(s.bytes.data())};
  for (const size_t r : {size_t{0}, size_t{127}, size_t{128}, size_t{159}}) {
    widen_row(weight, r, row.data());
    for (size_t i = 0; i < row.size(); ++i) {
      ASSERT_EQ(load_unaligned<bf16>(made.bytes.data() + (r * 136 + i) * 2), to_bf16(row[i]));
    }
  }
  const std::string config = read_file(folder / "bf16/config.json");
  EXPECT_EQ(config.find("quantization_config"), std::string::npos);
  EXPECT_NE(config.find("deepseek_v3"), std::string::npos);
}

// With powers of two bf16 holds value times scale exactly, so the way back finds the same values
// (in a block whose largest was rounded down to a power of two, by half the scale).
TEST(CastCheckpointTest, PowerOfTwoScalesSurviveTheWayBack) {
  const TempFolder folder;
  ASSERT_TRUE(make_random_model(random_model_config(5), 5, DType::kBf16, folder / "model").ok());
  cast(folder / "model", folder / "fp8", DType::kF8E4M3, true);
  cast(folder / "fp8", folder / "bf16", DType::kBf16);
  cast(folder / "bf16", folder / "again", DType::kF8E4M3, true);
  cast(folder / "again", folder / "bf16-again", DType::kBf16);
  EXPECT_TRUE(same_tensors(*open(folder / "bf16"), *open(folder / "bf16-again")));
  EXPECT_NE(read_file(folder / "fp8/config.json").find("ue8m0"), std::string::npos);
  // The second layer's experts, of 132 columns, have a block that is cut.
  EXPECT_TRUE(open(folder / "fp8")->has("model.layers.4.mlp.experts.0.down_proj.weight_scale_inv"));
  EXPECT_FALSE(open(folder / "fp8")->has("model.embed_tokens.weight_scale_inv"));
  EXPECT_FALSE(open(folder / "fp8")->has("model.layers.4.mlp.gate.weight_scale_inv"));
}

TEST(CastCheckpointTest, ShardsAndIndexAreRewritten) {
  const TempFolder folder;
  fs::create_directory(folder / "from");
  // The weight and its scale in different files, one of which holds nothing else.
  const std::vector<std::byte> values(130 * 4, std::byte{0x38});  // ones
  const std::vector<float> scales = {2.0f, 3.0f};
  const std::string name = "model.layers.0.self_attn.o_proj.weight";
  ASSERT_TRUE(write_safetensors(
                  folder / "from/model-1-of-2.safetensors",
                  std::vector<TensorToWrite>{{name, DType::kF8E4M3, {130, 4}, ConstBytes(values)}})
                  .ok());
  ASSERT_TRUE(write_safetensors(
                  folder / "from/model-2-of-2.safetensors",
                  std::vector<TensorToWrite>{
                      {name + "_scale_inv", DType::kF32, {2, 1}, std::as_bytes(std::span(scales))}})
                  .ok());
  folder.write("from/model.safetensors.index.json",
               "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {\"" + name +
                   "\": \"model-1-of-2.safetensors\", \"" + name +
                   "_scale_inv\": \"model-2-of-2.safetensors\"}}");
  folder.write("from/tokenizer.json", "{}");
  const CastReport report = cast(folder / "from", folder / "to/", DType::kBf16);
  EXPECT_EQ(report.shards, 1u);
  const auto to = open(folder / "to");
  EXPECT_EQ(to->names(), std::vector<std::string>{name});
  const TensorView made = to->any_tensor(name).value();
  EXPECT_EQ(to_float(load_unaligned<bf16>(made.bytes.data())), 2.0f);
  EXPECT_EQ(to_float(load_unaligned<bf16>(made.bytes.data() + 129 * 4 * 2)), 3.0f);
  EXPECT_TRUE(fs::exists(folder / "to/tokenizer.json"));
  EXPECT_FALSE(fs::exists(folder / "to/model-2-of-2.safetensors"));
}

TEST(CastCheckpointTest, WhatIsThereStaysAndFailuresLeaveNothing) {
  const TempFolder folder;
  fs::create_directory(folder / "there");
  const auto refused = cast_checkpoint({kFp8Golden, folder / "there", DType::kBf16, false, {}});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("exists"), std::string::npos);
  const std::string v3 = EMBER_SOURCE_DIR "/tests/data/goldens_v3";
  const auto nothing = cast_checkpoint({v3, folder / "new", DType::kBf16, false, {}});
  ASSERT_FALSE(nothing.ok());
  EXPECT_NE(nothing.error().message.find("nothing to cast"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "new"));
  EXPECT_FALSE(fs::exists(folder / "new.part"));
}

}  // namespace
}  // namespace ember::testing
