// Converted names: part by part, the last but one by its place in the layer.
#include "engine/checkpoint/converted_names.h"

#include <array>
#include <utility>
#include <vector>

namespace ember {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

// Modules by the conversion's name; the gate of the router keeps its own.
constexpr std::array<Names, 17> kModules = {{
    {"embed", "embed_tokens"}, {"norm", "norm"}, {"head", "lm_head"},
    {"attn_norm", "input_layernorm"}, {"ffn_norm", "post_attention_layernorm"},
    {"wq", "q_proj"}, {"wq_a", "q_a_proj"}, {"q_norm", "q_a_layernorm"}, {"wq_b", "q_b_proj"},
    {"wkv_a", "kv_a_proj_with_mqa"}, {"kv_norm", "kv_a_layernorm"}, {"wkv_b", "kv_b_proj"},
    {"wo", "o_proj"}, {"gate", "gate"}, {"w1", "gate_proj"}, {"w2", "down_proj"},
    {"w3", "up_proj"},
}};
constexpr std::array<Names, 3> kLeaves = {
    {{"weight", "weight"}, {"scale", "weight_scale_inv"}, {"bias", "e_score_correction_bias"}}};

template <size_t N>
std::string_view find(const std::array<Names, N>& names, std::string_view converted) {
  for (const auto& [from, to] : names) {
    if (from == converted) return to;
  }
  return {};
}

std::vector<std::string_view> split(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t dot; (dot = name.find('.')) != std::string_view::npos;) {
    parts.push_back(name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  parts.push_back(name);
  return parts;
}

}  // namespace

std::string published_name(std::string_view converted) {
  std::vector<std::string_view> parts = split(converted);
  if (parts.size() < 2) return std::string(converted);
  std::string_view& leaf = parts.back();
  std::string_view& module = parts[parts.size() - 2];
  leaf = find(kLeaves, leaf);
  module = find(kModules, module);
  if (leaf.empty() || module.empty()) return std::string(converted);
  std::string name = module == "lm_head" ? "" : "model.";
  for (size_t i = 0; i < parts.size(); ++i) {
    // Layers' two halves, and what lies between them and a tensor's own name.
    const std::string_view part = i + 2 >= parts.size() ? parts[i]
                                  : parts[i] == "attn"  ? "self_attn"
                                  : parts[i] == "ffn"   ? "mlp"
                                                        : parts[i];
    name.append(part).append(i + 1 < parts.size() ? "." : "");
  }
  return name;
}

}  // namespace ember
