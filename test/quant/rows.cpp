// Row arithmetic: every instruction set returns the bits of the scalar one, for all lengths around
// the vector width and with NaN, infinities and subnormals inside; and the scalar one is right by
// float64. Rows live in heap blocks of their exact size, so a sanitizer sees any access past the
// end.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "quant/half.h"
#include "quant/kernels.h"
#include "support/catch.h"
#include "test/quant/fixtures.h"

namespace quant = lockstep::quant;
using lockstep::test::same_float;
using quant::Isa;
using quant::RowKernels;

namespace {

constexpr std::size_t kLengths[] = {0,  1,  2,  7,  8,  9,   15,  16,  17,  31,
                                    32, 33, 47, 48, 64, 100, 255, 256, 257, 1000};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

enum class Kind { gaussian, wide, special };

std::vector<float> make_row(std::size_t n, Kind kind, std::uint32_t seed) {
  constexpr float kSpecial[] = {kNan,     kInf,    -kInf,   0.0f,   -0.0f,   1e-45f,
                                -1e-40f,  3.4e38f, -3e38f,  88.72f, -103.9f, 65519.9f,
                                65520.0f, 6e-8f,   2.9e-8f, 1.0f};
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(n);
  for (float& x : row) {
    x = normal(random);
    if (kind == Kind::wide) x = std::ldexp(x, static_cast<int>(random() % 250) - 125);
    if (kind == Kind::special && random() % 4 == 0) x = kSpecial[random() % std::size(kSpecial)];
  }
  return row;
}

std::vector<std::uint16_t> make_halves(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint16_t> row(n);
  for (std::uint16_t& x : row) x = static_cast<std::uint16_t>(random());
  return row;
}

bool same_row(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_float);
}

std::vector<Isa> vector_isas() {
  const quant::IsaSet here = quant::built_isas() & quant::detect_isas();
  std::vector<Isa> found;
  for (const Isa isa : quant::kAllIsas) {
    if (isa != Isa::scalar && here.has(isa)) found.push_back(isa);
  }
  return found;
}

// Everything that an operation leaves behind, in one row.
using Probe = std::function<std::vector<float>(const RowKernels&, std::size_t, Kind)>;

struct NamedProbe {
  const char* name;
  Probe run;
};

std::vector<float> with(std::vector<float> row, float result) {
  row.push_back(result);
  return row;
}

std::vector<NamedProbe> reductions() {
  return {
      {"dot_f32",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         return with({}, k.dot_f32(make_row(n, kind, 1).data(), make_row(n, kind, 2).data(), n));
       }},
      {"dot_f16",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         return with({}, k.dot_f16(make_row(n, kind, 1).data(), make_halves(n, 3).data(), n));
       }},
      {"sum", [](const RowKernels& k, std::size_t n,
                 Kind kind) { return with({}, k.sum(make_row(n, kind, 4).data(), n)); }},
      {"sum_squares",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         return with({}, k.sum_squares(make_row(n, kind, 5).data(), n));
       }},
      {"max", [](const RowKernels& k, std::size_t n,
                 Kind kind) { return with({}, k.max(make_row(n, kind, 6).data(), n)); }},
      {"exp_sum",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         auto row = make_row(n, kind, 7);
         const float sum = k.exp_sum(row.data(), 1.5f, n);
         return with(row, sum);
       }},
  };
}

