// The scalar dot products, which everything else is compared with, against float64 over the decoded
// values: two independent readings of the same blocks.
#include <cmath>
#include <vector>

#include "quant/kernels.h"
#include "support/catch.h"
#include "support/side_data.h"
#include "test/quant/fixtures.h"

namespace quant = lockstep::quant;
using namespace lockstep::test;
using quant::FormatTraits;

TEST_CASE("vec_dot: equals float64 over the decoded weights") {
  int formats = 0;
  for (const FormatTraits& format : quant::all_formats()) {
    if (!format.can_dot()) continue;
    ++formats;
    CAPTURE(format.name);
    constexpr std::size_t kRows = 24;
    for (std::size_t blocks = 1; blocks <= 9; ++blocks) {
      const std::size_t k = blocks * format.block_values;
      const auto rows =
          make_weights(format, kRows * blocks, Weights::random, static_cast<std::uint32_t>(blocks));
      Activations activations = make_activations(format, k, 1, Values::random, 7);
      std::vector<float> weights(k);
      std::size_t wrong = 0;
      for (std::size_t r = 0; r < kRows; ++r) {
        const std::byte* row = rows.data() + r * quant::bytes_of(format.format, k);
        quant::decode_values(format, side_data(format), row, weights.data(), k);
        double exact = 0;
        double size = 0;
        for (std::size_t i = 0; i < k; ++i) {
          const double term = double{weights[i]} * activations.q(0)[i] *
                              double{activations.scale(0)[i / activations.block]};
          exact += term;
          size += std::fabs(term);
        }
        // Minima are subtracted after the sum, so their own size counts too: twice covers it.
        const float got = quant::dot_row(format, side_data(format), row, activations.row(0), k);
        if (!(std::fabs(double{got} - exact) <= size * 4e-6 + 1e-30)) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
  CHECK(formats >= 4);
}

TEST_CASE("vec_dot: the order of operations is the documented one") {
  // Q8_0 with integer weights of one: acc = fma(d * da, sum, acc), block after block.
  const FormatTraits& format = quant::traits(quant::Format::q8_0);
  constexpr std::size_t kBlocks = 5;
  std::vector<float> ones(kBlocks * 32);
  for (std::size_t i = 0; i < ones.size(); ++i) ones[i] = 0.1f * static_cast<float>(1 + i / 32);
  std::vector<std::byte> row(quant::bytes_of(format.format, ones.size()));
  format.encode(ones.data(), nullptr, row.data(), ones.size());
  Activations activations = make_activations(format, ones.size(), 1, Values::random, 3);
  float expected = 0;
  for (std::size_t b = 0; b < kBlocks; ++b) {
    std::vector<float> decoded(32);
    format.decode(row.data() + b * 34, decoded.data(), 32);
    int sum = 0;
    for (std::size_t i = 0; i < 32; ++i) sum += 127 * activations.q(0)[b * 32 + i];
    const float d = decoded[0] / 127.0f;
    REQUIRE(d * 127.0f == decoded[0]);
    expected = std::fma(d * activations.scale(0)[b], static_cast<float>(sum), expected);
  }
  CHECK(same_float(format.vec_dot(row.data(), activations.row(0), ones.size()), expected));
}

TEST_CASE("vec_dot: a weight scale that is NaN is seen in the result") {
  for (const FormatTraits& format : quant::all_formats()) {
    if (format.vec_dot == nullptr) continue;
    CAPTURE(format.name);
    auto row = make_weights(format, 3, Weights::random, 5);
    Activations activations =
        make_activations(format, 3 * format.block_values, 1, Values::random, 6);
    CHECK_FALSE(std::isnan(format.vec_dot(row.data(), activations.row(0), activations.k)));
    CHECK(format.first_bad_scale(row.data(), 3) == 3);
    for (const ScaleBytes& scale : scales_of(format)) {
      auto damaged = row;
      set_bytes(&damaged[format.block_bytes], scale, kBadScale);
      CHECK(std::isnan(format.vec_dot(damaged.data(), activations.row(0), activations.k)));
      CHECK(format.first_bad_scale(damaged.data(), 3) == 1);
    }
    CHECK(scales_of(format).size() >= 1);
  }
}
