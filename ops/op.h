// What a graph node does. One class per op, hidden in its own .cpp; ops.h has the functions that
// build nodes. An op validates shapes, says how its output is divided among workers and what it
// reads of its inputs, and computes parts of it. It knows neither threads nor barriers: the
// planner derives those from what is declared here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ops/split.h"
#include "ops/tensor.h"

namespace lockstep::ops {

// How a node's output is divided among the workers.
struct Partition {
  enum class Kind : unsigned char {
    rows,        // dimension 0..rank-2, flattened: whole tokens
    columns,     // the last dimension: features, the same ones for every token
    units,       // op-specific units (attention: head x token); only this op can use it
    replicated,  // every worker computes all of it into a copy of its own
  };
  Kind kind = Kind::rows;
  std::size_t extent = 0;  // rows, columns or units
  std::size_t align = 1;

  bool operator==(const Partition&) const noexcept = default;
  Slice slice(const Lane& lane) const noexcept {
    return kind == Kind::replicated ? Slice{0, extent} : split(extent, align, lane);
  }
};

// What a worker reads of one input, given its slice of the output.
enum class Reach : unsigned char {
  own,  // exactly the elements that it would have written itself under the same partition
  all,  // anything
};

// What run() gets. Inputs and output are already this worker's copies where they are replicated.
struct Io {
  std::span<const Tensor> inputs;
  Tensor output;
  Partition partition;
  Slice part;                    // of the partition's extent: what to compute
  std::byte* scratch = nullptr;  // this worker's own, 64-byte aligned, scratch_bytes() long
  unsigned node = 0;             // Lane::node of this worker
};

class Op {
 public:
  Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  virtual ~Op() = default;

  // "matmul"; and what to show in a printed plan beside it ("blk.0.attn_q q4_0/avx2/r8"), maybe
  // empty.
  virtual std::string_view name() const noexcept = 0;
  virtual std::string detail() const { return {}; }

  // The output type for these inputs. Throws ShapeError.
  virtual TensorType infer(std::span<const TensorType> inputs) const = 0;
  // The input whose memory the output is (the op writes in place), or -1.
  virtual int alias() const noexcept { return -1; }

  // The division this op likes best.
  virtual Partition partition(std::span<const TensorType> inputs,
                              const TensorType& output) const = 0;
  // Whether the op can work under `other` instead (so that it can join the stage of its producer).
  virtual bool accepts(const Partition& other) const {
    (void)other;
    return false;
  }
  // True for small per-token work that each worker may repeat for itself to save a barrier.
  virtual bool replicable() const noexcept { return false; }
  virtual Reach reach(std::size_t input) const = 0;

  // Scratch for one worker in a team of `workers`.
  virtual std::size_t scratch_bytes(std::span<const TensorType> inputs, const TensorType& output,
                                    unsigned workers) const {
    (void)inputs, (void)output, (void)workers;
    return 0;
  }
  // Weight bytes that the whole team reads per run: the figure behind GB/s.
  virtual std::size_t weight_bytes() const noexcept { return 0; }

  // Units of the partition that are worth being handed out by themselves, so that a worker who is
  // done early can take work over; 0: the work is too small for that, or gets slower by it.
  virtual std::size_t chunk_units(const TensorType& output) const noexcept {
    (void)output;
    return 0;
  }

  // Computes io.part. Parts are computed in any order, by any worker, at the same time.
  virtual void run(const Io& io) const noexcept = 0;
};

}  // namespace lockstep::ops
