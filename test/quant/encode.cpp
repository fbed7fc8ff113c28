// Encoders: no row may lose more than with the bytes of the public tools, every instruction set
// must write the same bytes, and importance must do what it says.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "quant/encode.h"
#include "support/catch.h"
#include "support/mini_gguf.h"
#include "support/random.h"
#include "support/shared.h"

namespace quant = lockstep::quant;
using lockstep::test::MiniGguf;
using lockstep::test::Random;
using quant::Format;
using quant::FormatTraits;
using quant::Isa;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<const FormatTraits*> block_formats() {
  std::vector<const FormatTraits*> found;
  for (const FormatTraits& format : quant::all_formats()) {
    if (format.encode != nullptr && format.block_values > 1) found.push_back(&format);
  }
  return found;
}

bool has_searching_encoder(Format format) { return format != Format::q8_k; }

std::string lower(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::byte> encode(quant::Encoder encoder, Format format, const float* values,
                              std::size_t n, const float* importance = nullptr) {
  std::vector<std::byte> bytes(quant::bytes_of(format, n));
  encoder(values, importance, bytes.data(), n);
  return bytes;
}

std::vector<float> decode(Format format, const std::vector<std::byte>& bytes, std::size_t n) {
  std::vector<float> values(n);
  quant::traits(format).decode(bytes.data(), values.data(), n);
  return values;
}

double squared_error(const float* a, const float* b, std::size_t n,
                     const float* weights = nullptr) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double off = double{a[i]} - double{b[i]};
    sum += (weights == nullptr ? 1.0 : double{weights[i]}) * off * off;
  }
  return sum;
}

// Rows of every character that weights have, and some that they have not.
std::vector<float> row_of(int kind, std::size_t n, Random& random) {
  std::vector<float> row(n);
  const auto bell = [&] { return random.value() + random.value() + random.value(); };
  for (std::size_t i = 0; i < n; ++i) {
    switch (kind) {
      case 0:
        row[i] = 0.03f * bell();
        break;
      case 1:
        row[i] = 0.01f * bell() * std::exp(2 * bell());
        break;
      case 2:
        row[i] = 0.37f;
        break;
      case 3:
        row[i] = i % 37 == 5 ? 3.0f * random.value() : 0.0f;
        break;
      case 4:
        row[i] = 1e-6f * bell();
        break;
      case 5:
        row[i] = 1000.0f * bell();
        break;
      case 6:
        row[i] = 0.5f + 0.01f * bell();
        break;
      case 7:
        row[i] = i % 2 == 0 ? 0.5f : -0.5f;
        break;
      case 8:
        row[i] = static_cast<float>(i) / static_cast<float>(n) - 0.25f;
        break;
      case 9:
        row[i] = i % 32 == 0 ? bell() : 0.01f * bell();
        break;
      default:
        row[i] = 0.0f;
    }
  }
  return row;
}
constexpr int kRowKinds = 11;

}  // namespace

