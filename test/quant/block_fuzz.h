// Any bytes as blocks of any format, times any activations: nothing may trap, and all kernels must
// agree with the format's vec_dot on the bits. The deterministic test and the libFuzzer target both
// hand their inputs to defect_of().
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quant/encode.h"
#include "quant/kernels.h"
#include "support/side_data.h"
#include "test/quant/fixtures.h"

namespace lockstep::test {

// An input that never ends: after its last byte comes its first again.
class FuzzBytes {
 public:
  explicit FuzzBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint8_t next() {
    if (bytes_.empty()) return 0;
    if (at_ == bytes_.size()) at_ = 0;
    return bytes_[at_++];
  }
  std::size_t below(std::size_t n) { return next() % n; }
  float any_float() {
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 8 | next();
    return std::bit_cast<float>(bits);
  }
  // Finite and below 2 in magnitude: an exponent bit is cleared.
  float moderate_float() {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(any_float()) & 0xbfffffffu);
  }
  std::vector<std::byte> block_bytes(std::size_t n) {
    std::vector<std::byte> bytes(n);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(next());
    return bytes;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

// What the first bytes of an input choose.
struct FuzzCase {
  const quant::FormatTraits* format = nullptr;
  std::size_t blocks = 0, rows = 0, tokens = 0, activations = 0;
  bool special_scales = false;

  explicit FuzzCase(FuzzBytes& bytes) {
    std::vector<const quant::FormatTraits*> decodable;
    for (const quant::FormatTraits& known : quant::all_formats()) {
      if (known.can_decode()) decodable.push_back(&known);
    }
    format = decodable[bytes.below(decodable.size())];
    blocks = 1 + bytes.below(3);
    rows = 1 + bytes.below(10);
    tokens = 1 + bytes.below(9);
    activations = bytes.below(4);
    special_scales = bytes.below(2) == 0;
  }
  std::size_t columns() const { return blocks * format->block_values; }
  std::size_t row_bytes() const { return blocks * format->block_bytes; }
};

// Number of bytes of a FuzzCase.
inline constexpr std::size_t kFuzzHeader = 6;

// scales_of(), found once.
inline const std::vector<ScaleBytes>& known_scales(const quant::FormatTraits& format) {
  static std::map<quant::Format, std::vector<ScaleBytes>> known;
  auto& scales = known[format.format];
  if (scales.empty()) scales = scales_of(format);
  return scales;
}

// Blocks as the input has them. Since few random scales are special, some cases give them a byte
// that makes them infinite or NaN, negative and large, or tiny.
inline std::vector<std::byte> fuzz_rows(const FuzzCase& chosen, FuzzBytes& bytes) {
  auto rows = bytes.block_bytes(chosen.rows * chosen.row_bytes());
  if (!chosen.special_scales || chosen.format->first_bad_scale == nullptr) return rows;
  constexpr std::byte kSpecial[] = {kBadScale, std::byte{0x7c}, std::byte{0xfb}, std::byte{0}};
  const std::vector<ScaleBytes>& scales = known_scales(*chosen.format);
  if (scales.empty()) return rows;  // no single byte makes one special
  for (std::size_t b = 0; b < chosen.rows * chosen.blocks; ++b) {
    const std::size_t choice = bytes.next();
    if (choice % 4 != 0) continue;
    set_bytes(&rows[b * chosen.format->block_bytes], scales[choice / 16 % scales.size()],
              kSpecial[choice / 4 % 4]);
  }
  return rows;
}

// Values quantized, of any size or moderate; or any quants, or the extreme ones, with any scales.
// A NaN hides every other difference, so most of these are no NaN.
inline Activations fuzz_activations(const FuzzCase& chosen, FuzzBytes& bytes) {
  Activations made(chosen.format->activation, chosen.columns(), chosen.tokens);
  std::vector<float> values(made.k);
  std::mt19937 unused;
  for (std::size_t t = 0; t < chosen.tokens; ++t) {
    if (chosen.activations < 2) {
      const bool any = chosen.activations == 0;
      for (float& value : values) value = any ? bytes.any_float() : bytes.moderate_float();
      made.quantize(t, values.data(), quant::Isa::scalar);
      continue;
    }
    made.fill(t, unused, [&](std::size_t) {
      const int q = static_cast<int>(bytes.next());
      return chosen.activations == 2 ? std::max(q - 128, -127) : q % 2 == 0 ? 127 : -127;
    });
    for (std::size_t b = 0; b < made.k / made.block; ++b) {
      made.scale(t)[b] = bytes.below(8) == 0 ? bytes.any_float() : bytes.moderate_float();
    }
  }
  return made;
}

inline bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_float);
}

