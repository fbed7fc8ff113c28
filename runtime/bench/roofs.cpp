// The roofs, measured by the workers of an engine where they are pinned.
#include "runtime/bench/roofs.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "ops/split.h"
#include "quant/peaks.h"
#include "runtime/bench/samples.h"
#include "runtime/engine.h"

namespace lockstep::bench {
namespace {

constexpr std::size_t kPage = 4096;
// Some milliseconds, so that waking the workers does not count.
constexpr std::uint64_t kPeakRounds = 2'000'000;

// Eight independent sums, so that the loads and not the additions are the limit.
std::uint64_t read_all(const std::uint64_t* words, std::size_t count) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    __builtin_prefetch(words + i + 512);
    for (std::size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{0});
}

}  // namespace

void touch_in_parts(const Engine& engine, const topology::NodeBuffer& buffer) {
  engine.impl().executor->team([&](const ops::Lane& lane) noexcept {
    const ops::Slice mine = ops::split(buffer.size(), kPage, lane);
    std::fill(buffer.data() + mine.begin, buffer.data() + mine.end, std::byte{1});
  });
}

double stream_rate(const Engine& engine, const topology::NodeBuffer& buffer) {
  std::atomic<std::uint64_t> sink{0};  // what is read must matter to somebody
  const double begin = seconds();
  engine.impl().executor->team([&](const ops::Lane& lane) noexcept {
    const ops::Slice mine = ops::split(buffer.size(), kPage, lane);
    const auto* words = reinterpret_cast<const std::uint64_t*>(buffer.data() + mine.begin);
    sink += read_all(words, mine.size() / sizeof(std::uint64_t));
  });
  return static_cast<double>(buffer.size()) / (seconds() - begin);
}

StreamRoof::StreamRoof(const Engine& engine, std::size_t bytes) : engine_(engine), buffer_(bytes) {
  touch_in_parts(engine_, buffer_);
}

double measure_peak(const Engine& engine, quant::Isa isa, bool dense) {
  const quant::PeakLoops loops = quant::peak_loops(isa);
  const auto loop = dense ? loops.f32 : loops.int8;
  std::atomic<std::uint64_t> done{0};
  const double begin = seconds();
  engine.impl().executor->team([&](const ops::Lane&) noexcept { done += loop(kPeakRounds); });
  return static_cast<double>(done.load()) / (seconds() - begin);
}

}  // namespace lockstep::bench
