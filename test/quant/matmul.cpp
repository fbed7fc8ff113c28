// Every kernel in the list against the scalar one, bit for bit: shapes around the panel and tile
// edges, the extremes of weights and activations, damaged activations, and memory outside the
// result.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quant/kernels.h"
#include "support/catch.h"
#include "support/side_data.h"
#include "test/quant/fixtures.h"

namespace quant = lockstep::quant;
using namespace lockstep::test;
using quant::FormatTraits;
using quant::Isa;
using quant::MatmulKernel;

namespace {

constexpr float kUntouched = -12345.5f;

// Kernels this machine can run, the scalar ones left out.
std::vector<const MatmulKernel*> kernels_to_test() {
  const quant::IsaSet here = quant::built_isas() & quant::detect_isas();
  std::vector<const MatmulKernel*> found;
  for (const MatmulKernel& kernel : quant::all_matmul_kernels()) {
    if (kernel.isa != Isa::scalar && here.has(kernel.isa)) found.push_back(&kernel);
  }
  return found;
}

// y for all rows and tokens, [tokens, rows + 3], computed with the scalar kernel or another.
std::vector<float> run(const MatmulKernel& kernel, const std::vector<std::byte>& panels,
                       std::size_t rows, Activations& activations, std::size_t tokens) {
  const std::size_t stride = rows + 3;
  std::vector<float> y(tokens * stride, kUntouched);
  kernel.run({.panels = panels.data(),
              .rows = rows,
              .k = activations.k,
              .activations = activations.base(),
              .activation_stride = activations.layout.bytes,
              .tokens = tokens,
              .y = y.data(),
              .y_stride = stride,
              .side = side_data(kernel.format)});
  return y;
}

// Number of elements of `y` that are not the reference's, or not untouched outside of the result.
std::size_t wrong_elements(const std::vector<float>& y, std::size_t rows, std::size_t tokens,
                           const std::vector<float>& reference, std::size_t reference_rows) {
  std::size_t wrong = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows + 3; ++r) {
      const float expected = r < rows ? reference[t * (reference_rows + 3) + r] : kUntouched;
      if (!same_float(y[t * (rows + 3) + r], expected)) ++wrong;
    }
  }
  return wrong;
}

