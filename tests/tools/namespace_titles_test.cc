// Namespaces of one model are told apart by what differs, others by the model alone.
#include "tools/commands/look/namespace_titles.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

NamespaceHash name_of(uint8_t number) {
  NamespaceHash name;
  name.bytes.fill(number);
  return name;
}

TEST(NamespaceTitlesTest, OneOfAModelIsCalledByIt) {
  const std::vector<NamespaceNote> notes = {
      {.fields = {{"latents", "bf16"}}, .model = "demo", .tokenizer_folder = {}},
      {.fields = {{"latents", "fp8"}}, .model = "other", .tokenizer_folder = {}}};
  EXPECT_EQ(namespace_titles(notes, {name_of(1), name_of(2)}),
            (std::vector<std::string>{"demo", "other"}));
}

TEST(NamespaceTitlesTest, WhatDiffersTellsThemApart) {
  const std::vector<NamespaceNote> notes = {
      {.fields = {{"layout", "v3"}, {"latents", "bf16"}}, .model = "demo", .tokenizer_folder = {}},
      {.fields = {{"layout", "v3"}, {"latents", "fp8"}}, .model = "demo", .tokenizer_folder = {}}};
  EXPECT_EQ(namespace_titles(notes, {name_of(1), name_of(2)}),
            (std::vector<std::string>{"demo, latents bf16", "demo, latents fp8"}));
}

TEST(NamespaceTitlesTest, AWordTellsThemApartBeforeASentenceDoes) {
  const std::string front = "mla layers=6 block_tokens=64 ";
  const auto note = [&front](const std::string& latents, const std::string& sums) {
    return NamespaceNote{
        .fields = {{"layout", front + latents}, {"latents", latents}, {"gemm", sums}},
        .model = "demo",
        .tokenizer_folder = {}};
  };
  const std::string dots = "\xe2\x80\xa6";
  const std::string stored = "bf16 activations, fp32 sums";
  const std::string int8 = stored + ", int8 weights by row";
  EXPECT_EQ(namespace_titles({note("bf16", stored), note("fp8", stored)},
                             {name_of(1), name_of(2)}),
            (std::vector<std::string>{"demo, latents bf16", "demo, latents fp8"}));
  EXPECT_EQ(namespace_titles({note("bf16", stored), note("fp8", stored), note("bf16", int8)},
                             {name_of(1), name_of(2), name_of(3)}),
            (std::vector<std::string>{"demo, latents bf16, gemm " + dots + "ions, fp32 sums",
                                      "demo, latents fp8",
                                      "demo, latents bf16, gemm " + dots + " weights by row"}));
}

TEST(NamespaceTitlesTest, WithoutADifferenceOrANoteTheDigitsDo) {
  const NamespaceNote plain{.fields = {}, .model = "demo", .tokenizer_folder = {}};
  EXPECT_EQ(namespace_titles({plain, plain, NamespaceNote{}},
                             {name_of(0x11), name_of(0x22), name_of(0x33)}),
            (std::vector<std::string>{"demo, 111111111111", "demo, 222222222222",
                                      "333333333333"}));
}

}  // namespace
}  // namespace ember
