// Formats against reference bytes made by the public tools (golden/quant_golden.gguf, or the file
// of the same form that LOCKSTEP_GOLDEN names): decoding bit for bit, encoding byte for byte, dot
// products within the rounding of the activations.
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "quant/kernels.h"
#include "support/catch.h"
#include "support/mini_gguf.h"
#include "support/shared.h"

namespace quant = lockstep::quant;
using lockstep::test::MiniGguf;
using quant::FormatTraits;

namespace {

bool is_other_file() { return std::getenv("LOCKSTEP_GOLDEN") != nullptr; }

std::filesystem::path golden_path(const std::filesystem::path& shared) {
  return is_other_file() ? std::filesystem::path(std::getenv("LOCKSTEP_GOLDEN")) : shared;
}

// What is known of the reference file: values of every format that can be computed with.
void check_formats_seen(int seen) {
  int known = 0;
  for (const FormatTraits& format : quant::all_formats()) known += format.vec_dot != nullptr;
  CHECK(seen >= (is_other_file() ? 1 : known));
}

std::string lower(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Index of the first difference, n if none: what a failing check prints.
std::size_t first_difference(const std::byte* a, const std::byte* b, std::size_t n) {
  std::size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

#define GOLDEN_OR_SKIP(FILE)                                          \
  std::filesystem::path path;                                         \
  if (!is_other_file()) {                                             \
    LOCKSTEP_SHARED_OR_SKIP(shared_path, "golden/quant_golden.gguf"); \
    path = shared_path;                                               \
  }                                                                   \
  const MiniGguf FILE(golden_path(path))

}  // namespace

TEST_CASE("golden: sizes of every format in the file") {
  GOLDEN_OR_SKIP(golden);
  int seen = 0;
  for (const FormatTraits& format : quant::all_formats()) {
    const std::string name = lower(format.name);
    if (!golden.has(name) || !golden.has(name + ".f32")) continue;
    CAPTURE(name);
    CHECK(golden[name].type == static_cast<std::uint32_t>(format.format));
    CHECK(golden[name].values() % format.block_values == 0);
    CHECK(golden[name].values() == golden[name + ".f32"].values());
    // The file lays its tensors out in this order, each padded to 32 bytes.
    const auto bytes = static_cast<std::size_t>(golden[name + ".f32"].data - golden[name].data);
    CHECK((quant::bytes_of(format.format, golden[name].values()) + 31) / 32 * 32 == bytes);
    ++seen;
  }
  check_formats_seen(seen);
}

TEST_CASE("golden: decoding is bit for bit the reference's") {
  GOLDEN_OR_SKIP(golden);
  int seen = 0;
  for (const FormatTraits& format : quant::all_formats()) {
    const std::string name = lower(format.name);
    if (format.decode == nullptr || !golden.has(name + ".f32")) continue;
    CAPTURE(name);
    const std::size_t n = golden[name].values();
    std::vector<float> values(n);
    format.decode(golden[name].data, values.data(), n);
    const auto* got = reinterpret_cast<const std::byte*>(values.data());
    CHECK(first_difference(got, golden[name + ".f32"].data, n * sizeof(float)) ==
          n * sizeof(float));
    const std::size_t blocks = n / format.block_values;
    CHECK(format.first_bad_scale(golden[name].data, blocks) == blocks);
    ++seen;
  }
  check_formats_seen(seen);
}

TEST_CASE("golden: encoding is byte for byte the reference's") {
  GOLDEN_OR_SKIP(golden);
  const auto check = [&](const char* format_name, const char* input, const char* expected) {
    // Our own file has them all; another one may leave some out.
    if (is_other_file() && !(golden.has(input) && golden.has(expected))) return;
    CAPTURE(format_name, input);
    const FormatTraits* format = quant::find_format(std::string_view(format_name));
    REQUIRE(format != nullptr);
    REQUIRE(format->encode != nullptr);
    const std::vector<float> values = golden[input].floats();
    const std::size_t bytes = quant::bytes_of(format->format, values.size());
    std::vector<std::byte> blocks(bytes);
    format->encode(values.data(), nullptr, blocks.data(), values.size());
    CHECK(first_difference(blocks.data(), golden[expected].data, bytes) == bytes);
  };
  check("q4_0", "rows", "q4_0");
  check("q4_1", "rows", "q4_1");
  check("q5_0", "rows", "q5_0");
  check("q5_1", "rows", "q5_1");
  check("q8_0", "rows", "q8_0");
  check("q8_0", "activations", "activations.q8_0.bytes");
  check("q8_k", "activations", "activations.q8_k.bytes");
}

// The reference dot products use the unquantized activations, so ours differ by at most half a
// quantization step of every activation.
TEST_CASE("golden: dot products are the reference's within the rounding of activations") {
  GOLDEN_OR_SKIP(golden);
  if (is_other_file() && !golden.has("activations")) return;
  const std::vector<float> activations = golden["activations"].floats();
  const std::size_t k = golden["activations"].shape.at(0);
  const std::size_t tokens = activations.size() / k;
  int seen = 0;
  for (const FormatTraits& format : quant::all_formats()) {
    const std::string name = lower(format.name);
    if (format.vec_dot == nullptr || !golden.has(name + ".dot")) continue;
    CAPTURE(name);
    const std::vector<float> dots = golden[name + ".dot"].floats();
    const std::vector<float> weights = golden[name + ".f32"].floats();
    const std::size_t rows = weights.size() / k;
    REQUIRE(dots.size() == rows * tokens);
    const auto layout = quant::ActivationLayout::of(format.activation, k);
    const std::size_t block = quant::traits(format.activation).block_values;
    alignas(64) std::vector<float> buffer(layout.bytes / sizeof(float));
    auto* base = reinterpret_cast<std::byte*>(buffer.data());
    int wrong = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      const quant::ActivationRow row = layout.row(base);
      quant::row_kernels(quant::Isa::scalar)
          .quantize_activations(&activations[t * k], k, block, const_cast<std::int8_t*>(row.q),
                                const_cast<std::int16_t*>(row.sums), const_cast<float*>(row.scale));
      for (std::size_t r = 0; r < rows; ++r) {
        double slack = 0;
        for (std::size_t i = 0; i < k; ++i) {
          slack += std::fabs(double{weights[r * k + i]}) * 0.51 * double{row.scale[i / block]};
          slack += std::fabs(double{weights[r * k + i]} * double{activations[t * k + i]}) * 1e-6;
        }
        const float got =
            format.vec_dot(golden[name].data + r * quant::bytes_of(format.format, k), row, k);
        if (!(std::fabs(double{got} - double{dots[r * tokens + t]}) <= slack + 1e-30)) ++wrong;
      }
    }
    CHECK(wrong == 0);
    ++seen;
  }
  check_formats_seen(seen);
}
