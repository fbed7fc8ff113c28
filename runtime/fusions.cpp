// The table of fusions.
#include "runtime/fusions.h"

#include <algorithm>
#include <string>

#include "lockstep/error.h"

namespace lockstep {
namespace {

constexpr Fusion kFusions[] = {
    {"norm_quantize", "rms_norm", "quantize"},
    {"norm_quantize", "rms_norm", "matmul"},  // dense weights take f32
    {"norm_quantize", "layer_norm", "quantize"},
    {"norm_quantize", "layer_norm", "matmul"},
    {"matmul_rope", "matmul", "rope"},
    {"cache_write", "matmul", "cache_write"},
    {"cache_write", "rope", "cache_write"},
    {"matmul_add", "matmul", "add"},
    {"gate_up", "matmul", "swiglu"},
    {"gate_up", "swiglu", "quantize"},
    {"gate_up", "matmul", "geglu"},
    {"gate_up", "geglu", "quantize"},
    {"gate_up", "expert_matmul", "swiglu"},
    {"gate_up", "expert_matmul", "geglu"},
    {"expert_sum", "expert_matmul", "weighted_sum"},
};

}  // namespace

std::span<const Fusion> fusions() noexcept { return kFusions; }

const Fusion* find_fusion(std::string_view producer, std::string_view consumer) noexcept {
  const auto* const found = std::ranges::find_if(kFusions, [&](const Fusion& fusion) {
    return fusion.producer == producer && fusion.consumer == consumer;
  });
  return found == std::end(kFusions) ? nullptr : found;
}

void check_fusion_name(std::string_view name) {
  if (std::ranges::find(kFusions, name, &Fusion::name) != std::end(kFusions)) return;
  std::string known;
  std::string_view last;
  for (const Fusion& fusion : kFusions) {
    if (fusion.name == last) continue;
    known += (known.empty() ? "" : ", ") + std::string(fusion.name);
    last = fusion.name;
  }
  throw Error(ErrorCode::usage,
              "there is no fusion \"" + std::string(name) + "\"; there are " + known);
}

}  // namespace lockstep