std::vector<NamedProbe> maps() {
  const auto unary = [](const char* name, auto member) {
    return NamedProbe{name, [member](const RowKernels& k, std::size_t n, Kind kind) {
                        const auto x = make_row(n, kind, 8);
                        std::vector<float> y(n);
                        (k.*member)(x.data(), y.data(), n);
                        return y;
                      }};
  };
  const auto binary = [](const char* name, auto member) {
    return NamedProbe{name, [member](const RowKernels& k, std::size_t n, Kind kind) {
                        auto x = make_row(n, kind, 9);
                        const auto y = make_row(n, kind, 10);
                        std::vector<float> z(n);
                        (k.*member)(x.data(), y.data(), z.data(), n);
                        (k.*member)(x.data(), y.data(), x.data(), n);  // in place
                        z.insert(z.end(), x.begin(), x.end());
                        return z;
                      }};
  };
  return {
      unary("exp", &RowKernels::exp),
      unary("relu", &RowKernels::relu),
      unary("sigmoid", &RowKernels::sigmoid),
      unary("tanh", &RowKernels::tanh),
      unary("silu", &RowKernels::silu),
      unary("gelu", &RowKernels::gelu),
      binary("add", &RowKernels::add),
      binary("mul", &RowKernels::mul),
      binary("swiglu", &RowKernels::swiglu),
      binary("geglu", &RowKernels::geglu),
      {"shift and soft_cap",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         auto x = make_row(n, kind, 25);
         k.shift(0.7f, x.data(), x.data(), n);
         k.soft_cap(5.0f, x.data(), x.data(), n);
         return x;
       }},
      {"layer_norm",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         std::vector<float> y(n);
         k.layer_norm(make_row(n, kind, 26).data(), make_row(n, Kind::gaussian, 27).data(),
                      n % 2 == 0 ? nullptr : make_row(n, Kind::gaussian, 28).data(), 1e-5f,
                      y.data(), n);
         return y;
       }},
      {"hadamard",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         auto x = make_row(std::bit_floor(n), kind, 29);
         k.hadamard(0.25f, x.data(), x.size());
         return x;
       }},
      {"scale",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         auto x = make_row(n, kind, 11);
         k.scale(1.7f, x.data(), x.data(), n);
         return x;
       }},
      {"axpy_f32",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         auto y = make_row(n, kind, 12);
         k.axpy_f32(-0.3f, make_row(n, kind, 13).data(), y.data(), n);
         return y;
       }},
      {"axpy_f16",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         auto y = make_row(n, kind, 14);
         k.axpy_f16(-0.3f, make_halves(n, 15).data(), y.data(), n);
         return y;
       }},
      {"rms_norm",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         std::vector<float> y(n);
         k.rms_norm(make_row(n, kind, 16).data(), make_row(n, Kind::gaussian, 17).data(), 1e-5f,
                    y.data(), n);
         return y;
       }},
      {"f16_to_f32",
       [](const RowKernels& k, std::size_t n, Kind) {
         std::vector<float> y(n);
         k.f16_to_f32(make_halves(n, 18).data(), y.data(), n);
         return y;
       }},
      {"bf16_to_f32",
       [](const RowKernels& k, std::size_t n, Kind) {
         std::vector<float> y(n);
         k.bf16_to_f32(make_halves(n, 19).data(), y.data(), n);
         return y;
       }},
      {"tiles",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         const std::size_t dim = n / 16 * 16;
         constexpr std::size_t kQueries = 13;
         const auto x = make_row(kQueries * dim, kind, 21);
         const auto rows = make_row(16 * dim, kind, 22);
         auto y = make_row(kQueries * dim, kind, 23);
         std::vector<float> columns(16 * dim);
         k.transpose16(rows.data(), dim, dim, columns.data());
         std::vector<float> dots(kQueries * 17);
         const float* x_of[kQueries];
         float* y_of[kQueries];
         for (std::size_t q = 0; q < kQueries; ++q) {
           x_of[q] = x.data() + q * dim;
           y_of[q] = y.data() + q * dim;
         }
         k.dot_tile(x_of, kQueries, columns.data(), dim, 0.3f, dots.data(), 17);
         k.axpy_tile(dots.data(), 17, kQueries, rows.data(), dim, 11, dim, y_of);
         y.insert(y.end(), dots.begin(), dots.end());
         return y;
       }},
      {"q8_0_to_f32",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         const quant::FormatTraits& q8_0 = quant::traits(quant::Format::q8_0);
         const auto x = make_row(n / 32 * 32, kind, 24);
         std::vector<std::byte> blocks(quant::bytes_of(q8_0.format, x.size()));
         q8_0.encode(x.data(), nullptr, blocks.data(), x.size());
         std::vector<float> expected(x.size());
         std::vector<float> y(x.size());
         q8_0.decode(blocks.data(), expected.data(), x.size());
         k.q8_0_to_f32(blocks.data(), y.data(), x.size());
         CHECK(same_row(y, expected));
         return y;
       }},
      {"f32_to_f16",
       [](const RowKernels& k, std::size_t n, Kind kind) {
         std::vector<std::uint16_t> half(n);
         k.f32_to_f16(make_row(n, kind, 20).data(), half.data(), n);
         std::vector<float> y(n);
         for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<float>(half[i]);  // NaN bits too
         return y;
       }},
  };
}

