// Regrouping Q4X blocks into 8-row panels: the one format whose panels hold rows in pairs.
#include <cstring>

#include "quant/formats/q4x.h"
#include "quant/packing.h"

namespace lockstep::quant {
namespace {

constexpr std::size_t kPanelBlock = q4x::kBytes * kPanelRows;
constexpr std::size_t kBookBits = q4x::kGroups * kPanelRows;
constexpr std::size_t kPanelQuants = kBookBits + q4x::kGroups;
constexpr std::size_t kGroupBytes = q4x::kGroup / 2;

void set_bit(std::byte& byte, std::size_t bit) noexcept {
  byte |= static_cast<std::byte>(1u << bit);
}

// Bit `bit` of the number that holds the codebooks of one group.
void set_book_bit(std::byte* panel, std::size_t group, std::size_t bit) noexcept {
  if (bit < kPanelRows) {
    set_bit(panel[group * kPanelRows + bit], 7);
  } else {
    set_bit(panel[kBookBits + group], bit - kPanelRows);
  }
}

// Into a block of the panel that holds zeros.
void pack_block(const std::byte* block, std::size_t row, std::byte* panel) noexcept {
  const std::size_t pair = row % 4;
  const std::size_t half = row / 4;
  for (std::size_t g = 0; g < q4x::kGroups; ++g) {
    panel[g * kPanelRows + row] |= block[g] & std::byte{0x7f};
    const std::size_t book = 4 * pair + 2 * half;
    if (byte_at(block, g) >> 7 != 0) set_book_bit(panel, g, book);
    if ((byte_at(block, q4x::kBooksHigh) >> g & 1u) != 0) set_book_bit(panel, g, book + 1);
    std::memcpy(panel + kPanelQuants + (g * 8 + 2 * pair + half) * kGroupBytes,
                block + q4x::kQuants + g * kGroupBytes, kGroupBytes);
  }
}

}  // namespace

void pack_q4x(const std::byte* file_rows, std::size_t rows, std::size_t k,
              std::byte* panel) noexcept {
  const std::size_t blocks = k / q4x::kValues;
  std::memset(panel, 0, blocks * kPanelBlock);
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t r = 0; r < rows; ++r) {
      pack_block(file_rows + (r * blocks + b) * q4x::kBytes, r, panel + b * kPanelBlock);
    }
  }
}

}  // namespace lockstep::quant
