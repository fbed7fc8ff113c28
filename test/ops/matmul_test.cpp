// matmul with every kernel that was built: against float64, against the format's own dot product
// bit for bit, and the same bits for any team, any sharding, any batch.
#include <cmath>
#include <limits>

#include "ops/dense.h"
#include "support/graph_runner.h"
#include "support/packed_matrix.h"
#include "support/random.h"
#include "support/random_rows.h"
#include "support/shape_errors.h"

using namespace lockstep;
using namespace lockstep::test;
using ops::DType;
using ops::Value;
using quant::MatmulKernel;

namespace {

std::vector<const MatmulKernel*> runnable_kernels() {
  std::vector<const MatmulKernel*> kernels;
  const quant::IsaSet usable = quant::built_isas() & quant::detect_isas();
  for (const auto list : {quant::all_matmul_kernels(), ops::dense_kernels()}) {
    for (const MatmulKernel& kernel : list) {
      if (usable.has(kernel.isa)) kernels.push_back(&kernel);
    }
  }
  return kernels;
}

// The recurrence of dense.h, spelled out.
float dense_dot(const float* w, const float* x, std::size_t k) {
  float y = 0.0f;
  for (std::size_t first = 0; first < k; first += ops::kDenseDepth) {
    float sum = 0.0f;
    for (std::size_t i = first; i < std::min(k, first + ops::kDenseDepth); ++i) {
      sum = std::fma(w[i], x[i], sum);
    }
    y += sum;
  }
  return y;
}

// What every kernel of this format must return for these tokens, and a float64 sum to hold it
// against.
struct Expected {
  std::vector<float> bits;
  std::vector<double> exact, magnitude;
};

Expected expect(quant::Format format, const std::vector<std::byte>& file, std::size_t rows,
                std::size_t columns, const std::vector<float>& x) {
  const quant::FormatTraits& traits = quant::traits(format);
  std::vector<float> weights(rows * columns);
  quant::decode_values(traits, side_data(traits), file.data(), weights.data(), weights.size());
  const std::size_t row_bytes = quant::bytes_of(format, columns);
  const bool dense = traits.activation == quant::Format::f32;
  Expected expected;
  for (std::size_t t = 0; t < x.size() / columns; ++t) {
    std::vector<float> token(x.begin() + static_cast<std::ptrdiff_t>(t * columns),
                             x.begin() + static_cast<std::ptrdiff_t>((t + 1) * columns));
    quant::ActivationRow row;
    std::vector<std::uint64_t> buffer;
    if (!dense) {
      const std::size_t block = quant::traits(traits.activation).block_values;
      const auto layout = quant::ActivationLayout::of(traits.activation, columns);
      buffer.resize(layout.bytes / sizeof(std::uint64_t));
      auto* base = reinterpret_cast<std::byte*>(buffer.data());
      row = layout.row(base);
      quant::row_kernels(quant::Isa::scalar)
          .quantize_activations(token.data(), columns, block,
                                reinterpret_cast<std::int8_t*>(base + layout.q),
                                reinterpret_cast<std::int16_t*>(base + layout.sums),
                                reinterpret_cast<float*>(base + layout.scale));
      for (std::size_t i = 0; i < columns; ++i) {
        token[i] = row.scale[i / block] * static_cast<float>(row.q[i]);
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0.0, magnitude = 0.0;
      for (std::size_t i = 0; i < columns; ++i) {
        const double product =
            static_cast<double>(weights[r * columns + i]) * static_cast<double>(token[i]);
        sum += product;
        magnitude += std::abs(product);
      }
      expected.exact.push_back(sum);
      expected.magnitude.push_back(magnitude);
      expected.bits.push_back(dense ? dense_dot(&weights[r * columns], token.data(), columns)
                                    : quant::dot_row(traits, side_data(traits),
                                                     file.data() + r * row_bytes, row, columns));
    }
  }
  return expected;
}

void check_kernel(const MatmulKernel& kernel, std::size_t rows, std::size_t columns,
                  std::size_t tokens) {
  CAPTURE(kernel.name, rows, columns, tokens);
  Random random(21);
  const auto file = random_rows(quant::traits(kernel.format), rows, columns, random);
  const auto x = random.values(tokens * columns, 2.0f);
  const Expected expected = expect(kernel.format, file, rows, columns, x);
  for (const unsigned team : {1u, 3u}) {
    const Packed packed = pack(kernel, file, rows, columns, team);
    const auto y = run_every_way<float>([&](TestGraph& test) {
      return ops::matmul(test.graph, test.input({DType::f32, {tokens, columns}}, x), packed.matrix);
    });
    REQUIRE(y.size() == expected.bits.size());
    CHECK(std::memcmp(y.data(), expected.bits.data(), y.size() * sizeof(float)) == 0);
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (!(std::abs(y[i] - expected.exact[i]) <= 3e-6 * expected.magnitude[i])) {
        FAIL("element " << i << " is " << y[i] << ", expected " << expected.exact[i]);
      }
    }
  }
}

}  // namespace