// Decoding all blocks at once and one by one; block after block the verdict on the scales.
inline std::string decode_defect(const FuzzCase& chosen, const std::vector<std::byte>& rows) {
  const quant::FormatTraits& format = *chosen.format;
  const std::size_t blocks = chosen.rows * chosen.blocks;
  std::vector<float> whole(blocks * format.block_values);
  quant::decode_values(format, side_data(format), rows.data(), whole.data(), whole.size());
  std::vector<float> single(whole.size());
  std::size_t first_bad = blocks;
  for (std::size_t b = blocks; b-- > 0;) {
    const std::vector<std::byte> block(
        rows.begin() + static_cast<std::ptrdiff_t>(b * format.block_bytes),
        rows.begin() + static_cast<std::ptrdiff_t>((b + 1) * format.block_bytes));
    quant::decode_values(format, side_data(format), block.data(), &single[b * format.block_values],
                         format.block_values);
    if (format.first_bad_scale == nullptr) continue;
    const std::size_t verdict = format.first_bad_scale(block.data(), 1);
    if (verdict > 1) return "first_bad_scale is out of range";
    if (verdict == 0) first_bad = b;
  }
  if (!same_floats(whole, single)) return "blocks decode differently one by one";
  if (format.first_bad_scale == nullptr) return {};
  return format.first_bad_scale(rows.data(), blocks) == first_bad
             ? ""
             : "first_bad_scale misses a block";
}

// Any values into blocks: every instruction set writes the same, and it can be decoded.
inline std::string encode_defect(const FuzzCase& chosen, FuzzBytes& bytes) {
  const quant::FormatTraits& format = *chosen.format;
  if (format.encode == nullptr && format.side == nullptr) return {};
  std::vector<float> values(chosen.columns());
  for (float& value : values) value = bytes.any_float();
  const auto encode = [&](quant::Isa isa, std::vector<std::byte>& into) {
    if (format.side != nullptr) {
      quant::find_side_encoder(format.format, isa)(side_data(format), values.data(), nullptr,
                                                   into.data(), values.size());
    } else {
      quant::find_encoder(format.format, isa)(values.data(), nullptr, into.data(), values.size());
    }
  };
  std::vector<std::byte> blocks(chosen.row_bytes());
  encode(quant::Isa::scalar, blocks);
  for (const quant::Isa isa : quant::kAllIsas) {
    if (!(quant::built_isas() & quant::detect_isas()).has(isa)) continue;
    std::vector<std::byte> others(blocks.size());
    encode(isa, others);
    if (others != blocks) return "encoders differ: " + std::string(quant::name_of(isa));
  }
  quant::decode_values(format, side_data(format), blocks.data(), values.data(), values.size());
  return {};
}

inline std::string kernel_defect(const quant::MatmulKernel& kernel, const FuzzCase& chosen,
                                 const std::vector<std::byte>& rows, Activations& activations,
                                 const std::vector<float>& expected) {
  constexpr float kUntouched = -12345.5f;
  const std::size_t stride = chosen.rows + 1;
  std::vector<float> y(chosen.tokens * stride, kUntouched);
  const std::vector<std::byte> panels = pack_rows(kernel, rows, chosen.rows, chosen.columns());
  kernel.run({.panels = panels.data(),
              .rows = chosen.rows,
              .k = chosen.columns(),
              .activations = activations.base(),
              .activation_stride = activations.layout.bytes,
              .tokens = chosen.tokens,
              .y = y.data(),
              .y_stride = stride,
              .side = side_data(kernel.format)});
  for (std::size_t t = 0; t < chosen.tokens; ++t) {
    for (std::size_t r = 0; r < chosen.rows; ++r) {
      if (same_float(y[t * stride + r], expected[t * chosen.rows + r])) continue;
      return std::string(kernel.name) + " differs from vec_dot at row " + std::to_string(r) +
             ", token " + std::to_string(t);
    }
    if (y[t * stride + chosen.rows] != kUntouched) {
      return std::string(kernel.name) + " wrote beyond its rows";
    }
  }
  return {};
}

// What is wrong with what the library makes of this input; empty if nothing is. `seen`, if given,
// gets the names of the kernels that were compared.
inline std::string defect_of(std::span<const std::uint8_t> input,
                             std::span<const quant::MatmulKernel> kernels,
                             std::vector<std::string_view>* seen = nullptr) {
  FuzzBytes bytes(input);
  const FuzzCase chosen(bytes);
  const quant::FormatTraits& format = *chosen.format;
  const auto named = [&](const std::string& what) {
    return what.empty() ? what : std::string(format.name) + ": " + what;
  };
  const std::vector<std::byte> rows = fuzz_rows(chosen, bytes);
  if (const std::string what = decode_defect(chosen, rows); !what.empty()) return named(what);
  if (const std::string what = encode_defect(chosen, bytes); !what.empty()) return named(what);
  if (!format.can_dot()) return {};
  Activations activations = fuzz_activations(chosen, bytes);
  std::vector<float> expected;
  for (std::size_t t = 0; t < chosen.tokens; ++t) {
    for (std::size_t r = 0; r < chosen.rows; ++r) {
      expected.push_back(quant::dot_row(format, side_data(format),
                                        rows.data() + r * chosen.row_bytes(), activations.row(t),
                                        chosen.columns()));
    }
  }
  for (const quant::MatmulKernel& kernel : kernels) {
    if (kernel.format != format.format) continue;
    if (!(quant::built_isas() & quant::detect_isas()).has(kernel.isa)) continue;
    const std::string what = kernel_defect(kernel, chosen, rows, activations, expected);
    if (!what.empty()) return named(what);
    if (seen != nullptr) seen->push_back(kernel.name);
  }
  return {};
}

}  // namespace lockstep::test
