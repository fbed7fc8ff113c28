// What the bytes of a tensor mean: one FormatTraits row per storage format.
//
// The ids and byte layouts are the public GGUF ones (GGUF specification, ggml type table), so a
// file written by the public tools loads here and the other way round. Everything else in the
// project asks this table; nobody outside quant/ switches over a Format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::quant {

// Enumerator values are the GGUF tensor type ids. Formats of this project have ids from 1000 on,
// far above the public ones.
enum class Format : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q4x = 1000,
};

// One token's activations after quantization, as every integer kernel reads them. `q` holds k
// values, `sums` the sum of each run of 16 of them, `scale` one f32 per activation block (32 values
// for a q8_0 partner, 256 for q8_k). Scales stay f32: an f16 scale overflows for large activations.
struct ActivationRow {
  const std::int8_t* q = nullptr;
  const std::int16_t* sums = nullptr;
  const float* scale = nullptr;
};

// Values per entry of ActivationRow::sums.
inline constexpr std::size_t kActivationSumRun = 16;

// A format whose blocks mean something only together with data of their tensor ("side data", such
// as learned codebooks). It takes the place of decode and vec_dot in FormatTraits, which are null.
struct SideTraits {
  std::size_t bytes;  // of the side data of one tensor
  // What is wrong with side data from a file, to follow its name in a message; null if nothing is.
  // All other functions trust side data that passed.
  const char* (*problem)(const std::byte* side) noexcept;
  // As in FormatTraits.
  void (*decode)(const std::byte* side, const std::byte* blocks, float* values,
                 std::size_t n) noexcept;
  float (*vec_dot)(const std::byte* side, const std::byte* row, const ActivationRow& activations,
                   std::size_t k) noexcept;
};

struct FormatTraits {
  Format format;
  std::string_view name;       // upper case, as the public tools print it: "Q4_0"
  std::uint32_t block_values;  // values per block (1 for f32, f16, bf16)
  std::uint32_t block_bytes;   // bytes per block
  // What a dot product with this format multiplies by: f32 for the dense formats, q8_0 or q8_k
  // else.
  Format activation;
  // Expands n values (a multiple of block_values) to f32. Null where only the layout is known: such
  // a tensor can be listed, but not computed with.
  void (*decode)(const std::byte* blocks, float* values, std::size_t n) noexcept;
  // Packs n f32 values of one row; null where encoding is not offered. `importance`: n weights of
  // the squared error of the values (an importance matrix has one per column), all >= 0, or null
  // where all count alike. This is the plain form; encode.h finds the fast one.
  void (*encode)(const float* values, const float* importance, std::byte* blocks,
                 std::size_t n) noexcept;
  // One weight row times one activation row over k values: the definition of right for every kernel
  // (numerics: one accumulator, blocks in order, fma). Null for dense formats and for q8_k.
  float (*vec_dot)(const std::byte* row, const ActivationRow& activations, std::size_t k) noexcept;
  // Index of the first block whose scale is NaN or infinite, or n_blocks if all are finite. Null
  // where the format has no scales.
  std::size_t (*first_bad_scale)(const std::byte* blocks, std::size_t n_blocks) noexcept;
  // Null where blocks stand for themselves.
  const SideTraits* side = nullptr;

  bool can_decode() const noexcept { return decode != nullptr || side != nullptr; }
  bool can_dot() const noexcept { return vec_dot != nullptr || side != nullptr; }
  std::size_t side_bytes() const noexcept { return side == nullptr ? 0 : side->bytes; }
};

// decode and vec_dot of any format that has them; `side_data` is ignored where there is no side.
inline void decode_values(const FormatTraits& format, const std::byte* side_data,
                          const std::byte* blocks, float* values, std::size_t n) noexcept {
  if (format.side == nullptr) return format.decode(blocks, values, n);
  format.side->decode(side_data, blocks, values, n);
}
inline float dot_row(const FormatTraits& format, const std::byte* side_data, const std::byte* row,
                     const ActivationRow& activations, std::size_t k) noexcept {
  if (format.side == nullptr) return format.vec_dot(row, activations, k);
  return format.side->vec_dot(side_data, row, activations, k);
}

// Where a file keeps the side data of a tensor: an I8 tensor of one row, so that it stays with its
// tensor through tools that know nothing of it, and costs a reader no memory in the header.
inline constexpr std::string_view kSideTensorSuffix = ".codebook";
inline std::string side_tensor_name(std::string_view tensor) {
  return std::string(tensor).append(kSideTensorSuffix);
}

// All formats, in the order of their ids.
std::span<const FormatTraits> all_formats() noexcept;

// Null if the id is unknown.
const FormatTraits* find_format(std::uint32_t gguf_id) noexcept;
// Null if no format has this name (case-insensitive).
const FormatTraits* find_format(std::string_view name) noexcept;
// The format must be one of the enumerators.
const FormatTraits& traits(Format format) noexcept;

// Bytes of `values` consecutive values; `values` must be a multiple of the block.
std::size_t bytes_of(Format format, std::size_t values) noexcept;

}  // namespace lockstep::quant