void compare(const std::vector<NamedProbe>& probes) {
  const RowKernels& scalar = quant::row_kernels(Isa::scalar);
  for (const Isa isa : vector_isas()) {
    for (const NamedProbe& probe : probes) {
      for (const std::size_t n : kLengths) {
        for (const Kind kind : {Kind::gaussian, Kind::wide, Kind::special}) {
          CAPTURE(quant::name_of(isa), probe.name, n, static_cast<int>(kind));
          CHECK(same_row(probe.run(quant::row_kernels(isa), n, kind), probe.run(scalar, n, kind)));
        }
      }
    }
  }
}

// Distance in units in the last place of the exact value, as f32 has them.
double ulps(float got, double exact) {
  const double size = std::max(std::fabs(exact), std::ldexp(1.0, -126));
  return std::fabs(double{got} - exact) / std::ldexp(1.0, std::ilogb(size) - 23);
}

}  // namespace

TEST_CASE("rows: reductions have the same bits on every instruction set") { compare(reductions()); }

TEST_CASE("rows: element-wise operations have the same bits on every instruction set") {
  compare(maps());
}

TEST_CASE("rows: reductions follow the documented order") {
  const RowKernels& rows = quant::row_kernels(Isa::scalar);
  for (const std::size_t n : kLengths) {
    const auto x = make_row(n, Kind::wide, 31);
    const auto y = make_row(n, Kind::wide, 32);
    float lane[16] = {};
    for (std::size_t i = 0; i < n; ++i) lane[i % 16] = std::fma(x[i], y[i], lane[i % 16]);
    for (std::size_t width = 8; width != 0; width /= 2) {
      for (std::size_t j = 0; j < width; ++j) lane[j] += lane[j + width];
    }
    CAPTURE(n);
    CHECK(same_float(rows.dot_f32(x.data(), y.data(), n), lane[0]));
  }
}

TEST_CASE("rows: reductions against float64") {
  const RowKernels& rows = quant::row_kernels(Isa::scalar);
  for (const std::size_t n : kLengths) {
    const auto x = make_row(n, Kind::gaussian, 33);
    const auto y = make_row(n, Kind::gaussian, 34);
    const auto h = make_halves(n, 35);
    double dot = 0;
    double total = 0;
    double squares = 0;
    float largest = -kInf;
    for (std::size_t i = 0; i < n; ++i) {
      dot += double{x[i]} * y[i];
      total += x[i];
      squares += double{x[i]} * x[i];
      largest = std::max(largest, x[i]);
    }
    CAPTURE(n);
    const double slack = 1e-6 * (static_cast<double>(n) + squares) + 1e-12;
    CHECK(std::fabs(rows.dot_f32(x.data(), y.data(), n) - dot) <= slack);
    CHECK(std::fabs(rows.sum(x.data(), n) - total) <= slack);
    CHECK(std::fabs(rows.sum_squares(x.data(), n) - squares) <= slack);
    CHECK(rows.max(x.data(), n) == largest);
  }
}

TEST_CASE("rows: max ignores NaN wherever it is") {
  for (const Isa isa :
       {Isa::scalar, quant::choose_isa(quant::built_isas() & quant::detect_isas(), "")}) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{17}, std::size_t{40}}) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> x(n, -3.0f);
        x[at] = kNan;
        CHECK(quant::row_kernels(isa).max(x.data(), n) == (n == 1 ? -kInf : -3.0f));
      }
    }
  }
}

TEST_CASE("rows: exp is within 2 ulp, and exact at the edges") {
  const Isa best = quant::choose_isa(quant::built_isas() & quant::detect_isas(), "");
  const RowKernels& rows = quant::row_kernels(best);
  // Every 1009th float from -104 to 89, both signs.
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(104.0f); bits += 1009) {
    x.push_back(-std::bit_cast<float>(bits));
    if (std::bit_cast<float>(bits) < 88.7f) x.push_back(std::bit_cast<float>(bits));
  }
  std::vector<float> y(x.size());
  rows.exp(x.data(), y.data(), x.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, ulps(y[i], std::exp(double{x[i]})));
  CAPTURE(x.size());
  CHECK(worst < 2.0);
  CHECK(x.size() > 1000000);

  const std::vector<float> edge = {0.0f,      -0.0f, kInf,  -kInf,   kNan,
                                   88.72284f, 89.5f, 1e30f, -104.0f, -1e30f};
  std::vector<float> got(edge.size());
  for (const Isa isa : {Isa::scalar, best}) {
    quant::row_kernels(isa).exp(edge.data(), got.data(), edge.size());
    const std::vector<float> expected = {1, 1, kInf, 0, kNan, kInf, kInf, kInf, 0, 0};
    CHECK(same_row(got, expected));
  }
}