TEST_CASE("every kernel is right to the bit, for any team and sharding", "[matmul]") {
  for (const MatmulKernel* kernel : runnable_kernels()) {
    const std::size_t panel = kernel->panel_rows;
    const std::size_t block = std::max<std::size_t>(32, quant::traits(kernel->format).block_values);
    const bool dense = quant::traits(kernel->format).activation == quant::Format::f32;
    for (const std::size_t rows : {std::size_t{1}, panel + 1, 4 * panel - 1, 5 * panel}) {
      check_kernel(*kernel, rows, dense ? 37 : 3 * block, 3);
    }
  }
}

TEST_CASE("dense kernels take any number of columns", "[matmul]") {
  for (const MatmulKernel& kernel : ops::dense_kernels()) {
    if (!quant::detect_isas().has(kernel.isa)) continue;
    for (const std::size_t columns : {1, 7, 8, 9, 172, 255, 256, 257, 600}) {
      check_kernel(kernel, 26, columns, 2);
    }
  }
}

TEST_CASE("dense kernels take any number of tokens", "[matmul]") {
  for (const MatmulKernel& kernel : ops::dense_kernels()) {
    if (!quant::detect_isas().has(kernel.isa)) continue;
    for (const std::size_t tokens : {1, 2, 3, 4, 5, 8, 15, 16, 17, 18, 63, 64, 65, 67, 130}) {
      check_kernel(kernel, 25, 270, tokens);
    }
  }
}

TEST_CASE("a token's bits do not depend on its batch mates, and a NaN stays in its token",
          "[matmul]") {
  for (const MatmulKernel* kernel : runnable_kernels()) {
    CAPTURE(kernel->name);
    const std::size_t rows = 2 * kernel->panel_rows + 1;
    const std::size_t columns = 512;
    Random random(22);
    const auto file = random_rows(quant::traits(kernel->format), rows, columns, random);
    const Packed packed = pack(*kernel, file, rows, columns, 1);
    auto x = random.values(20 * columns);
    const auto run = [&](const std::vector<float>& values) {
      return run_every_way<float>([&](TestGraph& test) {
        const Value in = test.input({DType::f32, {values.size() / columns, columns}}, values);
        return ops::matmul(test.graph, in, packed.matrix);
      });
    };
    const auto clean = run(x);
    const std::vector<float> one(x.begin() + 9 * 512, x.begin() + 10 * 512);
    const auto alone = run(one);
    CHECK(std::memcmp(alone.data(), &clean[9 * rows], rows * sizeof(float)) == 0);
    x[7 * columns + 300] = std::numeric_limits<float>::quiet_NaN();
    const auto dirty = run(x);
    for (std::size_t i = 0; i < dirty.size(); ++i) {
      if (i / rows == 7) {
        CHECK(std::isnan(dirty[i]));
      } else {
        CHECK(dirty[i] == clean[i]);
      }
    }
  }
}

TEST_CASE("shards of any team serve any other team", "[matmul]") {
  for (const MatmulKernel* kernel : runnable_kernels()) {
    if (kernel->format != quant::Format::f16 && kernel->format != quant::Format::q8_0) continue;
    CAPTURE(kernel->name);
    const std::size_t rows = 9 * kernel->panel_rows + 1;
    Random random(23);
    const auto file = random_rows(quant::traits(kernel->format), rows, 64, random);
    const auto x = random.values(2 * 64);
    std::vector<float> expected;
    for (const std::size_t panels_per_align : {1, 2, 3}) {
      for (unsigned team = 1; team <= 7; ++team) {
        const Packed packed = pack(*kernel, file, rows, 64, team, panels_per_align);
        const auto y = run_every_way<float>([&](TestGraph& test) {
          return ops::matmul(test.graph, test.input({DType::f32, {2, 64}}, x), packed.matrix);
        });
        if (expected.empty()) expected = y;
        CHECK(y == expected);
      }
    }
  }
}

TEST_CASE("instruction sets agree on dense matmul to the bit", "[matmul]") {
  for (const quant::Format format : {quant::Format::f32, quant::Format::f16, quant::Format::bf16}) {
    Random random(24);
    const auto file = random_rows(quant::traits(format), 50, 700, random);
    const auto x = random.values(21 * 700);
    std::vector<float> expected;
    for (const quant::Isa isa : runnable_isas()) {
      const MatmulKernel* kernel = ops::find_kernel(format, isa);
      REQUIRE(kernel != nullptr);
      CHECK(quant::includes(isa, kernel->isa));
      CHECK(kernel->format == format);
      const Packed packed = pack(*kernel, file, 50, 700, 2);
      const auto y = run_every_way<float>([&](TestGraph& test) {
        return ops::matmul(test.graph, test.input({DType::f32, {21, 700}}, x), packed.matrix);
      });
      if (expected.empty()) expected = y;
      CHECK(y == expected);
    }
  }
}

