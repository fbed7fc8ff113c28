// What the machine allows at this moment, with the workers that an engine has: reading memory, and
// multiplying in registers. Measured between the samples of a bench, so that a share of the roof
// means something on a machine whose speed drifts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/lockstep.h"
#include "quant/isa.h"
#include "topology/node_memory.h"

namespace lockstep::bench {

// Touches the memory for the first time, each worker its own part.
void touch_in_parts(const Engine& engine, const topology::NodeBuffer& buffer);
// One pass over the memory, each worker over its own part, in bytes per second.
double stream_rate(const Engine& engine, const topology::NodeBuffer& buffer);

// Reads a buffer much larger than the caches, each worker its own first-touched part.
class StreamRoof {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;
  explicit StreamRoof(const Engine& engine, std::size_t bytes = kBytes);

  // One pass over the buffer, in bytes per second.
  double measure() { return stream_rate(engine_, buffer_); }

 private:
  Engine engine_;
  topology::NodeBuffer buffer_;
};

// All workers at the loops of quant/peaks.h for a few milliseconds, in multiply-adds per second: of
// 8-bit numbers, or of f32 for dense weights.
double measure_peak(const Engine& engine, quant::Isa isa, bool dense);

}  // namespace lockstep::bench
