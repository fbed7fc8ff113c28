// Q4X: the meaning of every bit, what its learning gains on known distributions, and that side
// data, learned and read, is what the kernels may trust.
#include "quant/q4x.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quant/half.h"
#include "support/catch.h"
#include "support/side_data.h"

namespace quant = lockstep::quant;
namespace q4x = lockstep::quant::q4x;
using namespace lockstep::test;
using quant::Isa;

namespace {

using Bytes = std::vector<std::byte>;
constexpr std::size_t kColumns = 512;

enum class Shape { gaussian, laplace, uniform };
constexpr Shape kShapes[] = {Shape::gaussian, Shape::laplace, Shape::uniform};

// From uniform numbers alone, so the same everywhere up to the rounding of log and cos.
std::vector<float> draw(Shape shape, std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto uniform = [&] { return (static_cast<double>(random() >> 8) + 0.5) * 0x1p-24; };
  std::vector<float> values(n);
  for (float& value : values) {
    const double u = uniform();
    const double v = uniform();
    switch (shape) {
      case Shape::gaussian:
        value = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v));
        break;
      case Shape::laplace:
        value = static_cast<float>((v < 0.5 ? 1 : -1) * std::log(u));
        break;
      case Shape::uniform:
        value = static_cast<float>(2 * u - 1);
        break;
    }
  }
  return values;
}

// What is not about an instruction set takes the fastest.
Isa best_isa() { return quant::choose_isa(quant::built_isas() & quant::detect_isas(), ""); }

Bytes learn(const std::vector<float>& values, Isa isa = best_isa(),
            const float* importance = nullptr) {
  q4x::Learner learner(values.size() / kColumns, kColumns);
  learner.take(0, values.size() / kColumns, values.data(), importance);
  Bytes side(q4x::kSideBytes);
  learner.learn(isa, side.data());
  return side;
}

Bytes encode(const Bytes& side, const std::vector<float>& values, Isa isa = best_isa(),
             const float* importance = nullptr) {
  Bytes blocks(quant::bytes_of(quant::Format::q4x, values.size()));
  const std::size_t row_bytes = quant::bytes_of(quant::Format::q4x, kColumns);
  for (std::size_t r = 0; r < values.size() / kColumns; ++r) {
    q4x::find_encoder(isa)(side.data(), &values[r * kColumns], importance, &blocks[r * row_bytes],
                           kColumns);
  }
  return blocks;
}

std::vector<float> decode(const Bytes& side, const Bytes& blocks) {
  std::vector<float> values(blocks.size() / q4x::kBytes * q4x::kValues);
  q4x::decode(side.data(), blocks.data(), values.data(), values.size());
  return values;
}

double squared_error(const std::vector<float>& a, const std::vector<float>& b, std::size_t first,
                     std::size_t step) {
  double error = 0;
  for (std::size_t i = first; i < a.size(); i += step) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    error += d * d;
  }
  return error;
}

// Of encoding with these side data.
double loss(const Bytes& side, const std::vector<float>& values) {
  return squared_error(decode(side, encode(side, values)), values, 0, 1);
}

// The same scales with one codebook: 16 even steps.
Bytes with_even_levels(Bytes side) {
  for (int i = 0; i < 64; ++i) {
    const int level = (2 * (i % 16) - 15) * 63 / 15;
    side[static_cast<std::size_t>(i)] = static_cast<std::byte>(level);
  }
  return side;
}

std::string problem(const Bytes& side) {
  const char* text = q4x::side_problem(side.data());
  return text == nullptr ? "" : text;
}

}  // namespace