TEST_CASE("find_kernel covers what can be multiplied and nothing else", "[matmul]") {
  for (const quant::FormatTraits& format : quant::all_formats()) {
    CAPTURE(format.name);
    const bool dense = format.activation == quant::Format::f32 && format.decode != nullptr;
    const MatmulKernel* kernel = ops::find_kernel(format.format, quant::Isa::scalar);
    if (format.can_dot() || format.format == quant::Format::f16) {
      REQUIRE(kernel != nullptr);
      CHECK(kernel->isa == quant::Isa::scalar);
      CHECK((quant::find_matmul(format.format, quant::Isa::scalar) == nullptr) == dense);
    }
  }
  CHECK(ops::find_kernel(quant::Format::i64, quant::Isa::avx2) == nullptr);
  CHECK(ops::find_kernel(quant::Format::bf16, quant::Isa::scalar)->panel_rows == 1);
}

TEST_CASE("packing dense panels keeps the file's bytes per weight", "[matmul]") {
  for (const MatmulKernel& kernel : ops::dense_kernels()) {
    const std::size_t size = quant::traits(kernel.format).block_bytes;
    CHECK(kernel.panel_bytes(7) == kernel.panel_rows * 7 * size);
    CHECK(ops::packed_bytes(kernel, kernel.panel_rows + 1, 7) == 2 * kernel.panel_bytes(7));
    CHECK(ops::packed_bytes(kernel, 0, 7) == 0);
  }
}

TEST_CASE("matmuls of one value share its quantized form", "[matmul]") {
  const MatmulKernel* kernel = ops::find_kernel(quant::Format::q8_0, quant::Isa::scalar);
  REQUIRE(kernel != nullptr);
  Random random(25);
  const auto file = random_rows(quant::traits(quant::Format::q8_0), 4, 64, random);
  const Packed packed = pack(*kernel, file, 4, 64, 1);
  ops::Graph graph(quant::Isa::scalar);
  const Value x = graph.input("x", {DType::f32, {2, 64}});
  ops::matmul(graph, x, packed.matrix);
  ops::matmul(graph, x, packed.matrix);
  CHECK(graph.nodes().size() == 3);
  const Value quantized = ops::quantize(graph, x, quant::Format::q8_0);
  const Value y = ops::matmul(graph, quantized, packed.matrix);
  CHECK(graph.nodes().size() == 4);
  CHECK(graph.type(y) == ops::TensorType{DType::f32, {2, 4}});
  CHECK(graph.nodes()[1].op->detail().find("weights") != std::string::npos);
  CHECK(graph.nodes()[1].op->weight_bytes() == packed.matrix.bytes());
}

TEST_CASE("matmul says which operand has which extents", "[matmul]") {
  const MatmulKernel* kernel = ops::find_kernel(quant::Format::q8_0, quant::Isa::scalar);
  Random random(26);
  const auto file = random_rows(quant::traits(quant::Format::q8_0), 4, 64, random);
  Packed packed = pack(*kernel, file, 4, 64, 2);
  ops::Graph graph(quant::Isa::scalar);
  const Value wide = graph.input("wide", {DType::f32, {2, 96}});
  const Value other = graph.input("other", {DType::act_q8_k, {2, 256}});
  const Value x = graph.input("x", {DType::f32, {2, 64}});
  check_shape_error([&] { ops::matmul(graph, wide, packed.matrix); },
                    {"matmul", "x", "[2, 96]", "64", "weights", "[4, 64]"});
  check_shape_error([&] { ops::matmul(graph, other, packed.matrix); },
                    {"matmul", "act_q8_k [2, 256]", "act_q8_0"});
  packed.matrix.shards.pop_back();
  check_shape_error([&] { ops::matmul(graph, x, packed.matrix); },
                    {"matmul", "weights", "[4, 64]", "2 rows"});
  packed.matrix.shards.clear();
  packed.matrix.shards.push_back({{1, 4}, nullptr});
  check_shape_error([&] { ops::matmul(graph, x, packed.matrix); }, {"matmul", "shard at row 1"});
  packed.matrix.kernel = nullptr;
  check_shape_error([&] { ops::matmul(graph, x, packed.matrix); }, {"matmul", "no kernel"});
  packed.matrix.kernel = ops::find_kernel(quant::Format::q4x, quant::Isa::scalar);
  check_shape_error([&] { ops::matmul(graph, x, packed.matrix); }, {"matmul", "side data"});
}
