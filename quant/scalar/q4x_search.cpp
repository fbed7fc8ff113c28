// The Q4X search in plain C++: the definition that the vector one must match.
#include "quant/q4x_search.h"

#include "quant/scalar/simd.h"

#include "quant/q4x_search.inl.h"

namespace lockstep::quant::q4x {
namespace {

struct ScalarSearch : ScalarSimd {
  static Floats select_greater(const Floats& a, const Floats& b, const Floats& x,
                               const Floats& y) noexcept {
    return floats([&](int i) { return a.lane[i] > b.lane[i] ? x.lane[i] : y.lane[i]; });
  }
};

}  // namespace

void search_scalar(const SearchTables& tables, const float* values, const float* weights,
                   std::size_t groups, Choice* choices) noexcept {
  search_groups<ScalarSearch>(tables, values, weights, groups, choices);
}

}  // namespace lockstep::quant::q4x