TEST_CASE("encode: every instruction set writes the same bytes") {
  for (const FormatTraits* format : block_formats()) {
    CAPTURE(format->name);
    Random random(1);
    for (int kind = 0; kind < kRowKinds + 5; ++kind) {
      CAPTURE(kind);
      // One block, one batch of sixteen groups and one group more, and sizes between.
      for (const std::size_t blocks : {1u, 3u, 17u}) {
        const std::size_t n = blocks * format->block_values;
        std::vector<float> row = row_of(kind % kRowKinds, n, random);
        std::vector<float> importance(n);
        for (float& one : importance) one = std::fabs(random.value()) * (kind == 6 ? 1e20f : 1.0f);
        if (kind >= kRowKinds) {  // any bits as values, and as importance what is not below zero
          for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t bits = random.bits();
            if (kind % 2 == 0 || random.below(40) == 0) std::memcpy(&row[i], &bits, 4);
            const std::uint32_t positive = random.bits() >> 1;
            std::memcpy(&importance[i], &positive, 4);
          }
        }
        const float* const choices[] = {nullptr, importance.data()};
        for (const float* weights : choices) {
          const auto expected = encode(format->encode, format->format, row.data(), n, weights);
          for (const Isa isa : quant::kAllIsas) {
            if (!(quant::built_isas() & quant::detect_isas()).has(isa)) continue;
            const quant::Encoder encoder = quant::find_encoder(format->format, isa);
            CHECK(encode(encoder, format->format, row.data(), n, weights) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("encode: a block depends on nothing beside it") {
  for (const FormatTraits* format : block_formats()) {
    CAPTURE(format->name);
    Random random(2);
    const std::size_t block = format->block_values;
    const std::size_t n = 19 * block;
    const std::vector<float> row = row_of(1, n, random);
    const auto whole = encode(format->encode, format->format, row.data(), n);
    for (std::size_t b = 0; b < n / block; ++b) {
      const auto alone = encode(format->encode, format->format, &row[b * block], block);
      CHECK(std::equal(alone.begin(), alone.end(),
                       whole.begin() + static_cast<std::ptrdiff_t>(b * format->block_bytes)));
    }
  }
}

TEST_CASE("encode: importance lowers the error it weighs") {
  for (const FormatTraits* format : block_formats()) {
    if (!has_searching_encoder(format->format)) continue;
    CAPTURE(format->name);
    Random random(3);
    const std::size_t n = 16 * 256;
    const std::vector<float> row = row_of(0, n, random);
    std::vector<float> importance(n);
    for (float& one : importance) one = std::pow(10.0f, 2 * random.value());
    const auto plain =
        decode(format->format, encode(format->encode, format->format, row.data(), n), n);
    const auto bytes = encode(format->encode, format->format, row.data(), n, importance.data());
    const auto weighted = decode(format->format, bytes, n);
    const double before = squared_error(row.data(), plain.data(), n, importance.data());
    const double after = squared_error(row.data(), weighted.data(), n, importance.data());
    CHECK(after < before);
    // Only ratios count: powers of two change nothing at all.
    for (float& one : importance) one *= 0x1p20f;
    CHECK(encode(format->encode, format->format, row.data(), n, importance.data()) == bytes);
    // Without any difference in importance there is nothing to weigh: no worse than plain.
    const std::vector<float> equal(n, 0.25f);
    const auto even = decode(
        format->format, encode(format->encode, format->format, row.data(), n, equal.data()), n);
    CHECK(squared_error(row.data(), even.data(), n) <=
          squared_error(row.data(), plain.data(), n) * (1 + 1e-6));
  }
}

TEST_CASE("encode: importance that cannot be compared counts as none") {
  for (const FormatTraits* format : block_formats()) {
    if (!has_searching_encoder(format->format)) continue;
    CAPTURE(format->name);
    Random random(4);
    const std::size_t n = 2 * 256;
    const std::vector<float> row = row_of(0, n, random);
    const std::vector<float> ones(n, 1.0f);
    const auto expected = encode(format->encode, format->format, row.data(), n, ones.data());
    for (const float bad : {0.0f, kInf, 1e-40f}) {
      const std::vector<float> all(n, bad);
      CHECK(encode(format->encode, format->format, row.data(), n, all.data()) == expected);
    }
    // A NaN among them weighs nothing, but breaks nothing either.
    std::vector<float> some = ones;
    some[7] = std::nanf("");
    const auto bytes = encode(format->encode, format->format, row.data(), n, some.data());
    CHECK(format->first_bad_scale(bytes.data(), n / format->block_values) ==
          n / format->block_values);
    const auto values = decode(format->format, bytes, n);
    CHECK(squared_error(row.data(), values.data(), n) <
          2 * squared_error(row.data(), decode(format->format, expected, n).data(), n));
  }
}

TEST_CASE("encode: what a format holds exactly, it keeps") {
  for (const FormatTraits* format : block_formats()) {
    CAPTURE(format->name);
    Random random(5);
    for (int kind = 0; kind < 2; ++kind) {
      const std::size_t n = 8 * 256;
      const std::vector<float> row = row_of(kind, n, random);
      const auto first = encode(format->encode, format->format, row.data(), n);
      const auto once = decode(format->format, first, n);
      const auto twice =
          decode(format->format, encode(format->encode, format->format, once.data(), n), n);
      const double lost = squared_error(row.data(), once.data(), n);
      // Encoding again loses next to nothing beside the first time.
      CHECK(squared_error(once.data(), twice.data(), n) <= 0.15 * lost);
    }
  }
}

TEST_CASE("encode: one value in a group loses only the rounding of its scale") {
  for (const FormatTraits* format : block_formats()) {
    CAPTURE(format->name);
    const std::size_t n = 256;
    const auto check = [&](const std::vector<float>& row) {
      const auto bytes = encode(format->encode, format->format, row.data(), n);
      CHECK(squared_error(row.data(), decode(format->format, bytes, n).data(), n) < 1e-4);
    };
    check(std::vector<float>(n, 0.0f));
    if (format->format == Format::iq4_nl || format->format == Format::iq4_xs) continue;
    std::vector<float> spike(n, 0.0f);
    spike[100] = -3.0f;  // one value in a group: its scale is free
    check(spike);
    spike[100] = 1.5f;
    check(spike);
  }
}

TEST_CASE("encode: values beyond the scales' range are marked, small ones become zeros") {
  for (const FormatTraits* format : block_formats()) {
    CAPTURE(format->name);
    const std::size_t n = 3 * format->block_values;
    std::vector<float> row(n, 1.0f);
    row[n / 3] = std::nanf("");
    const auto bytes = encode(format->encode, format->format, row.data(), n);
    CHECK(format->first_bad_scale(bytes.data(), 3) == 1);
    const auto values = decode(format->format, bytes, n);
    CHECK(std::fabs(values[0] - 1.0f) < 0.1f);
    CHECK(std::fabs(values[n - 1] - 1.0f) < 0.1f);
    for (float& one : row) one = 1e-30f;
    if (format->format == Format::mxfp4 || format->format == Format::q8_k) continue;  // hold it
    const auto zeros =
        decode(format->format, encode(format->encode, format->format, row.data(), n), n);
    CHECK(std::all_of(zeros.begin(), zeros.end(), [](float v) { return v == 0.0f; }));
  }
  // MXFP4's scales reach over the whole range of f32.
  for (const float size : {1e-36f, 1e-20f, 1e20f, 1e38f}) {
    Random random(6);
    const std::vector<float> row = random.values(64, size);
    const FormatTraits& mxfp4 = quant::traits(Format::mxfp4);
    const auto back =
        decode(Format::mxfp4, encode(mxfp4.encode, Format::mxfp4, row.data(), 64), 64);
    for (std::size_t i = 0; i < 64; ++i) {
      CAPTURE(size, i, row[i], back[i]);
      CHECK(std::fabs(row[i] / size - back[i] / size) < 0.35f);
    }
  }
  // NVFP4 has a scale of the tensor elsewhere: what is beyond its range becomes the largest there
  // is.
  const std::vector<float> huge(64, 1e30f);
  const FormatTraits& nvfp4 = quant::traits(Format::nvfp4);
  const auto most = decode(Format::nvfp4, encode(nvfp4.encode, Format::nvfp4, huge.data(), 64), 64);
  CHECK(std::count(most.begin(), most.end(), 6.0f * 448.0f) == 64);
}

// The data set's rows, or those of the file that LOCKSTEP_GOLDEN names.
TEST_CASE("encode: no golden row loses more than with the reference's bytes") {
  std::filesystem::path path;
  if (const char* other = std::getenv("LOCKSTEP_GOLDEN")) {
    path = other;
  } else {
    LOCKSTEP_SHARED_OR_SKIP(shared_path, "golden/quant_golden.gguf");
    path = shared_path;
  }
  const MiniGguf golden(path);
  const std::vector<float> rows = golden["rows"].floats();
  const std::size_t k = golden["rows"].shape.at(0);
  int seen = 0;
  for (const FormatTraits* format : block_formats()) {
    const std::string name = lower(format->name);
    if (!golden.has(name + ".f32")) continue;
    CAPTURE(name);
    const std::vector<float> reference = golden[name + ".f32"].floats();
    REQUIRE(reference.size() == rows.size());
    for (std::size_t r = 0; r < rows.size() / k; ++r) {
      CAPTURE(r);
      const auto values =
          decode(format->format, encode(format->encode, format->format, &rows[r * k], k), k);
      CHECK(squared_error(&rows[r * k], values.data(), k) <=
            squared_error(&rows[r * k], &reference[r * k], k));
    }
    ++seen;
  }
  CHECK(seen >= 14);
}

TEST_CASE("encode: no row of the storyteller loses more than in the public quantizer's file") {
  LOCKSTEP_SHARED_OR_SKIP(f16_path, "models/storyteller/storyteller-f16.gguf");
  const MiniGguf source(f16_path);
  int seen = 0;
  for (const FormatTraits* format : block_formats()) {
    const auto path = f16_path.parent_path() / ("storyteller-" + lower(format->name) + ".gguf");
    if (!std::filesystem::exists(path)) continue;
    CAPTURE(format->name);
    const MiniGguf reference(path);
    const Isa best = quant::choose_isa(quant::built_isas() & quant::detect_isas(), {});
    std::size_t rows = 0;
    std::size_t worse = 0;
    for (const auto& [name, tensor] : reference.tensors()) {
      if (tensor.type != static_cast<std::uint32_t>(format->format)) continue;
      const MiniGguf::Tensor& from = source[name];
      const std::size_t n = from.values();
      const std::size_t k = from.shape.at(0);
      std::vector<float> values(n);
      quant::find_format(from.type)->decode(from.data, values.data(), n);
      std::vector<float> theirs(n);
      format->decode(tensor.data, theirs.data(), n);
      for (std::size_t r = 0; r < n; r += k, ++rows) {
        // Every fourth row keeps the test short.
        if (rows % 4 != 0) continue;
        const auto bytes =
            encode(quant::find_encoder(format->format, best), format->format, &values[r], k);
        const auto ours = decode(format->format, bytes, k);
        if (squared_error(&values[r], ours.data(), k) > squared_error(&values[r], &theirs[r], k)) {
          ++worse;
        }
      }
    }
    CHECK(rows > 1000);
    CHECK(worse == 0);
    ++seen;
  }
  CHECK(seen >= 7);
}
