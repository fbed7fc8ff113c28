// One mapping for the whole cache, cut into layers.
#include "runtime/kv_cache.h"

#include <new>

namespace lockstep {
namespace {

std::size_t checked_product(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw Error(
        ErrorCode::no_resource,
        "the key/value cache is too large to address; use a smaller context or fewer slots");
  }
  return product;
}

}  // namespace

KvCache::KvCache(const ModelConfig& config, std::size_t slots, std::size_t context, KvType type)
    : lengths_(slots, 0) {
  const ops::TensorType tensor{type == KvType::f16 ? ops::DType::f16 : ops::DType::f32,
                               {slots, context, config.kv_width()}};
  const std::size_t element = type == KvType::f16 ? 2 : 4;
  const std::size_t bytes =
      checked_product(checked_product(slots, context), checked_product(config.kv_width(), element));
  const std::size_t total = checked_product(bytes, checked_product(2, config.layers));
  try {
    buffer_ = topology::NodeBuffer(total);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::no_resource,
                "no memory for a key/value cache of " + std::to_string(total >> 20) +
                    " MiB; use a smaller context, fewer slots or an f16 cache");
  }
  std::byte* at = buffer_.data();
  for (std::size_t layer = 0; layer < config.layers; ++layer, at += 2 * bytes) {
    layers_.push_back({ops::make_tensor(tensor, at), ops::make_tensor(tensor, at + bytes)});
  }
}

}  // namespace lockstep
