// The one list of kernels, and the choice among them. A kernel that is not listed here does not
// exist: loading, tests, fuzzers and benches all iterate over all_matmul_kernels().
#include <array>
#include <cstring>

#include "quant/encode.h"
#include "quant/kernels.h"
#include "quant/q4x.h"
#include "quant/scalar/kernels.h"
#if defined(LOCKSTEP_HAS_AVX2)
#include "quant/avx2/kernels.h"
#include "quant/formats/q4_0.h"
#include "quant/formats/q4_1.h"
#include "quant/formats/q5_0.h"
#include "quant/formats/q5_1.h"
#include "quant/formats/q8_0.h"
#include "quant/packing.h"
#endif

namespace lockstep::quant {
namespace {

#if defined(LOCKSTEP_HAS_AVX2)
// A kernel on the file's own rows.
template <Format kFormat>
constexpr MatmulKernel row_kernel(std::string_view name, Isa isa,
                                  void (*run)(const MatmulCall&) noexcept) {
  constexpr auto row_bytes = [](std::size_t k) noexcept { return bytes_of(kFormat, k); };
  constexpr auto copy = [](const std::byte* file_rows, std::size_t rows, std::size_t k,
                           std::byte* panel) noexcept {
    std::memcpy(panel, file_rows, rows * bytes_of(kFormat, k));
  };
  return {name, kFormat, isa, 1, row_bytes, copy, run};
}

constexpr MatmulKernel kAvx2RowKernels[] = {
    row_kernel<Format::iq1_s>("iq1_s/avx2/r1", Isa::avx2, avx2::run_iq1_s),
    row_kernel<Format::iq1_m>("iq1_m/avx2/r1", Isa::avx2, avx2::run_iq1_m),
    row_kernel<Format::iq2_xxs>("iq2_xxs/avx2/r1", Isa::avx2, avx2::run_iq2_xxs),
    row_kernel<Format::iq2_xs>("iq2_xs/avx2/r1", Isa::avx2, avx2::run_iq2_xs),
    row_kernel<Format::iq2_s>("iq2_s/avx2/r1", Isa::avx2, avx2::run_iq2_s),
    row_kernel<Format::iq3_xxs>("iq3_xxs/avx2/r1", Isa::avx2, avx2::run_iq3_xxs),
    row_kernel<Format::iq3_s>("iq3_s/avx2/r1", Isa::avx2, avx2::run_iq3_s),
    row_kernel<Format::tq1_0>("tq1_0/avx2/r1", Isa::avx2, avx2::run_tq1_0),
    row_kernel<Format::tq2_0>("tq2_0/avx2/r1", Isa::avx2, avx2::run_tq2_0),
};
#else
constexpr std::array<MatmulKernel, 0> kAvx2RowKernels;
#endif

constexpr std::size_t kPartAlign = 64;  // a cache line

constexpr std::size_t align_up(std::size_t bytes) noexcept {
  return (bytes + kPartAlign - 1) / kPartAlign * kPartAlign;
}

struct EncoderOf {
  Format format;
  Encoder encode;
};

#if defined(LOCKSTEP_HAS_AVX2)
// A kernel on panels of 8 rows. The packed bytes follow from the format alone.
template <Format kFormat>
constexpr MatmulKernel panel_kernel(std::string_view name, Isa isa, PackRows* pack,
                                    void (*run)(const MatmulCall&) noexcept) {
  return {name, kFormat, isa, kPanelRows, panel_bytes<kFormat>, pack, run};
}

constexpr MatmulKernel kAvx2Kernels[] = {
    panel_kernel<Format::q4_0>("q4_0/avx2/r8", Isa::avx2, pack_q4_0, avx2::run_q4_0),
    panel_kernel<Format::q4_1>("q4_1/avx2/r8", Isa::avx2, pack_q4_1, avx2::run_q4_1),
    panel_kernel<Format::q5_0>("q5_0/avx2/r8", Isa::avx2, pack_q5_0, avx2::run_q5_0),
    panel_kernel<Format::q5_1>("q5_1/avx2/r8", Isa::avx2, pack_q5_1, avx2::run_q5_1),
    panel_kernel<Format::q8_0>("q8_0/avx2/r8", Isa::avx2, pack_q8_0, avx2::run_q8_0),
    panel_kernel<Format::q2_k>("q2_k/avx2/r8", Isa::avx2, pack_q2_k, avx2::run_q2_k),
    panel_kernel<Format::q3_k>("q3_k/avx2/r8", Isa::avx2, pack_q3_k, avx2::run_q3_k),
    panel_kernel<Format::q4_k>("q4_k/avx2/r8", Isa::avx2, pack_q4_k, avx2::run_q4_k),
    panel_kernel<Format::q5_k>("q5_k/avx2/r8", Isa::avx2, pack_q5_k, avx2::run_q5_k),
    panel_kernel<Format::q6_k>("q6_k/avx2/r8", Isa::avx2, pack_q6_k, avx2::run_q6_k),
    panel_kernel<Format::iq4_nl>("iq4_nl/avx2/r8", Isa::avx2, pack_iq4_nl, avx2::run_iq4_nl),
    panel_kernel<Format::iq4_xs>("iq4_xs/avx2/r8", Isa::avx2, pack_iq4_xs, avx2::run_iq4_xs),
    panel_kernel<Format::mxfp4>("mxfp4/avx2/r8", Isa::avx2, pack_mxfp4, avx2::run_mxfp4),
    panel_kernel<Format::nvfp4>("nvfp4/avx2/r8", Isa::avx2, pack_nvfp4, avx2::run_nvfp4),
    panel_kernel<Format::q4x>("q4x/avx2/r8", Isa::avx2, pack_q4x, avx2::run_q4x),
};

template <Encoder SearchingEncoders::*kSearching, auto kSimple = nullptr>
constexpr Encoder kAvx2 = encode_with<avx2::kEncoders, kSearching, kSimple>;

using Searching = SearchingEncoders;

constexpr EncoderOf kAvx2Encoders[] = {
    {Format::q2_k, kAvx2<&Searching::q2_k>},
    {Format::q3_k, kAvx2<&Searching::q3_k>},
    {Format::q4_k, kAvx2<&Searching::q4_k>},
    {Format::q5_k, kAvx2<&Searching::q5_k>},
    {Format::q6_k, kAvx2<&Searching::q6_k>},
    {Format::iq4_nl, kAvx2<&Searching::iq4_nl>},
    {Format::iq4_xs, kAvx2<&Searching::iq4_xs>},
    {Format::mxfp4, kAvx2<&Searching::mxfp4>},
    {Format::nvfp4, kAvx2<&Searching::nvfp4>},
    {Format::q4_0, kAvx2<&Searching::q4_0, q4_0::encode>},
    {Format::q4_1, kAvx2<&Searching::q4_1, q4_1::encode>},
    {Format::q5_0, kAvx2<&Searching::q5_0, q5_0::encode>},
    {Format::q5_1, kAvx2<&Searching::q5_1, q5_1::encode>},
    {Format::q8_0, kAvx2<&Searching::q8_0, q8_0::encode>},
};
#else
constexpr std::array<MatmulKernel, 0> kAvx2Kernels;
constexpr std::array<EncoderOf, 0> kAvx2Encoders;
#endif

// Filled once, on first use: the scalar part depends on the format table.
struct KernelList {
  std::array<MatmulKernel,
             scalar::kMaxMatmulKernels + std::size(kAvx2Kernels) + std::size(kAvx2RowKernels)>
      kernels{};
  std::size_t count = 0;

