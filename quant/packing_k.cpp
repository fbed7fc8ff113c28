// Packing of the formats whose blocks have 256 columns. Layouts: packing.h.
#include "quant/formats/q4_k.h"
#include "quant/formats/q6_k.h"
#include "quant/pack_words.h"
#include "quant/packing.h"

namespace lockstep::quant {
namespace {

constexpr std::uint32_t kLowNibbles = 0x0f0f0f0fu;
constexpr std::uint32_t kHighNibbles = 0xf0f0f0f0u;
constexpr std::uint32_t kLowPairs = 0x03030303u;

}  // namespace

void pack_q4_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q4_k::kValues, q4_k::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q4_k::kScale, packed, r);
        packed = place_half(block + q4_k::kMin, packed, r);
        packed = scatter_words(block + q4_k::kGroupScales, 3, packed, r);
        // The file puts two groups into one run of bytes; here each group has bytes of its own.
        for (std::size_t pair = 0; pair < q4_k::kGroups / 2; ++pair) {
          const std::byte* run = block + q4_k::kQuants + pair * q4_k::kGroup;
          std::byte* even = packed + pair * 8 * kStep + r * kWord;
          for (std::size_t s = 0; s < 4; ++s) {
            const std::uint32_t first = word(run + s * kWord);
            const std::uint32_t second = word(run + (4 + s) * kWord);
            store_field(even + s * kStep, (first & kLowNibbles) | ((second & kLowNibbles) << 4));
            store_field(even + (4 + s) * kStep,
                        ((first & kHighNibbles) >> 4) | (second & kHighNibbles));
          }
        }
      });
}

void pack_q6_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q6_k::kValues, q6_k::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q6_k::kScale, packed, r);
        packed = scatter_words(block + q6_k::kGroupScales, 4, packed, r);
        packed += r * kWord;
        for (std::size_t g = 0; g < q6_k::kGroups; ++g, packed += 3 * kStep) {
          const std::size_t half = g / 8;
          const std::size_t quarter = g % 8 / 2;
          const std::size_t l = g % 2 * 16;
          const std::byte* low = block + q6_k::kLow + 64 * half + 32 * (quarter % 2) + l;
          const std::byte* high = block + q6_k::kHigh + 32 * half + l;
          const auto nibbles = [&](std::size_t s) noexcept {
            return (word(low + s * kWord) >> (4 * (quarter / 2))) & kLowNibbles;
          };
          const auto pairs = [&](std::size_t s) noexcept {
            return (word(high + s * kWord) >> (2 * quarter)) & kLowPairs;
          };
          store_field(packed, nibbles(0) | (nibbles(2) << 4));
          store_field(packed + kStep, nibbles(1) | (nibbles(3) << 4));
          store_field(packed + 2 * kStep,
                      pairs(0) | (pairs(1) << 2) | (pairs(2) << 4) | (pairs(3) << 6));
        }
      });
}

}  // namespace lockstep::quant
