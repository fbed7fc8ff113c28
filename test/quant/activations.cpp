// Quantizing activations: the documented rounding, sums that belong to the values, blocks with NaN
// or infinity marked, and the same bytes on every instruction set.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "quant/kernels.h"
#include "support/catch.h"
#include "test/quant/fixtures.h"

namespace quant = lockstep::quant;
using lockstep::test::same_float;
using quant::Isa;

namespace {

struct Quantized {
  std::vector<std::int8_t> q;
  std::vector<std::int16_t> sums;
  std::vector<float> scale;
};

Quantized quantize(Isa isa, const std::vector<float>& x, std::size_t block) {
  Quantized out{std::vector<std::int8_t>(x.size(), 99),
                std::vector<std::int16_t>(x.size() / 16, 99),
                std::vector<float>(x.size() / block, 99.0f)};
  quant::row_kernels(isa).quantize_activations(x.data(), x.size(), block, out.q.data(),
                                               out.sums.data(), out.scale.data());
  return out;
}

bool same(const Quantized& a, const Quantized& b) {
  return a.q == b.q && a.sums == b.sums &&
         std::equal(a.scale.begin(), a.scale.end(), b.scale.begin(), b.scale.end(), same_float);
}

std::vector<Isa> isas_here() {
  std::vector<Isa> found;
  for (const Isa isa : quant::kAllIsas) {
    if ((quant::built_isas() & quant::detect_isas()).has(isa)) found.push_back(isa);
  }
  return found;
}

}  // namespace

TEST_CASE("activations: nearest value, ties to even, sums of sixteen") {
  std::mt19937 random(61);
  std::normal_distribution<float> normal;
  for (const std::size_t block : {std::size_t{32}, std::size_t{256}}) {
    for (const std::size_t n : {std::size_t{0}, block, 3 * block, 8 * block}) {
      std::vector<float> x(n);
      for (float& v : x) v = std::ldexp(normal(random), static_cast<int>(random() % 60) - 30);
      const Quantized scalar = quantize(Isa::scalar, x, block);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const auto begin = x.begin() + static_cast<std::ptrdiff_t>(i / block * block);
        float amax = 0;
        for (auto v = begin; v != begin + static_cast<std::ptrdiff_t>(block); ++v) {
          amax = std::max(amax, std::fabs(*v));
        }
        if (scalar.scale[i / block] != amax / 127.0f) ++wrong;
        if (scalar.q[i] != std::nearbyint(x[i] * (127.0f / amax))) ++wrong;
      }
      for (std::size_t run = 0; run < n / 16; ++run) {
        int sum = 0;
        for (std::size_t i = 0; i < 16; ++i) sum += scalar.q[run * 16 + i];
        if (scalar.sums[run] != sum) ++wrong;
      }
      CAPTURE(block, n);
      CHECK(wrong == 0);
      for (const Isa isa : isas_here()) CHECK(same(quantize(isa, x, block), scalar));
    }
  }
}

TEST_CASE("activations: ties go to even, the largest becomes 127") {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;  // scale 1
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  x[4] = -126.5f;
  x[5] = -127.0f;
  for (const Isa isa : isas_here()) {
    const Quantized out = quantize(isa, x, 32);
    CHECK(out.scale[0] == 1.0f);
    CHECK(std::vector<std::int8_t>(out.q.begin(), out.q.begin() + 6) ==
          std::vector<std::int8_t>{127, 0, 2, -2, -126, -127});
  }
}

TEST_CASE("activations: damage marks its own block, tiny blocks become zero") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Isa isa : isas_here()) {
    for (const float poison : {std::nanf(""), -std::nanf(""), kInf, -kInf}) {
      for (std::size_t at = 32; at < 64; ++at) {
        std::vector<float> x(96, 2.0f);
        x[at] = poison;
        const Quantized out = quantize(isa, x, 32);
        CHECK(std::isnan(out.scale[1]));
        CHECK(std::all_of(out.q.begin() + 32, out.q.begin() + 64, [](int q) { return q == 0; }));
        CHECK(out.sums[2] == 0);
        CHECK(out.sums[3] == 0);
        CHECK(out.scale[0] == 2.0f / 127.0f);
        CHECK(out.scale[2] == 2.0f / 127.0f);
        CHECK(out.q[31] == 127);
        CHECK(out.q[64] == 127);
      }
    }
    for (const float tiny : {0.0f, -0.0f, 1e-45f, 1e-38f, 3e-37f}) {
      const Quantized out = quantize(isa, std::vector<float>(32, tiny), 32);
      CHECK(out.scale[0] == 0.0f);
      CHECK(out.q == std::vector<std::int8_t>(32, 0));
      CHECK(out.sums == std::vector<std::int16_t>(2, 0));
    }
    // Large values keep an f32 scale that an f16 would have lost.
    const Quantized large = quantize(isa, std::vector<float>(32, -3e38f), 32);
    CHECK(large.scale[0] == 3e38f / 127.0f);
    CHECK(large.q == std::vector<std::int8_t>(32, -127));
    CHECK(large.sums == std::vector<std::int16_t>(2, -2032));
  }
}

TEST_CASE("activations: the layout has aligned parts that do not overlap") {
  for (const quant::Format format : {quant::Format::q8_0, quant::Format::q8_k}) {
    const std::size_t block = quant::traits(format).block_values;
    for (std::size_t k = 0; k <= 9 * 256; k += block) {
      const auto layout = quant::ActivationLayout::of(format, k);
      CAPTURE(k);
      CHECK(layout.q % 64 + layout.sums % 64 + layout.scale % 64 + layout.bytes % 64 == 0);
      CHECK(layout.sums >= layout.q + k);
      CHECK(layout.scale >= layout.sums + k / 16 * 2);
      CHECK(layout.bytes >= layout.scale + k / block * 4);
      CHECK(layout.bytes <= k + k / 8 + k / block * 4 + 3 * 64);
      std::vector<std::byte> memory(layout.bytes + 1);
      const quant::ActivationRow row = layout.row(memory.data());
      CHECK(reinterpret_cast<const std::byte*>(row.q) == memory.data() + layout.q);
      CHECK(reinterpret_cast<const std::byte*>(row.sums) == memory.data() + layout.sums);
      CHECK(reinterpret_cast<const std::byte*>(row.scale) == memory.data() + layout.scale);
    }
  }
}
