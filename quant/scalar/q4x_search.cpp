// The Q4X search in plain C++: the definition that the vector one must match.
#include "quant/q4x_search.h"

#include "quant/scalar/simd.h"

#include "quant/q4x_search.inl.h"

namespace lockstep::quant::q4x {

void search_scalar(const SearchTables& tables, const float* values, const float* weights,
                   std::size_t groups, Choice* choices) noexcept {
  search_groups<ScalarSimd>(tables, values, weights, groups, choices);
}

}  // namespace lockstep::quant::q4x