  KernelList() noexcept {
    count = scalar::matmul_kernels({kernels.data(), scalar::kMaxMatmulKernels});
    for (const MatmulKernel& kernel : kAvx2Kernels) kernels[count++] = kernel;
    for (const MatmulKernel& kernel : kAvx2RowKernels) kernels[count++] = kernel;
  }
};

}  // namespace

ActivationLayout ActivationLayout::of(Format activation, std::size_t k) noexcept {
  ActivationLayout layout;
  layout.q = 0;
  layout.sums = align_up(k * sizeof(std::int8_t));
  layout.scale = layout.sums + align_up(k / kActivationSumRun * sizeof(std::int16_t));
  layout.bytes = layout.scale + align_up(k / traits(activation).block_values * sizeof(float));
  return layout;
}

ActivationRow ActivationLayout::row(const std::byte* base) const noexcept {
  return {.q = reinterpret_cast<const std::int8_t*>(base + q),
          .sums = reinterpret_cast<const std::int16_t*>(base + sums),
          .scale = reinterpret_cast<const float*>(base + scale)};
}

std::span<const MatmulKernel> all_matmul_kernels() noexcept {
  static const KernelList list;
  return {list.kernels.data(), list.count};
}

const MatmulKernel* find_matmul(Format format, Isa isa) noexcept {
  const MatmulKernel* best = nullptr;
  for (const MatmulKernel& kernel : all_matmul_kernels()) {
    if (kernel.format != format || kernel.isa > isa) continue;
    if (best == nullptr || kernel.isa > best->isa) best = &kernel;
  }
  return best;
}

Encoder find_encoder(Format format, Isa isa) noexcept {
  if (isa >= Isa::avx2) {
    for (const EncoderOf& encoder : kAvx2Encoders) {
      if (encoder.format == format) return encoder.encode;
    }
  }
  return traits(format).encode;
}

std::unique_ptr<SideLearner> make_side_learner(Format format, std::size_t rows,
                                               std::size_t columns) {
  if (format != Format::q4x) return nullptr;
  return std::make_unique<q4x::Learner>(rows, columns);
}

SideEncoder find_side_encoder(Format format, Isa isa) noexcept {
  return format == Format::q4x ? q4x::find_encoder(isa) : nullptr;
}

const RowKernels& row_kernels(Isa isa) noexcept {
#if defined(LOCKSTEP_HAS_AVX2)
  if (isa == Isa::avx2) return avx2::kRowKernels;
#endif
  (void)isa;
  return scalar::kRowKernels;
}

}  // namespace lockstep::quant
