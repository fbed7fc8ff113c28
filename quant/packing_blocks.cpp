// Packing of the formats whose blocks have 32 columns (64 for NVFP4). Layouts: packing.h.
#include "quant/formats/iq4_nl.h"
#include "quant/formats/q4_0.h"
#include "quant/formats/q8_0.h"
#include "quant/pack_words.h"
#include "quant/packing.h"

namespace lockstep::quant {

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

// Indices lie as the quants of Q4_0 do.
static_assert(iq4_nl::kValues == q4_0::kValues && iq4_nl::kBytes == q4_0::kBytes &&
              iq4_nl::kScale == q4_0::kScale && iq4_nl::kQuants == q4_0::kQuants);

void pack_iq4_nl(const std::byte* file_rows, std::size_t rows, std::size_t k,
                 std::byte* panel) noexcept {
  pack_q4_0(file_rows, rows, k, panel);
}

}  // namespace lockstep::quant
