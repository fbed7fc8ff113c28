// The Q4X search on AVX2: the inner loop of quantizing, two instructions per level and 8 values.
#include "quant/q4x_search.h"

#include "quant/avx2/simd.h"

#include "quant/q4x_search.inl.h"

namespace lockstep::quant::q4x {

void search_avx2(const SearchTables& tables, const float* values, const float* weights,
                 std::size_t groups, Choice* choices) noexcept {
  search_groups<Avx2Simd>(tables, values, weights, groups, choices);
}

}  // namespace lockstep::quant::q4x