TEST_CASE("rows: tanh is within 4 ulp, and exact at the edges") {
  const Isa best = quant::choose_isa(quant::built_isas() & quant::detect_isas(), "");
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(12.0f); bits += 1009) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-std::bit_cast<float>(bits));
  }
  std::vector<float> y(x.size());
  quant::row_kernels(best).tanh(x.data(), y.data(), x.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, ulps(y[i], std::tanh(double{x[i]})));
  CHECK(worst < 4.0);
  CHECK(x.size() > 1000000);
  const std::vector<float> edge = {0.0f, kInf, -kInf, kNan, 3e38f, -1e30f};
  std::vector<float> got(edge.size());
  for (const Isa isa : {Isa::scalar, best}) {
    quant::row_kernels(isa).tanh(edge.data(), got.data(), edge.size());
    CHECK(same_row(got, {0, 1, -1, kNan, 1, -1}));
  }
}

TEST_CASE("rows: activations against float64") {
  const RowKernels& rows = quant::row_kernels(Isa::scalar);
  std::vector<float> x;
  for (int i = -3000; i <= 3000; ++i) x.push_back(static_cast<float>(i) / 100.0f);
  std::vector<float> up(x.rbegin(), x.rend());
  std::vector<float> silu(x.size());
  std::vector<float> swiglu(x.size());
  std::vector<float> gelu(x.size());
  rows.silu(x.data(), silu.data(), x.size());
  rows.swiglu(x.data(), up.data(), swiglu.data(), x.size());
  rows.gelu(x.data(), gelu.data(), x.size());
  double worst_silu = 0;
  double worst_swiglu = 0;
  double worst_gelu = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    const double exact_silu = v / (1 + std::exp(-v));
    worst_silu = std::max(worst_silu, ulps(silu[i], exact_silu));
    worst_swiglu = std::max(worst_swiglu, ulps(swiglu[i], exact_silu * up[i]));
    // Far out the tanh form cancels even in float64; x * sigmoid(2u) is the same function.
    const double u = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
    const double exact_gelu = v / (1 + std::exp(-2 * u));
    worst_gelu = std::max(worst_gelu, std::fabs(gelu[i] - exact_gelu) / (std::fabs(v) + 1));
  }
  CHECK(worst_silu < 4);
  CHECK(worst_swiglu < 5);
  CHECK(worst_gelu < 4e-7);
}

TEST_CASE("rows: tiles have the bits of the rows they stand for") {
  const RowKernels& rows = quant::row_kernels(Isa::scalar);
  for (const std::size_t n : {std::size_t{16}, std::size_t{48}, std::size_t{128}}) {
    const auto x = make_row(n, Kind::gaussian, 41);
    const auto y = make_row(16 * n, Kind::gaussian, 42);
    std::vector<float> columns(16 * n);
    std::vector<float> dots(16);
    const float* x_of[] = {x.data()};
    rows.transpose16(y.data(), n, n, columns.data());
    rows.dot_tile(x_of, 1, columns.data(), n, 0.7f, dots.data(), 16);
    std::vector<float> tiled(n, 0.5f);
    std::vector<float> plain(n, 0.5f);
    float* tiled_of[] = {tiled.data()};
    rows.axpy_tile(dots.data(), 16, 1, y.data(), n, 9, n, tiled_of);
    for (std::size_t j = 0; j < 9; ++j) rows.axpy_f32(dots[j], y.data() + j * n, plain.data(), n);
    CHECK(same_row(tiled, plain));
    for (std::size_t j = 0; j < 16; ++j) {
      CHECK(same_float(dots[j], rows.dot_f32(x.data(), y.data() + j * n, n) * 0.7f));
    }
  }
}

