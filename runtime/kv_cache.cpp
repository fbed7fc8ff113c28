// One mapping for the whole cache, cut into layers.
#include "runtime/kv_cache.h"

#include <cstring>
#include <new>
#include <string>

#include "ops/ops.h"

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

ops::DType dtype_of(KvType type, const ModelConfig& config) {
  switch (type) {
    case KvType::f16:
      return ops::DType::f16;
    case KvType::f32:
      return ops::DType::f32;
    case KvType::q8_0:
      break;
  }
  if (config.head_dim % ops::kCacheBlock != 0) {
    throw Error(ErrorCode::usage,
                "a q8_0 key/value cache needs heads of a multiple of " +
                    std::to_string(ops::kCacheBlock) + " values, and this model's have " +
                    std::to_string(config.head_dim) + "; use an f16 or f32 cache");
  }
  return ops::DType::q8_0;
}

// The node of the worker that attends to the first query of this head when one token is decoded:
// queries are split evenly among the workers, head after head.
unsigned reader_node(const topology::Placement& placement, std::size_t head, std::size_t heads) {
  return placement.workers[head * placement.workers.size() / heads].os_node;
}

}  // namespace

std::size_t kv_blocks_for(std::size_t slots, std::size_t context, bool share) noexcept {
  return slots * ((context + kKvBlock - 1) / kKvBlock) + (share ? 1 : 0);
}

std::size_t kv_block_bytes(const ModelConfig& config, KvType type) {
  const ops::TensorType block{dtype_of(type, config), {kKvBlock, config.head_dim}};
  return 2 * config.layers * config.kv_heads * kKvBlock * block.row_bytes();
}

KvCache::KvCache(const ModelConfig& config, const KvBlocks::Options& options, KvType type,
                 const PagePolicy& pages, const topology::Placement& placement)
    : blocks_(options) {
  const ops::TensorType tensor{dtype_of(type, config),
                               {config.kv_heads, options.blocks, kKvBlock, config.head_dim}};
  const std::size_t positions =
      checked_product(checked_product(config.kv_heads, options.blocks), kKvBlock);
  const std::size_t bytes = checked_product(positions, tensor.row_bytes());
  const std::size_t total = checked_product(bytes, checked_product(2, config.layers));
  try {
    buffer_ = pages.allocate(total);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::no_resource,
                "no memory for a key/value cache of " + std::to_string(total >> 20) +
                    " MiB; use a smaller context, fewer slots or a smaller type of cache");
  }
  std::byte* at = buffer_.data();
  for (std::size_t layer = 0; layer < config.layers; ++layer, at += 2 * bytes) {
    layers_.push_back({ops::make_tensor(tensor, at), ops::make_tensor(tensor, at + bytes)});
    for (std::size_t head = 0; head < 2 * config.kv_heads; ++head) {
      const std::size_t size = bytes / config.kv_heads;
      const unsigned node = reader_node(placement, head % config.kv_heads, config.kv_heads);
      parts_.push_back({at + head * size, size, node});
      pages.place(parts_.back().data, size, node);
    }
  }
}

ops::Tensor KvCache::table() const noexcept {
  const auto* const entries = blocks_.table().data();
  return ops::make_tensor({ops::DType::i32, {blocks_.options().slots, blocks_.blocks_per_slot()}},
                          const_cast<std::int32_t*>(entries));
}

void KvCache::copy_blocks() {
  const std::size_t blocks = blocks_.options().blocks;
  for (const KvBlocks::Copy& copy : blocks_.take_copies()) {
    for (const Part& part : parts_) {
      const std::size_t block_bytes = part.bytes / blocks;
      std::memcpy(part.data + copy.to * block_bytes, part.data + copy.from * block_bytes,
                  copy.positions * (block_bytes / kKvBlock));
    }
  }
}

}  // namespace lockstep
