// Keys and values of all sequences: per layer two tensors [kv_heads, blocks, kKvBlock, head_dim] in
// f16, f32 or q8_0, and the table of which blocks a slot has (kv_blocks.h). Memory is mapped but
// untouched until a worker writes it.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/lockstep.h"
#include "runtime/kv_blocks.h"
#include "runtime/models/architecture.h"
#include "runtime/page_policy.h"
#include "topology/node_memory.h"

namespace lockstep {

// Positions of a block: what attention reads as one stretch. A head of 64 values in f16 is then one
// page, so that a block costs no more than its table entry.
inline constexpr std::size_t kKvBlock = 32;
static_assert(kKvBlock % ops::kAttentionStretch == 0);

// The number of blocks that `slots` sequences of `context` positions need at most, and one more for
// copies where they share.
std::size_t kv_blocks_for(std::size_t slots, std::size_t context, bool share) noexcept;
// Bytes of a block in all layers. Throws Error(usage) if the heads of the model do not fit the
// type.
std::size_t kv_block_bytes(const ModelConfig& config, KvType type);

class KvCache {
 public:
  // Throws Error(no_resource) if the sizes overflow or the memory cannot be mapped, Error(usage) if
  // the heads of the model do not fit the type.
  // Every head lies on the node of the workers that read it in decoding.
  KvCache(const ModelConfig& config, const KvBlocks::Options& options, KvType type,
          const PagePolicy& pages, const topology::Placement& placement);

  const std::vector<LayerCache>& layers() const noexcept { return layers_; }
  // i32 [slots, blocks of a slot]; what it says changes with the blocks.
  ops::Tensor table() const noexcept;
  std::size_t bytes() const noexcept { return buffer_.size(); }
  // Keys or values of one head in all blocks of one layer.
  struct Part {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    unsigned os_node = 0;  // of its readers
  };
  const std::vector<Part>& parts() const noexcept { return parts_; }

  KvBlocks& blocks() noexcept { return blocks_; }
  const KvBlocks& blocks() const noexcept { return blocks_; }
  // Does what KvBlocks::take_copies() says.
  void copy_blocks();

 private:
  KvBlocks blocks_;
  topology::NodeBuffer buffer_;
  std::vector<LayerCache> layers_;
  std::vector<Part> parts_;
};

}  // namespace lockstep