TEST_CASE("q4x: a block worked out by hand") {
  Bytes side(q4x::kSideBytes);
  for (int i = 0; i < 16; ++i) {
    side[static_cast<std::size_t>(i)] = static_cast<std::byte>(i);             // book 0: 0 .. 15
    side[static_cast<std::size_t>(16 + i)] = static_cast<std::byte>(16 + i);   // book 1: 16 .. 31
    side[static_cast<std::size_t>(32 + i)] = static_cast<std::byte>(-15 + i);  // book 2
    side[static_cast<std::size_t>(48 + i)] = static_cast<std::byte>(48 + i);   // book 3
  }
  quant::store_field(&side[q4x::kBase], 0x1p24f);  // shift 4: scale = code * 16
  side[q4x::kShift] = std::byte{4};
  REQUIRE(problem(side).empty());
  Bytes block(q4x::kBytes);
  block[0] = std::byte{1};         // group 0: scale 16, book 0
  block[1] = std::byte{2 | 0x80};  // group 1: scale 32, book 1
  block[6] = std::byte{3 | 0x40};  // group 6: scale -48, book 2
  block[7] = std::byte{63 | 0x80};
  block[8] = std::byte{0xc0};  // groups 6 and 7: the upper books
  block[9] = std::byte{0x21};
  block[9 + 7 * 16 + 15] = std::byte{0xf0};
  const std::vector<float> values = decode(side, block);
  CHECK(values[0] == 16.0f);
  CHECK(values[16] == 32.0f);
  CHECK(values[1] == 0.0f);
  CHECK(values[32] == 512.0f);
  CHECK(values[63] == 512.0f);
  CHECK(values[64] == 0.0f);
  CHECK(values[6 * 32] == 720.0f);
  CHECK(values[7 * 32] == 63 * 16 * 48.0f);
  CHECK(values[255] == 63 * 16 * 63.0f);
  CHECK(q4x::first_bad_scale(block.data(), 1) == 1);
  block[3] = std::byte{0xc0};
  CHECK(q4x::first_bad_scale(block.data(), 1) == 0);
  // The other splits of the code: shift 6 has 4 bits of mantissa above 2^-14.
  side[q4x::kShift] = std::byte{6};
  CHECK(decode(side, block)[0] == 64.0f);
  CHECK(decode(side, block)[255] == 0x1p24f * quant::f16_to_f32(0x0fc0) * 63.0f);
}

TEST_CASE("q4x: side data that a kernel could not trust is refused") {
  const auto array = q4x_side();
  const Bytes good(array.begin(), array.end());
  CHECK(problem(good).empty());
  const auto expect = [&](std::size_t at, int value, const char* phrase) {
    Bytes side = good;
    side[at] = static_cast<std::byte>(value);
    CAPTURE(at, value);
    CHECK(problem(side).find(phrase) != std::string::npos);
  };
  expect(0, -64, "outside");
  expect(31, 64, "outside");
  expect(32, -128, "outside");
  expect(63, 127, "outside");
  expect(5, -63, "ascend");
  expect(q4x::kShift, 3, "shift");
  expect(q4x::kShift, 10, "shift");
  expect(q4x::kShift, 255, "shift");
  expect(69, 1, "reserved");
  expect(71, 128, "reserved");
  for (const float base : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Bytes side = good;
    quant::store_field(&side[q4x::kBase], base);
    CHECK(problem(side).find("base") != std::string::npos);
  }
}

TEST_CASE("q4x: learned codebooks beat even steps, and what is learned is taken") {
  // Against even steps; without the learning, all would be 1.
  constexpr double kMost[] = {0.80, 0.65, 0.88};
  for (const Shape shape : kShapes) {
    const std::vector<float> values = draw(shape, 64 * kColumns, 1);
    const Bytes side = learn(values);
    CHECK(problem(side).empty());
    const double ratio = loss(side, values) / loss(with_even_levels(side), values);
    CAPTURE(static_cast<int>(shape), ratio);
    CHECK(ratio < kMost[static_cast<int>(shape)]);
    // On values that were not learned from, too.
    const std::vector<float> others = draw(shape, 64 * kColumns, 2);
    const double held_out = loss(side, others) / loss(with_even_levels(side), others);
    CAPTURE(held_out);
    CHECK(held_out < kMost[static_cast<int>(shape)] + 0.02);
    const Bytes blocks = encode(side, values);
    std::size_t taken[4] = {};
    std::size_t negative = 0;
    for (std::size_t b = 0; b < blocks.size(); b += q4x::kBytes) {
      for (std::size_t j = 0; j < 8; ++j) {
        const q4x::Group group = q4x::group(side.data(), &blocks[b], j);
        ++taken[group.book];
        negative += group.scale < 0;
      }
    }
    for (const std::size_t count : taken) CHECK(count >= 8);  // of 1024
    CHECK(negative >= 100);
  }
}

