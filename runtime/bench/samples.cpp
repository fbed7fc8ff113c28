// Order statistics and moments of a few values.
#include "runtime/bench/samples.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace lockstep::bench {

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

}  // namespace lockstep::bench
