// Test data: the same on every machine, since the standard fixes the generator and the conversion
// is ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace lockstep::test {

class Random {
 public:
  explicit Random(std::uint32_t seed) : generator_(seed) {}

  std::uint32_t bits() { return static_cast<std::uint32_t>(generator_()); }
  std::size_t below(std::size_t n) { return bits() % n; }
  // Uniform in [-range, range).
  float value(float range = 1.0f) {
    return range * (static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f);
  }
  std::vector<float> values(std::size_t n, float range = 1.0f) {
    std::vector<float> all(n);
    for (float& one : all) one = value(range);
    return all;
  }

 private:
  std::mt19937 generator_;
};

}  // namespace lockstep::test
