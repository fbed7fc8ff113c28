// Reading hyperparameters. Unknown variants are refused by name, never guessed.
#include "runtime/models/config.h"

#include <cmath>

#include "runtime/gguf.h"

namespace lockstep {
namespace {

// Bounds far above any real model; they keep products of extents far from overflow.
constexpr std::uint32_t kMaxLayers = 1024;
constexpr std::uint32_t kMaxWidth = 1 << 20;
constexpr std::uint32_t kMaxContext = 1 << 24;

class Keys {
 public:
  Keys(const GgufFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  std::string key(const char* name) const { return prefix_ + "." + name; }
  std::size_t extent(const char* name, std::uint32_t maximum) const {
    return checked(name, file_.require_u32(key(name)), maximum);
  }
  std::size_t extent_or(const char* name, std::uint32_t maximum, std::size_t fallback) const {
    const auto value = file_.u32(key(name));
    return value ? checked(name, *value, maximum) : fallback;
  }
  double positive_or(const char* name, double fallback) const {
    const auto value = file_.f32(key(name));
    if (!value) return fallback;
    if (!std::isfinite(*value) || *value <= 0.0f) {
      file_.refuse("the key \"" + key(name) + "\" must be a positive number, is " +
                   std::to_string(*value));
    }
    return *value;
  }

 private:
  std::size_t checked(const char* name, std::uint32_t value, std::uint32_t maximum) const {
    if (value == 0 || value > maximum) {
      file_.refuse("the key \"" + key(name) + "\" must be 1 to " + std::to_string(maximum) +
                   ", is " + std::to_string(value));
    }
    return value;
  }

  const GgufFile& file_;
  std::string prefix_;
};

// YaRN: position_scale is set.
void read_yarn(const GgufFile& file, const Keys& keys, ModelConfig& config) {
  const std::string unknown = keys.key("rope.scaling.yarn_log_multiplier");
  if (file.find(unknown)) file.refuse("the key \"" + unknown + "\" is not supported");
  ops::RopeParams::Yarn& yarn = config.rope.yarn;
  yarn.original_context =
      keys.extent_or("rope.scaling.original_context_length", kMaxContext, config.context);
  yarn.fast = keys.positive_or("rope.scaling.yarn_beta_fast", yarn.fast);
  yarn.slow = keys.positive_or("rope.scaling.yarn_beta_slow", yarn.slow);
  yarn.extrapolation = keys.positive_or("rope.scaling.yarn_ext_factor", yarn.extrapolation);
  // Two spellings of a further factor on the paper's.
  const double older = keys.positive_or("rope.scaling.attn_factor", 1.0);
  yarn.magnitude = ops::yarn_magnitude(config.rope.position_scale) *
                   keys.positive_or("rope.scaling.yarn_attn_factor", older);
}

void read_rope(const GgufFile& file, const Keys& keys, const ArchitectureTraits& traits,
               ModelConfig& config) {
  ops::RopeParams& rope = config.rope;
  rope.head_dim = config.head_dim;
  rope.pairing = traits.pairing;
  rope.rotary_dims = keys.extent_or("rope.dimension_count", kMaxWidth, config.head_dim);
  if (rope.rotary_dims > config.head_dim || rope.rotary_dims % 2 != 0) {
    file.refuse("the key \"" + keys.key("rope.dimension_count") +
                "\" must be even and at most the head size " + std::to_string(config.head_dim) +
                ", is " + std::to_string(rope.rotary_dims));
  }
  rope.base = keys.positive_or("rope.freq_base", 10000.0);
  const std::string scaling = file.string(keys.key("rope.scaling.type")).value_or("none");
  if (scaling == "linear" || scaling == "yarn") {
    rope.position_scale = 1.0 / keys.positive_or("rope.scaling.factor", 1.0);
  } else if (scaling != "none") {
    file.refuse("RoPE scaling \"" + scaling + "\" (key \"" + keys.key("rope.scaling.type") +
                "\") is not supported; none, linear and yarn are");
  } else {
    // The old spelling of linear scaling.
    rope.position_scale = 1.0 / keys.positive_or("rope.scale_linear", 1.0);
  }
  if (scaling == "yarn") read_yarn(file, keys, config);
}

}  // namespace

ModelConfig ModelConfig::read(const GgufFile& file, const ArchitectureTraits& traits,
                              std::size_t vocabulary) {
  const Keys keys(file, traits.name);
  ModelConfig config;
  config.architecture = traits.name;
  config.layers = keys.extent("block_count", kMaxLayers);
  config.width = keys.extent("embedding_length", kMaxWidth);
  config.context = keys.extent("context_length", kMaxContext);
  config.feed_forward = keys.extent("feed_forward_length", kMaxWidth);
  config.heads = keys.extent("attention.head_count", kMaxWidth);
  config.kv_heads = keys.extent_or("attention.head_count_kv", kMaxWidth, config.heads);
  if (config.heads % config.kv_heads != 0) {
    file.refuse(std::to_string(config.heads) + " attention heads cannot be shared among " +
                std::to_string(config.kv_heads) + " key/value heads (key \"" +
                keys.key("attention.head_count_kv") + "\")");
  }
  if (config.width % config.heads != 0 && !file.find(keys.key("attention.key_length"))) {
    file.refuse("the width " + std::to_string(config.width) + " is not a multiple of the " +
                std::to_string(config.heads) + " heads and the key \"" +
                keys.key("attention.key_length") + "\" is missing");
  }
  config.head_dim = keys.extent_or("attention.key_length", kMaxWidth, config.width / config.heads);
  const std::size_t value_dim =
      keys.extent_or("attention.value_length", kMaxWidth, config.head_dim);
  if (value_dim != config.head_dim) {
    file.refuse("keys of length " + std::to_string(config.head_dim) + " with values of length " +
                std::to_string(value_dim) + " are not supported");
  }
  if (config.head_dim > kMaxWidth / config.heads || config.head_dim % 2 != 0) {
    file.refuse("a head size of " + std::to_string(config.head_dim) + " with " +
                std::to_string(config.heads) + " heads is not supported (it must be even)");
  }
  config.norm_epsilon =
      static_cast<float>(keys.positive_or("attention.layer_norm_rms_epsilon", 1e-5));
  if (file.u32(keys.key("expert_count")).value_or(0) != 0) {
    file.refuse("mixture-of-experts models are not supported (key \"" + keys.key("expert_count") +
                "\")");
  }
  config.vocabulary = vocabulary;
  read_rope(file, keys, traits, config);
  return config;
}

}  // namespace lockstep
