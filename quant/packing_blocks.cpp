// Packing of the formats whose blocks have 32 columns (64 for NVFP4). Layouts: packing.h.
#include "quant/formats/iq4_nl.h"
#include "quant/formats/mxfp4.h"
#include "quant/formats/nvfp4.h"
#include "quant/formats/q4_0.h"
#include "quant/formats/q4_1.h"
#include "quant/formats/q5_0.h"
#include "quant/formats/q5_1.h"
#include "quant/formats/q8_0.h"
#include "quant/pack_words.h"
#include "quant/packing.h"

namespace lockstep::quant {
namespace {

// Bit 4s + c of the word becomes bit s of byte c.
std::uint32_t by_steps(std::uint32_t bits) noexcept {
  std::uint32_t packed = 0;
  for (unsigned c = 0; c < 4; ++c) {
    std::uint32_t every_fourth = (bits >> c) & 0x11111111u;  // closes up in three moves
    every_fourth = (every_fourth | every_fourth >> 3) & 0x03030303u;
    every_fourth = (every_fourth | every_fourth >> 6) & 0x000f000fu;
    every_fourth = (every_fourth | every_fourth >> 12) & 0xffu;
    packed |= every_fourth << (8 * c);
  }
  return packed;
}

// The quants of one row, fifth bits and nibbles, into its lanes of 5 steps.
void scatter_fives(const std::byte* quants, std::byte* steps, std::size_t row) noexcept {
  store_field(steps + row * kWord, by_steps(word(quants)));
  scatter_words(quants + five_bits::kNibbles, 4, steps + kStep, row);
}

}  // namespace

void pack_q4_0(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q4_0::kValues, q4_0::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q4_0::kScale, packed, r);
        scatter_words(block + q4_0::kQuants, 4, packed, r);
      });
}

void pack_q8_0(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q8_0::kValues, q8_0::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q8_0::kScale, packed, r);
        scatter_words(block + q8_0::kQuants, 8, packed, r);
      });
}

void pack_q4_1(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q4_1::kValues, q4_1::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q4_1::kScale, packed, r);
        packed = place_half(block + q4_1::kMin, packed, r);
        scatter_words(block + q4_1::kQuants, 4, packed, r);
      });
}

void pack_q5_0(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q5_0::kValues, q5_0::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q5_0::kScale, packed, r);
        scatter_fives(block + q5_0::kQuants, packed, r);
      });
}

void pack_q5_1(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q5_1::kValues, q5_1::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q5_1::kScale, packed, r);
        packed = place_half(block + q5_1::kMin, packed, r);
        scatter_fives(block + q5_1::kQuants, packed, r);
      });
}

// Indices lie as the quants of Q4_0 do.
static_assert(iq4_nl::kValues == q4_0::kValues && iq4_nl::kBytes == q4_0::kBytes &&
              iq4_nl::kScale == q4_0::kScale && iq4_nl::kQuants == q4_0::kQuants);

void pack_iq4_nl(const std::byte* file_rows, std::size_t rows, std::size_t k,
                 std::byte* panel) noexcept {
  pack_q4_0(file_rows, rows, k, panel);
}

void pack_mxfp4(const std::byte* file_rows, std::size_t rows, std::size_t k,
                std::byte* panel) noexcept {
  pack_rows<mxfp4::kValues, mxfp4::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed[r] = block[mxfp4::kScale];
        scatter_words(block + mxfp4::kQuants, 4, packed + kPanelRows, r);
      });
}

void pack_nvfp4(const std::byte* file_rows, std::size_t rows, std::size_t k,
                std::byte* panel) noexcept {
  pack_rows<nvfp4::kValues, nvfp4::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        for (std::size_t g = 0; g < nvfp4::kGroups; ++g, packed += kPanelRows) {
          packed[r] = block[nvfp4::kGroupScales + g];
        }
        scatter_words(block + nvfp4::kQuants, 2 * nvfp4::kGroups, packed, r);
      });
}

}  // namespace lockstep::quant
