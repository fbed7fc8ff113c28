// What every bench shares: medians, and the streaming-read roof measured in the same run with the
// same pinned workers. Absolute times drift on shared machines; ratios taken in one run do not.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "lockstep/lockstep.h"

namespace lockstep::perf {

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Samples {
  std::vector<double> values;

  void add(double value) { values.push_back(value); }
  double median() const;
  double minimum() const;
  double maximum() const;
  double mean() const;
  // Sample standard deviation; 0 for fewer than two values.
  double deviation() const;
};

// Reads a buffer much larger than the caches, each worker its own first-touched part.
class StreamRoof {
 public:
  StreamRoof(const Engine& engine, std::size_t bytes);
  ~StreamRoof();
  StreamRoof(const StreamRoof&) = delete;
  StreamRoof& operator=(const StreamRoof&) = delete;

  // One pass over the buffer, in bytes per second.
  double measure();

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace lockstep::perf
