// Repeated measurements of one figure. Absolute times drift on shared machines; medians of figures
// taken in one run, alternating, do not.
#pragma once

#include <chrono>
#include <vector>

namespace lockstep::bench {

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Samples {
  std::vector<double> values;

  void add(double value) { values.push_back(value); }
  double median() const;  // 0 if there are none, as the others
  double minimum() const;
  double maximum() const;
  double mean() const;
  // Sample standard deviation; 0 for fewer than two values.
  double deviation() const;
};

}  // namespace lockstep::bench
