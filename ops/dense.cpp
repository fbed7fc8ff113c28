// Matmul with unquantized weights (f32, f16, bf16): the list of its kernels, the choice among them,
// and the scalar ones, which are the definition of right and run anywhere.
#include "ops/dense.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "ops/matrix.h"
#include "quant/half.h"

namespace lockstep::ops {
namespace {

using quant::Format;
using quant::Isa;
using quant::MatmulCall;
using quant::MatmulKernel;

// How one weight is stored, and what it means.
struct F32 {
  using Stored = float;
  static float widen(float stored) noexcept { return stored; }
};
struct F16 {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t stored) noexcept { return quant::f16_to_f32(stored); }
};
struct Bf16 {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t stored) noexcept { return quant::bf16_to_f32(stored); }
};

template <class Element>
std::size_t panel_bytes(std::size_t k) noexcept {
  return k * sizeof(typename Element::Stored);
}

template <class Element>
void pack(const std::byte* file_rows, std::size_t, std::size_t k, std::byte* panel) noexcept {
  std::memcpy(panel, file_rows, panel_bytes<Element>(k));
}

template <class Element>
void run(const MatmulCall& call) noexcept {
  std::array<float, kDenseDepth> weights;
  for (std::size_t r = 0; r < call.rows; ++r) {
    const std::byte* const row = call.panels + r * panel_bytes<Element>(call.k);
    for (std::size_t t = 0; t < call.tokens; ++t) call.y[t * call.y_stride + r] = 0.0f;
    for (std::size_t k = 0; k < call.k; k += kDenseDepth) {
      const std::size_t depth = std::min(kDenseDepth, call.k - k);
      for (std::size_t i = 0; i < depth; ++i) {
        typename Element::Stored stored;
        std::memcpy(&stored, row + (k + i) * sizeof(stored), sizeof(stored));
        weights[i] = Element::widen(stored);
      }
      for (std::size_t t = 0; t < call.tokens; ++t) {
        const auto* x =
            reinterpret_cast<const float*>(call.activations + t * call.activation_stride) + k;
        float sum = 0.0f;
        for (std::size_t i = 0; i < depth; ++i) sum = std::fma(weights[i], x[i], sum);
        call.y[t * call.y_stride + r] += sum;
      }
    }
  }
}

template <class Element>
constexpr MatmulKernel scalar_kernel(std::string_view name, Format format) noexcept {
  return {name, format, Isa::scalar, 1, panel_bytes<Element>, pack<Element>, run<Element>};
}

const std::vector<MatmulKernel>& list() noexcept {
  static const std::vector<MatmulKernel> kernels = [] {
    std::vector<MatmulKernel> all{scalar_kernel<F32>("f32/scalar/r1", Format::f32),
                                  scalar_kernel<F16>("f16/scalar/r1", Format::f16),
                                  scalar_kernel<Bf16>("bf16/scalar/r1", Format::bf16)};
#if defined(LOCKSTEP_HAS_AVX2)
    std::ranges::copy(dense_rows_avx2(), std::back_inserter(all));
#endif
#if defined(LOCKSTEP_HAS_AVX512)
    std::ranges::copy(dense_rows_avx512(), std::back_inserter(all));
#endif
    return all;
  }();
  return kernels;
}

}  // namespace

std::span<const MatmulKernel> dense_kernels() noexcept { return list(); }

const MatmulKernel* find_kernel(Format format, Isa isa) noexcept {
  const MatmulKernel* best = nullptr;
  for (const MatmulKernel& kernel : list()) {
    if (kernel.format == format && quant::includes(isa, kernel.isa) &&
        (!best || kernel.isa > best->isa)) {
      best = &kernel;
    }
  }
  return best ? best : quant::find_matmul(format, isa);
}

}  // namespace lockstep::ops
