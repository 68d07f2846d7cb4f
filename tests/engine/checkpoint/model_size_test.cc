// Model size: the published totals of the family, and those of files that are there.
#include "engine/checkpoint/model_size.h"

#include <gtest/gtest.h>

#include "engine/checkpoint/safetensors.h"

namespace ember::testing {
namespace {

TEST(ModelSizeTest, TotalsAreThoseOfThePublishedModels) {
  const std::pair<const char*, uint64_t> totals[] = {
      {"config_16B", 15'706'484'224},   {"v2_lite", 15'706'484'224},
      {"config_236B", 235'741'434'880}, {"v2", 235'741'434'880},
      {"config_671B", 671'026'419'200}, {"config_v3.1", 671'026'419'200},
      {"v3", 671'026'419'200},          {"moonlight", 15'960'110'208},
      {"kimi_k2", 1'026'408'232'448},   {"glm_4_7_flash", 29'943'393'920},
      {"youtu_llm_2b", 1'961'560'064},
  };
  for (const auto& [name, total] : totals) {
    const auto config =
        load_model_config_file(std::string(EMBER_SOURCE_DIR "/configs/models/") + name + ".json");
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(count_parameters(config.value()).total, total) << name;
  }
}

TEST(ModelSizeTest, ATokenVisitsItsOwnExpertsOnly) {
  const auto config = load_model_config_file(EMBER_SOURCE_DIR "/configs/models/config_671B.json");
  const ParameterCount count = count_parameters(config.value());
  EXPECT_EQ(count.total - count.active, uint64_t{58} * (256 - 8) * 3 * 7168 * 2048);
}

TEST(ModelSizeTest, TotalsAreThoseOfTheFiles) {
  for (const char* name : {"v2", "v2_lite", "v3", "moonlight", "glm_lite", "youtu"}) {
    const std::string folder = std::string(EMBER_SOURCE_DIR "/tests/data/goldens_") + name;
    const auto config = load_model_config(folder);
    const auto file = SafetensorsFile::open(folder + "/model.safetensors");
    uint64_t total = 0;
    for (const auto& [tensor, view] : file.value()->tensors()) total += view.elements();
    EXPECT_EQ(count_parameters(config.value()).total, total) << name;
  }
}

}  // namespace
}  // namespace ember::testing