TEST_CASE("q4x: no codebook, sign and scale is better than the one taken") {
  const std::vector<float> values = draw(Shape::gaussian, kColumns, 3);
  const Bytes side = learn(draw(Shape::gaussian, 32 * kColumns, 4));
  const std::vector<float> decoded = decode(side, encode(side, values));
  std::size_t worse = 0;
  for (std::size_t g = 0; g < kColumns / 32; ++g) {
    double least = 1e300;
    double got = 0;
    for (std::size_t i = g * 32; i < g * 32 + 32; ++i) {
      got += std::pow(static_cast<double>(values[i]) - static_cast<double>(decoded[i]), 2);
    }
    for (unsigned choice = 0; choice < 4 * 128; ++choice) {
      Bytes block(q4x::kBytes);
      block[0] = static_cast<std::byte>((choice & 127) | (choice >> 7 & 1) << 7);
      block[8] = static_cast<std::byte>(choice >> 8);
      const q4x::Group group = q4x::group(side.data(), block.data(), 0);
      double error = 0;
      for (std::size_t i = g * 32; i < g * 32 + 32; ++i) {
        double nearest = 1e300;
        for (unsigned index = 0; index < 16; ++index) {
          const float level = static_cast<float>(q4x::level(side.data(), group.book, index));
          const double d =
              static_cast<double>(values[i]) - static_cast<double>(group.scale * level);
          nearest = std::min(nearest, d * d);
        }
        error += nearest;
      }
      least = std::min(least, error);
    }
    if (got > least * (1 + 1e-5)) ++worse;
  }
  CHECK(worse == 0);
}

TEST_CASE("q4x: every instruction set learns and encodes the same bytes") {
  for (const Shape shape : kShapes) {
    const std::vector<float> values = draw(shape, 12 * kColumns, 5);
    std::vector<float> importance(kColumns);
    for (std::size_t i = 0; i < kColumns; ++i) importance[i] = static_cast<float>(i % 7);
    const float* const both[] = {nullptr, importance.data()};
    for (const float* weights : both) {
      const Bytes side = learn(values, Isa::scalar, weights);
      CHECK(side == learn(values, best_isa(), weights));
      CHECK(encode(side, values, Isa::scalar, weights) ==
            encode(side, values, best_isa(), weights));
    }
  }
}

TEST_CASE("q4x: what is learned does not depend on how the rows come") {
  constexpr std::size_t kRows = 300;  // 4800 groups: some are not in the sample
  const std::vector<float> values = draw(Shape::laplace, kRows * kColumns, 6);
  const Bytes expected = learn(values, best_isa());
  q4x::Learner backwards(kRows, kColumns);
  for (std::size_t end = kRows; end > 0;) {
    const std::size_t count = std::min<std::size_t>(end, 7);
    end -= count;
    backwards.take(end, count, &values[end * kColumns], nullptr);
  }
  Bytes side(q4x::kSideBytes);
  backwards.learn(best_isa(), side.data());
  CHECK(side == expected);
  q4x::Learner first(kRows, kColumns);
  q4x::Learner second(kRows, kColumns);
  for (std::size_t r = 0; r < kRows; ++r) {
    (r % 3 == 0 ? first : second).take(r, 1, &values[r * kColumns], nullptr);
  }
  second.merge(first);
  second.learn(best_isa(), side.data());
  CHECK(side == expected);
}

TEST_CASE("q4x: importance moves the error to the columns that count less") {
  const std::vector<float> values = draw(Shape::gaussian, 32 * kColumns, 7);
  std::vector<float> importance(kColumns);
  for (std::size_t i = 0; i < kColumns; ++i) importance[i] = i % 4 == 0 ? 20.0f : 1.0f;
  const Bytes flat_side = learn(values, best_isa());
  const Bytes side = learn(values, best_isa(), importance.data());
  const auto flat = decode(flat_side, encode(flat_side, values, best_isa()));
  const auto weighed = decode(side, encode(side, values, best_isa(), importance.data()));
  CHECK(squared_error(weighed, values, 0, 4) < 0.8 * squared_error(flat, values, 0, 4));
  CHECK(squared_error(weighed, values, 0, 1) > squared_error(flat, values, 0, 1));
}

