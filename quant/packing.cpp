// Regrouping file blocks into 8-row panels. Plain C++ without instruction-set flags: the packed
// bytes are the same for every instruction set that reads panels. Four columns of one row always
// travel together, so the work is done on 4-byte words.
#include "quant/packing.h"

#include <cstdint>
#include <cstring>

#include "quant/formats/block.h"
#include "quant/formats/q4_0.h"
#include "quant/formats/q4_k.h"
#include "quant/formats/q6_k.h"
#include "quant/formats/q8_0.h"

namespace lockstep::quant {
namespace {

constexpr std::uint32_t kLowNibbles = 0x0f0f0f0fu;
constexpr std::uint32_t kHighNibbles = 0xf0f0f0f0u;
constexpr std::uint32_t kLowPairs = 0x03030303u;
constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kStep = kPanelRows * kWord;                    // bytes of one step
constexpr std::size_t kHalves = kPanelRows * sizeof(std::uint16_t);  // bytes of one f16 per row

std::uint32_t word(const std::byte* from) noexcept { return load_field<std::uint32_t>(from); }

// Calls copy_block(file block, first byte of the packed block, row) for all blocks of all rows.
template <std::size_t kValues, std::size_t kBytes, class F>
void pack_rows(const std::byte* file_rows, std::size_t rows, std::size_t k, std::byte* panel,
               F copy_block) noexcept {
  const std::size_t blocks = k / kValues;
  if (rows < kPanelRows) std::memset(panel, 0, blocks * kBytes * kPanelRows);
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t r = 0; r < rows; ++r) {
      copy_block(file_rows + (r * blocks + b) * kBytes, panel + b * kBytes * kPanelRows, r);
    }
  }
}

// Copies `words` consecutive words of a row into the row's lane of as many steps.
void scatter_words(const std::byte* from, std::size_t words, std::byte* step,
                   std::size_t row) noexcept {
  for (std::size_t i = 0; i < words; ++i) {
    std::memcpy(step + i * kStep + row * kWord, from + i * kWord, kWord);
  }
}

}  // namespace

std::size_t panel_bytes_q4_0(std::size_t k) noexcept {
  return k / q4_0::kValues * q4_0::kBytes * kPanelRows;
}
std::size_t panel_bytes_q8_0(std::size_t k) noexcept {
  return k / q8_0::kValues * q8_0::kBytes * kPanelRows;
}
std::size_t panel_bytes_q4_k(std::size_t k) noexcept {
  return k / q4_k::kValues * q4_k::kBytes * kPanelRows;
}
std::size_t panel_bytes_q6_k(std::size_t k) noexcept {
  return k / q6_k::kValues * q6_k::kBytes * kPanelRows;
}

void pack_q4_0(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q4_0::kValues, q4_0::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        std::memcpy(packed + 2 * r, block + q4_0::kScale, 2);
        scatter_words(block + q4_0::kQuants, 4, packed + kHalves, r);
      });
}

void pack_q8_0(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q8_0::kValues, q8_0::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        std::memcpy(packed + 2 * r, block + q8_0::kScale, 2);
        scatter_words(block + q8_0::kQuants, 8, packed + kHalves, r);
      });
}

void pack_q4_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q4_k::kValues, q4_k::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        std::memcpy(packed + 2 * r, block + q4_k::kScale, 2);
        std::memcpy(packed + kHalves + 2 * r, block + q4_k::kMin, 2);
        packed += 2 * kHalves;
        scatter_words(block + q4_k::kGroupScales, 3, packed, r);
        packed += 3 * kStep;
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
        std::memcpy(packed + 2 * r, block + q6_k::kScale, 2);
        packed += kHalves;
        scatter_words(block + q6_k::kGroupScales, 4, packed, r);
        packed += 4 * kStep + r * kWord;
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
