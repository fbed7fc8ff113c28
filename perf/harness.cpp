// Medians and the read roof.
#include "perf/harness.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "ops/split.h"
#include "runtime/engine.h"
#include "topology/node_memory.h"

namespace lockstep::perf {

double Samples::median() const {
  if (values.empty()) return 0.0;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}
double Samples::minimum() const {
  return values.empty() ? 0.0 : *std::min_element(values.begin(), values.end());
}
double Samples::maximum() const {
  return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
}
double Samples::mean() const {
  if (values.empty()) return 0.0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double Samples::deviation() const {
  if (values.size() < 2) return 0.0;
  const double center = mean();
  double sum = 0.0;
  for (const double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

namespace {

constexpr std::size_t kPage = 4096;

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

struct StreamRoof::Impl {
  Engine engine;
  topology::NodeBuffer buffer;
  std::atomic<std::uint64_t> sink{0};
};

StreamRoof::StreamRoof(const Engine& engine, std::size_t bytes)
    : impl_(new Impl{engine, topology::NodeBuffer(bytes), {}}) {
  impl_->engine.impl().executor->team([&](const ops::Lane& lane) noexcept {
    const ops::Slice mine = ops::split(impl_->buffer.size(), kPage, lane);
    std::fill(impl_->buffer.data() + mine.begin, impl_->buffer.data() + mine.end, std::byte{1});
  });
}

StreamRoof::~StreamRoof() { delete impl_; }

double StreamRoof::measure() {
  const double begin = seconds();
  impl_->engine.impl().executor->team([&](const ops::Lane& lane) noexcept {
    const ops::Slice mine = ops::split(impl_->buffer.size(), kPage, lane);
    const auto* words = reinterpret_cast<const std::uint64_t*>(impl_->buffer.data() + mine.begin);
    impl_->sink.fetch_add(read_all(words, mine.size() / sizeof(std::uint64_t)));
  });
  return static_cast<double>(impl_->buffer.size()) / (seconds() - begin);
}

}  // namespace lockstep::perf