// One scalar run over the largest shape is the reference for all smaller ones.
void compare_shapes(const MatmulKernel& kernel, std::size_t k, Weights weights, Values values) {
  constexpr std::size_t kRowCounts[] = {1, 7, 8, 9, 16, 151};
  constexpr std::size_t kTokenCounts[] = {1, 2, 3, 4, 5, 8, 17};
  constexpr std::size_t kMaxRows = 151;
  constexpr std::size_t kMaxTokens = 17;
  const FormatTraits& format = quant::traits(kernel.format);
  const MatmulKernel& scalar = *quant::find_matmul(kernel.format, Isa::scalar);
  const auto file_rows = make_weights(format, kMaxRows * k / format.block_values, weights, 11);
  Activations activations = make_activations(format, k, kMaxTokens, values, 12);
  const std::vector<float> reference = run(scalar, file_rows, kMaxRows, activations, kMaxTokens);
  std::size_t wrong = 0;
  for (const std::size_t rows : kRowCounts) {
    const std::vector<std::byte> panels = pack_rows(kernel, file_rows, rows, k);
    for (const std::size_t tokens : kTokenCounts) {
      const std::vector<float> y = run(kernel, panels, rows, activations, tokens);
      wrong += wrong_elements(y, rows, tokens, reference, kMaxRows);
    }
  }
  CAPTURE(kernel.name, k, static_cast<int>(weights), static_cast<int>(values));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("matmul: every kernel equals the scalar one over awkward shapes") {
  for (const MatmulKernel* kernel : kernels_to_test()) {
    const std::size_t block = quant::traits(kernel->format).block_values;
    for (std::size_t blocks = 1; blocks <= 9; ++blocks) {
      compare_shapes(*kernel, blocks * block, Weights::random, Values::random);
    }
  }
}

TEST_CASE("matmul: extremes neither saturate nor wrap") {
  for (const MatmulKernel* kernel : kernels_to_test()) {
    const std::size_t k = 2 * quant::traits(kernel->format).block_values;
    for (const Weights weights : {Weights::all_ones, Weights::all_zeros, Weights::alternating,
                                  Weights::most_negative, Weights::random}) {
      for (const Values values :
           {Values::all_positive, Values::all_negative, Values::alternating, Values::by_halves}) {
        compare_shapes(*kernel, k, weights, values);
      }
    }
  }
}

TEST_CASE("matmul: more tokens than one pass over the panels takes") {
  for (const MatmulKernel* kernel : kernels_to_test()) {
    CAPTURE(kernel->name);
    const FormatTraits& format = quant::traits(kernel->format);
    constexpr std::size_t kRows = 19;
    constexpr std::size_t kTokens = 131;
    constexpr std::size_t kColumns = 4096;
    const auto file_rows =
        make_weights(format, kRows * kColumns / format.block_values, Weights::random, 21);
    Activations activations = make_activations(format, kColumns, kTokens, Values::random, 22);
    const auto reference = run(*quant::find_matmul(kernel->format, Isa::scalar), file_rows, kRows,
                               activations, kTokens);
    const auto y =
        run(*kernel, pack_rows(*kernel, file_rows, kRows, kColumns), kRows, activations, kTokens);
    CHECK(wrong_elements(y, kRows, kTokens, reference, kRows) == 0);
  }
}

TEST_CASE("matmul: a NaN or infinity stays in its row of activations") {
  for (const MatmulKernel& kernel : quant::all_matmul_kernels()) {
    if (!(quant::built_isas() & quant::detect_isas()).has(kernel.isa)) continue;
    const FormatTraits& format = quant::traits(kernel.format);
    constexpr std::size_t kRows = 9;
    constexpr std::size_t kTokens = 6;
    const std::size_t k = 3 * format.block_values;
    const auto file_rows = make_weights(format, kRows * 3, Weights::random, 31);
    const auto panels = pack_rows(kernel, file_rows, kRows, k);
    std::vector<float> values(kTokens * k);
    std::mt19937 random(32);
    for (float& v : values) v = static_cast<float>(random() % 2001) - 1000.0f;
    Activations clean(format.activation, k, kTokens);
    for (std::size_t t = 0; t < kTokens; ++t) clean.quantize(t, &values[t * k], kernel.isa);
    const std::vector<float> expected = run(kernel, panels, kRows, clean, kTokens);
    for (const float poison :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
      constexpr std::size_t kHit = 2;
      std::vector<float> damaged = values;
      damaged[kHit * k + k / 2] = poison;
      Activations activations(format.activation, k, kTokens);
      for (std::size_t t = 0; t < kTokens; ++t) {
        activations.quantize(t, &damaged[t * k], kernel.isa);
      }
      const std::vector<float> y = run(kernel, panels, kRows, activations, kTokens);
      CAPTURE(kernel.name, poison);
      std::size_t wrong = 0;
      for (std::size_t t = 0; t < kTokens; ++t) {
        for (std::size_t r = 0; r < kRows; ++r) {
          const float got = y[t * (kRows + 3) + r];
          const bool right =
              t == kHit ? std::isnan(got) : same_float(got, expected[t * (kRows + 3) + r]);
          if (!right) ++wrong;
        }
      }
      CHECK(wrong == 0);
      CHECK(std::none_of(expected.begin(), expected.end(), [](float v) { return std::isnan(v); }));
    }
  }
}

// Zero, subnormal, infinite and NaN scales, and every scale of 8 bits there is. The loader refuses
// the last two kinds, so all that is asked for is that no kernel sees them differently.
TEST_CASE("matmul: every scale means the same to every kernel") {
  for (const MatmulKernel* kernel : kernels_to_test()) {
    CAPTURE(kernel->name);
    const FormatTraits& format = quant::traits(kernel->format);
    constexpr std::size_t kRows = 256;
    constexpr std::size_t kTokens = 5;
    constexpr std::size_t kBlocks = 2;
    const std::size_t k = kBlocks * format.block_values;
    auto file_rows = make_weights(format, kRows * kBlocks, Weights::random, 61);
    for (std::size_t b = 0; b < kRows * kBlocks; ++b) {
      for (const ScaleBytes& scale : scales_of(format)) {
        set_bytes(&file_rows[b * format.block_bytes], scale, static_cast<std::byte>(b / kBlocks));
      }
    }
    Activations activations = make_activations(format, k, kTokens, Values::random, 62);
    const auto reference = run(*quant::find_matmul(kernel->format, Isa::scalar), file_rows, kRows,
                               activations, kTokens);
    const auto y =
        run(*kernel, pack_rows(*kernel, file_rows, kRows, k), kRows, activations, kTokens);
    CHECK(wrong_elements(y, kRows, kTokens, reference, kRows) == 0);
    // Q4X has no scale that is NaN.
    CHECK(std::any_of(reference.begin(), reference.end(), [](float v) { return std::isnan(v); }) ==
          (format.side == nullptr));
  }
}

TEST_CASE("matmul: no rows, no tokens, no columns") {
  for (const MatmulKernel& kernel : quant::all_matmul_kernels()) {
    if (!(quant::built_isas() & quant::detect_isas()).has(kernel.isa)) continue;
    CAPTURE(kernel.name);
    const FormatTraits& format = quant::traits(kernel.format);
    const std::size_t k = format.block_values;
    const auto panels = pack_rows(kernel, make_weights(format, 8, Weights::random, 41), 8, k);
    Activations activations = make_activations(format, k, 2, Values::random, 42);
    const auto untouched = [](float v) { return v == kUntouched; };
    auto y = run(kernel, panels, 0, activations, 2);
    CHECK(std::all_of(y.begin(), y.end(), untouched));
    CHECK(run(kernel, panels, 8, activations, 0).empty());
    // An empty sum is zero.
    Activations nothing(format.activation, 0, 2);
    y = run(kernel, panels, 8, nothing, 2);
    CHECK(std::count(y.begin(), y.end(), 0.0f) == 16);
    CHECK(std::count(y.begin(), y.end(), kUntouched) == 6);
  }
}

TEST_CASE("matmul: the list is complete and every name says what it is") {
  std::size_t scalar = 0;
  for (const MatmulKernel& kernel : quant::all_matmul_kernels()) {
    CAPTURE(kernel.name);
    std::string expected(quant::traits(kernel.format).name);
    for (char& c : expected) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    expected.append("/").append(quant::name_of(kernel.isa)).append("/r");
    expected.append(std::to_string(kernel.panel_rows));
    CHECK(kernel.name == expected);
    CHECK(quant::built_isas().has(kernel.isa));
    if (kernel.isa == Isa::scalar) ++scalar;
  }
  std::size_t multiplied = 0;
  for (const FormatTraits& format : quant::all_formats()) {
    const MatmulKernel* found = quant::find_matmul(format.format, Isa::scalar);
    CHECK((found != nullptr) == format.can_dot());
    if (found == nullptr) continue;
    ++multiplied;
    CHECK(found->isa == Isa::scalar);
    CHECK(found->format == format.format);
    for (const Isa isa : quant::kAllIsas) {
      const MatmulKernel* best = quant::find_matmul(format.format, isa);
      REQUIRE(best != nullptr);
      CHECK(best->isa <= isa);
    }
  }
  CHECK(scalar == multiplied);
  CHECK(multiplied >= 4);
  // Sets whose kernels cover all that packing.h lays out.
  for (const Isa isa : {Isa::avx2, Isa::avxvnni, Isa::avx512, Isa::neon, Isa::dotprod, Isa::i8mm}) {
    if (!quant::built_isas().has(isa)) continue;
    for (const char* name : {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k",
                             "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "nvfp4", "q4x"}) {
      const FormatTraits* format = quant::find_format(std::string_view(name));
      CHECK(quant::find_matmul(format->format, isa)->isa == isa);
    }
  }
}
