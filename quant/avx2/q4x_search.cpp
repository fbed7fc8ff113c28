// The Q4X search on AVX2: the inner loop of quantizing, two instructions per level and 8 values.
#include "quant/q4x_search.h"

#include "quant/avx2/simd.h"

#include "quant/q4x_search.inl.h"

namespace lockstep::quant::q4x {
namespace {

struct Avx2Search : Avx2Simd {
  static Floats select_greater(Floats a, Floats b, Floats x, Floats y) noexcept {
    return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)),
            _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))};
  }
};

}  // namespace

void search_avx2(const SearchTables& tables, const float* values, const float* weights,
                 std::size_t groups, Choice* choices) noexcept {
  search_groups<Avx2Search>(tables, values, weights, groups, choices);
}

}  // namespace lockstep::quant::q4x
