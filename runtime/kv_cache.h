// Keys and values of all sequences: per layer two tensors [kv_heads, slots, context, head_dim] in
// f16, f32 or q8_0. Memory is mapped but untouched until a worker writes it.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/lockstep.h"
#include "runtime/models/architecture.h"
#include "runtime/page_policy.h"
#include "topology/node_memory.h"

namespace lockstep {

class KvCache {
 public:
  // Throws Error(no_resource) if the sizes overflow or the memory cannot be mapped, Error(usage) if
  // the heads of the model do not fit the type.
  // Every head lies on the node of the workers that read it in decoding.
  KvCache(const ModelConfig& config, std::size_t slots, std::size_t context, KvType type,
          const PagePolicy& pages, const topology::Placement& placement);

  const std::vector<LayerCache>& layers() const noexcept { return layers_; }
  std::size_t bytes() const noexcept { return buffer_.size(); }
  // Keys or values of one head in all slots of one layer.
  struct Part {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    unsigned os_node = 0;  // of its readers
  };
  const std::vector<Part>& parts() const noexcept { return parts_; }

  // Positions held by a slot.
  std::size_t length(std::size_t slot) const { return lengths_.at(slot); }
  void set_length(std::size_t slot, std::size_t length) { lengths_.at(slot) = length; }

 private:
  topology::NodeBuffer buffer_;
  std::vector<LayerCache> layers_;
  std::vector<Part> parts_;
  std::vector<std::size_t> lengths_;
};

}  // namespace lockstep