TEST_CASE("rows: RMS norm against float64") {
  const RowKernels& rows = quant::row_kernels(Isa::scalar);
  for (const std::size_t n : kLengths) {
    if (n == 0) continue;
    const auto x = make_row(n, Kind::gaussian, 36);
    const auto weight = make_row(n, Kind::gaussian, 37);
    std::vector<float> y(n);
    rows.rms_norm(x.data(), weight.data(), 1e-5f, y.data(), n);
    double squares = 0;
    for (const float v : x) squares += double{v} * v;
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + double{1e-5f});
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i)
      worst = std::max(worst, ulps(y[i], x[i] * inverse * weight[i]));
    CAPTURE(n);
    CHECK(worst < 8);
  }
}

// Equality among the instruction sets of one machine says nothing about another architecture; a
// number written down here does.
TEST_CASE("rows: the bits are the same on every architecture") {
  constexpr std::size_t kN = 2005;
  std::vector<float> x(kN);
  std::vector<float> w(kN);
  for (std::size_t i = 0; i < kN; ++i) {
    x[i] = static_cast<float>(static_cast<int>(i * 7919 % 4001) - 2000) / 64.0f;
    w[i] = static_cast<float>(1 + i % 97) / 32.0f;
  }
  const quant::IsaSet here = quant::built_isas() & quant::detect_isas();
  for (const Isa isa : quant::kAllIsas) {
    if (!here.has(isa)) continue;
    const RowKernels& rows = quant::row_kernels(isa);
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over the bits, word by word
    const auto add = [&hash](const std::vector<float>& values) {
      for (const float v : values) hash = (hash ^ std::bit_cast<std::uint32_t>(v)) * 0x100000001b3u;
    };
    std::vector<float> y(kN);
    rows.exp(x.data(), y.data(), kN);
    add(y);
    rows.silu(x.data(), y.data(), kN);
    add(y);
    rows.gelu(x.data(), y.data(), kN);
    add(y);
    rows.rms_norm(x.data(), w.data(), 1e-5f, y.data(), kN);
    add(y);
    add({rows.dot_f32(x.data(), w.data(), kN), rows.sum(w.data(), kN), rows.max(x.data(), kN)});
    add({rows.exp_sum(y.data(), 0.5f, kN)});
    CAPTURE(quant::name_of(isa), hash);
    CHECK(hash == 0x6a9b9102912eaf2cu);
  }
}

TEST_CASE("rows: many rows at once have the bits of one after another") {
  for (const Isa isa : quant::kAllIsas) {
    if (!(quant::built_isas() & quant::detect_isas()).has(isa)) continue;
    const RowKernels& k = quant::row_kernels(isa);
    for (const std::size_t n : {0u, 1u, 15u, 16u, 32u, 40u, 64u, 80u, 128u, 144u, 201u}) {
      for (const std::size_t count : {0u, 1u, 3u, 4u, 5u, 64u, 67u}) {
        CAPTURE(n, count);
        const std::size_t stride = n + 5;
        const auto x = make_row(n, Kind::gaussian, 31);
        const auto rows = make_row(stride * count, Kind::gaussian, 32);
        std::vector<std::uint16_t> halves(rows.size());  // no NaN, which equals nothing
        k.f32_to_f16(rows.data(), halves.data(), rows.size());
        const auto factors = make_row(count, Kind::gaussian, 34);
        const auto start = make_row(n, Kind::gaussian, 35);
        std::vector<float> dots(count), half_dots(count), expected(count), half_expected(count);
        auto y = start, half_y = start, expected_y = start, half_expected_y = start;
        for (std::size_t j = 0; j < count; ++j) {
          expected[j] = k.dot_f32(x.data(), rows.data() + j * stride, n);
          half_expected[j] = k.dot_f16(x.data(), halves.data() + j * stride, n);
          k.axpy_f32(factors[j], rows.data() + j * stride, expected_y.data(), n);
          k.axpy_f16(factors[j], halves.data() + j * stride, half_expected_y.data(), n);
        }
        k.dot_rows_f32(x.data(), rows.data(), stride, count, n, dots.data());
        k.dot_rows_f16(x.data(), halves.data(), stride, count, n, half_dots.data());
        k.axpy_rows_f32(factors.data(), rows.data(), stride, count, n, y.data());
        k.axpy_rows_f16(factors.data(), halves.data(), stride, count, n, half_y.data());
        CHECK(dots == expected);
        CHECK(half_dots == half_expected);
        CHECK(y == expected_y);
        CHECK(half_y == half_expected_y);
      }
    }
  }
}