TEST_CASE("q4x: hostile values") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  // NaN and infinity mark their group, and only it.
  for (const float poison : {std::nanf(""), kInf, -kInf}) {
    std::vector<float> values = draw(Shape::gaussian, 2 * kColumns, 8);
    const std::vector<float> clean = values;
    values[kColumns + 40] = poison;
    const Bytes side = learn(values, best_isa());
    CHECK(problem(side).empty());
    Bytes blocks = encode(side, values, best_isa());
    CHECK(blocks == encode(side, values, Isa::scalar));
    CHECK(q4x::first_bad_scale(blocks.data(), 4) == 2);
    const Bytes expected = encode(side, clean, best_isa());
    const auto got = decode(side, blocks);
    const auto whole = decode(side, expected);
    std::size_t different = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(std::isfinite(got[i]));
      if (i / 32 != (kColumns + 40) / 32 && got[i] != whole[i]) ++different;
    }
    CHECK(different == 0);
  }
  // Nothing to learn from, or nothing that fits: side data stay valid, values stay finite.
  for (const float value :
       {0.0f, -0.0f, 1e-45f, -1e-39f, 1.0f, -1e30f, 1e34f, FLT_MAX, -FLT_MAX, kInf}) {
    CAPTURE(value);
    const std::vector<float> values(kColumns, value);
    const Bytes side = learn(values, best_isa());
    CHECK(problem(side).empty());
    CHECK(side == learn(values, Isa::scalar));
    const Bytes blocks = encode(side, values, best_isa());
    CHECK(blocks == encode(side, values, Isa::scalar));
    CHECK(q4x::first_bad_scale(blocks.data(), 2) == (std::isinf(value) ? 0 : 2));
    const std::vector<float> decoded = decode(side, blocks);
    const bool normal = std::fabs(value) >= 1.0f && !std::isinf(value);
    for (const float got : decoded) {
      if (std::fabs(value) == FLT_MAX) {
        CHECK(std::fabs(got) > 1e36f);  // the largest scale there is
      } else if (normal) {
        CHECK(got == Approx(value).epsilon(0.04));
      } else {
        CHECK(std::fabs(got) <= 1e-30f);
      }
    }
  }
  // Values far beyond what the side data were learned for are cut off, not lost.
  const Bytes side = learn(draw(Shape::gaussian, 4 * kColumns, 9), best_isa());
  for (const float value : {1e10f, FLT_MAX, -FLT_MAX}) {
    std::vector<float> values(kColumns, 0.25f);
    values[3] = value;
    const Bytes blocks = encode(side, values, best_isa());
    CHECK(blocks == encode(side, values, Isa::scalar));
    const std::vector<float> decoded = decode(side, blocks);
    CHECK(decoded[3] * value > 0);
    CHECK(decoded[40] == Approx(0.25f).epsilon(0.1));
  }
  // One huge value leaves the rest of the tensor to the small scales.
  std::vector<float> values = draw(Shape::gaussian, 8 * kColumns, 10);
  values[5] = 300.0f;
  const Bytes wide = learn(values, best_isa());
  values[5] = 0.0f;
  CHECK(loss(wide, values) < 0.02 * squared_error(values, std::vector<float>(values.size()), 0, 1));
  // Columns of no importance at all.
  const std::vector<float> nothing(kColumns, 0.0f);
  const Bytes careless = learn(values, best_isa(), nothing.data());
  CHECK(problem(careless).empty());
  const Bytes blocks = encode(careless, values, best_isa(), nothing.data());
  CHECK(q4x::first_bad_scale(blocks.data(), 16) == 16);
}

TEST_CASE("q4x: an empty tensor") {
  q4x::Learner learner(0, kColumns);
  learner.take(0, 0, nullptr, nullptr);
  Bytes side(q4x::kSideBytes);
  learner.learn(best_isa(), side.data());
  CHECK(problem(side).empty());
}
