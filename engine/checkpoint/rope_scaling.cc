// RoPE of a config: its two spellings, YaRN's frequencies and the factors it puts on the softmax.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "engine/checkpoint/model_config_parts.h"

namespace ember {
namespace {

// The reference's field for field defaults, where a config leaves them out.
constexpr double kDefaultTheta = 10000;
constexpr double kDefaultBetaFast = 32;
constexpr double kDefaultBetaSlow = 1;
constexpr float kMostFactor = 1e6f;

struct Rope {
  double theta = kDefaultTheta;
  YarnConfig yarn;
};

bool same(const Rope& a, const Rope& b) {
  const YarnConfig& x = a.yarn;
  const YarnConfig& y = b.yarn;
  return a.theta == b.theta && x.active == y.active && x.factor == y.factor &&
         x.original_positions == y.original_positions && x.beta_fast == y.beta_fast &&
         x.beta_slow == y.beta_slow && x.mscale == y.mscale &&
         x.mscale_all_dim == y.mscale_all_dim && x.attention_factor == y.attention_factor &&
         x.truncate == y.truncate;
}

Error refuse(const JsonObject& json, const std::string& field, double found,
             const std::string& expected) {
  return {ErrorCode::kInvalidArgument,
          json.name(field) + ": found " + shown_number(found) + ", expected " + expected};
}

Result<double> number_or(const JsonObject& json, const std::string& field, double absent) {
  if (!json.has(field)) return absent;
  return json.number(field);
}

Result<std::string> rope_type(const JsonObject& json) {
  if (!json.has("rope_type")) {
    return json.has("type") ? json.text("type") : Result<std::string>(std::string("default"));
  }
  EMBER_ASSIGN(const std::string type, json.text("rope_type"));
  if (json.has("type")) {
    EMBER_ASSIGN(const std::string synonym, json.text("type"));
    if (synonym != type) {
      return Error{ErrorCode::kInvalidArgument, json.name("type") + ": found " + synonym +
                                                    ", expected " + type +
                                                    " as in its synonym rope_type"};
    }
  }
  return type;
}

Status check_yarn(const JsonObject& json, const YarnConfig& yarn) {
  if (!(yarn.factor >= 1)) return refuse(json, "factor", yarn.factor, "at least 1");
  if (!(yarn.original_positions >= 1)) {
    return refuse(json, "original_max_position_embeddings", yarn.original_positions, "at least 1");
  }
  if (!(yarn.beta_slow > 0)) return refuse(json, "beta_slow", yarn.beta_slow, "more than 0");
  if (!(yarn.beta_fast >= yarn.beta_slow)) {
    return refuse(json, "beta_fast", yarn.beta_fast,
                  "at least beta_slow, " + shown_number(yarn.beta_slow));
  }
  if (yarn.mscale < 0) return refuse(json, "mscale", yarn.mscale, "0 or more");
  if (yarn.mscale_all_dim < 0) {
    return refuse(json, "mscale_all_dim", yarn.mscale_all_dim, "0 or more");
  }
  if (yarn.attention_factor < 0) {
    return refuse(json, "attention_factor", yarn.attention_factor, "more than 0");
  }
  return {};
}

Result<YarnConfig> read_yarn(const JsonObject& json, double max_positions) {
  YarnConfig yarn;
  yarn.active = true;
  EMBER_ASSIGN(yarn.original_positions,
               number_or(json, "original_max_position_embeddings", max_positions));
  EMBER_ASSIGN(yarn.factor, number_or(json, "factor", max_positions / yarn.original_positions));
  EMBER_ASSIGN(yarn.beta_fast, number_or(json, "beta_fast", kDefaultBetaFast));
  EMBER_ASSIGN(yarn.beta_slow, number_or(json, "beta_slow", kDefaultBetaSlow));
  EMBER_ASSIGN(yarn.mscale, number_or(json, "mscale", 0));
  EMBER_ASSIGN(yarn.mscale_all_dim, number_or(json, "mscale_all_dim", 0));
  EMBER_ASSIGN(yarn.attention_factor, number_or(json, "attention_factor", 0));
  if (json.has("truncate")) {
    EMBER_ASSIGN(yarn.truncate, json.boolean("truncate"));
  }
  EMBER_TRY(check_yarn(json, yarn));
  return yarn;
}

Result<Rope> read_spelling(const JsonObject& json, double theta, double max_positions) {
  Rope rope;
  EMBER_ASSIGN(rope.theta, number_or(json, "rope_theta", theta));
  if (!(rope.theta > 1)) return refuse(json, "rope_theta", rope.theta, "more than 1");
  EMBER_ASSIGN(const double partial, number_or(json, "partial_rotary_factor", 1));
  if (partial != 1) return refuse(json, "partial_rotary_factor", partial, "1");
  EMBER_ASSIGN(const std::string type, rope_type(json));
  if (type == "yarn") {
    EMBER_ASSIGN(rope.yarn, read_yarn(json, max_positions));
  } else if (type != "default") {
    return Error{ErrorCode::kUnsupported, json.name("rope_type") + ": found " + json_quote(type) +
                                              ", expected \"yarn\" or \"default\""};
  }
  return rope;
}

double mscale_factor(double scale, double mscale) {
  return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

// The pair index at which a wave turns `rotations` times over the original context.
double correction_index(const ModelConfig& config, double rotations) {
  return config.rope_dim *
         std::log(config.yarn.original_positions / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(config.rope_theta));
}

}  // namespace

// Each field may be right alone, and their product still no number that the softmax can use.
Status check_rope_factors(const JsonObject& json, const ModelConfig& config) {
  const auto usable = [](float factor) { return factor > 0 && factor <= kMostFactor; };
  if (!usable(config.rope_amplitude())) {
    return refuse(json, "rope_scaling", config.rope_amplitude(),
                  "an attention factor (of factor, mscale and mscale_all_dim) of more than 0 and "
                  "at most " +
                      shown_number(kMostFactor));
  }
  if (!usable(config.softmax_scale())) {
    return refuse(json, "rope_scaling", config.softmax_scale(),
                  "a softmax scale (of factor and mscale_all_dim) of more than 0 and at most " +
                      shown_number(kMostFactor));
  }
  return {};
}

Status read_rope(const JsonObject& json, ModelConfig& config) {
  EMBER_ASSIGN(const double theta, number_or(json, "rope_theta", kDefaultTheta));
  if (!(theta > 1)) return refuse(json, "rope_theta", theta, "more than 1");
  std::optional<Rope> rope;
  for (const char* spelling : {"rope_scaling", "rope_parameters"}) {
    if (!json.has(spelling)) continue;
    EMBER_ASSIGN(const JsonObject fields, json.object(spelling));
    EMBER_ASSIGN(const Rope read, read_spelling(fields, theta, config.max_positions));
    if (rope && !same(*rope, read)) {
      return Error{ErrorCode::kInvalidArgument,
                   json.name(spelling) + ": contradicts rope_scaling, expected the same values"};
    }
    rope = read;
  }
  config.rope_theta = rope ? rope->theta : theta;
  if (rope) config.yarn = rope->yarn;
  return check_rope_factors(json, config);
}

float ModelConfig::softmax_scale() const {
  double scale = 1.0 / std::sqrt(static_cast<double>(nope_dim) + rope_dim);
  if (yarn.active && yarn.mscale_all_dim != 0) {
    const double m = mscale_factor(yarn.factor, yarn.mscale_all_dim);
    scale *= m * m;
  }
  return static_cast<float>(scale);
}

float ModelConfig::rope_amplitude() const {
  if (!yarn.active) return 1;
  if (yarn.attention_factor != 0) return static_cast<float>(yarn.attention_factor);
  if (yarn.mscale == 0 || yarn.mscale_all_dim == 0) {
    return static_cast<float>(mscale_factor(yarn.factor, 1));
  }
  return static_cast<float>(mscale_factor(yarn.factor, yarn.mscale) /
                            mscale_factor(yarn.factor, yarn.mscale_all_dim));
}

std::vector<float> ModelConfig::inv_freq() const {
  double low = 0;
  double high = 0;
  if (yarn.active) {
    low = correction_index(*this, yarn.beta_fast);
    high = correction_index(*this, yarn.beta_slow);
    if (yarn.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, rope_dim - 1.0);
    if (low == high) high += 0.001;
  }
  std::vector<float> frequencies(rope_dim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const auto index = static_cast<double>(i);
    double frequency = std::pow(rope_theta, -2.0 * index / rope_dim);
    if (yarn.active) {
      const double ramp = std::clamp((index - low) / (high - low), 0.0, 1.0);
      frequency = frequency / yarn.factor * ramp + frequency * (1 - ramp);
    }
    frequencies[i] = static_cast<float>(frequency);
  }
  return frequencies;
}

}  // namespace ember
