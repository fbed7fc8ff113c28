// Packing of the formats whose blocks have 256 columns. Layouts: packing.h.
#include "quant/formats/iq4_xs.h"
#include "quant/formats/q2_k.h"
#include "quant/formats/q3_k.h"
#include "quant/formats/q4_k.h"
#include "quant/formats/q5_k.h"
#include "quant/formats/q6_k.h"
#include "quant/pack_words.h"
#include "quant/packing.h"

namespace lockstep::quant {
namespace {

constexpr std::uint32_t kLowNibbles = 0x0f0f0f0fu;
constexpr std::uint32_t kHighNibbles = 0xf0f0f0f0u;
constexpr std::uint32_t kLowPairs = 0x03030303u;
constexpr std::uint32_t kLowBits = 0x01010101u;

// Of 16 bytes, the bits 2 * at and 2 * at + 1 of each, in pairs[at]: those of byte 4i + c become
// the bits 2i and 2i + 1 of byte c. Four words of four pairs a byte are transposed by swapping
// neighbours and then neighbours' neighbours.
void bit_pairs(const std::byte* bytes, std::uint32_t (&pairs)[4]) noexcept {
  const auto swap = [](std::uint32_t& a, std::uint32_t& b, int shift, std::uint32_t mask) noexcept {
    const std::uint32_t differ = ((a >> shift) ^ b) & mask;
    b ^= differ;
    a ^= differ << shift;
  };
  for (std::size_t i = 0; i < 4; ++i) pairs[i] = word(bytes + i * kWord);
  swap(pairs[0], pairs[1], 2, 0x33333333u);
  swap(pairs[2], pairs[3], 2, 0x33333333u);
  swap(pairs[0], pairs[2], 4, kLowNibbles);
  swap(pairs[1], pairs[3], 4, kLowNibbles);
}

// The low nibbles of two words as low and high nibbles of one, and the high ones.
struct NibblePair {
  std::uint32_t low, high;
};
NibblePair join_nibbles(std::uint32_t first, std::uint32_t second) noexcept {
  return {(first & kLowNibbles) | ((second & kLowNibbles) << 4),
          ((first & kHighNibbles) >> 4) | (second & kHighNibbles)};
}

// Of 32 bytes, bit `at` of each: that of byte 4s + c becomes bit s of byte c.
std::uint32_t bit_plane(const std::byte* bytes, std::size_t at) noexcept {
  std::uint32_t packed = 0;
  for (std::size_t s = 0; s < 8; ++s) {
    packed |= ((word(bytes + s * kWord) >> at) & kLowBits) << s;
  }
  return packed;
}

// The nibbles of groups 2i and 2i + 1, which the file puts into one run of 32 bytes. Here each
// group has 4 steps of its own; `even` and `odd` are the row's lanes of the first.
void split_pair(const std::byte* run, std::byte* even, std::byte* odd) noexcept {
  for (std::size_t s = 0; s < 4; ++s) {
    const NibblePair pair = join_nibbles(word(run + s * kWord), word(run + (4 + s) * kWord));
    store_field(even + s * kStep, pair.low);
    store_field(odd + s * kStep, pair.high);
  }
}

}  // namespace

void pack_q2_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q2_k::kValues, q2_k::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q2_k::kScale, packed, r);
        packed = place_half(block + q2_k::kMin, packed, r);
        packed = scatter_words(block + q2_k::kGroupScales, 4, packed, r);
        packed += r * kWord;
        // Group g = 8 half + 2 at + part.
        for (std::size_t half = 0; half < 2; ++half) {
          for (std::size_t part = 0; part < 2; ++part) {
            std::uint32_t pairs[4];
            bit_pairs(block + q2_k::kQuants + 32 * half + 16 * part, pairs);
            for (std::size_t at = 0; at < 4; ++at) {
              store_field(packed + kStep * (8 * half + 2 * at + part), pairs[at]);
            }
          }
        }
      });
}

void pack_q3_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q3_k::kValues, q3_k::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q3_k::kScale, packed, r);
        packed = scatter_words(block + q3_k::kGroupScales, 3, packed, r);
        packed += r * kWord;
        for (std::size_t run = 0; run < q3_k::kValues / 32; ++run, packed += 3 * kStep) {
          const std::byte* low = block + q3_k::kLow + 32 * (run / 4);
          const auto quad = [&](std::size_t i) noexcept {
            const std::uint32_t pairs = (word(low + i * kWord) >> (2 * (run % 4))) & kLowPairs;
            const std::uint32_t third =
                (word(block + q3_k::kThirdBits + i * kWord) >> run) & kLowBits;
            return pairs | (third << 2);
          };
          const std::uint32_t six = quad(6);
          const std::uint32_t seven = quad(7);
          store_field(packed, quad(0) | (quad(1) << 3) | ((six & kLowPairs) << 6));
          store_field(packed + kStep, quad(2) | (quad(3) << 3) | ((seven & kLowPairs) << 6));
          store_field(packed + 2 * kStep, quad(4) | (quad(5) << 3) | ((six >> 2 & kLowBits) << 6) |
                                              ((seven >> 2 & kLowBits) << 7));
        }
      });
}

void pack_q4_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q4_k::kValues, q4_k::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q4_k::kScale, packed, r);
        packed = place_half(block + q4_k::kMin, packed, r);
        packed = scatter_words(block + q4_k::kGroupScales, 3, packed, r);
        packed += r * kWord;
        for (std::size_t pair = 0; pair < q4_k::kGroups / 2; ++pair, packed += 8 * kStep) {
          split_pair(block + q4_k::kQuants + pair * q4_k::kGroup, packed, packed + 4 * kStep);
        }
      });
}

void pack_q5_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept {
  pack_rows<q5_k::kValues, q5_k::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + q5_k::kScale, packed, r);
        packed = place_half(block + q5_k::kMin, packed, r);
        packed = scatter_words(block + q5_k::kGroupScales, 3, packed, r);
        packed += r * kWord;
        for (std::size_t pair = 0; pair < q5_k::kGroups / 2; ++pair, packed += 10 * kStep) {
          store_field(packed, bit_plane(block + q5_k::kFifthBits, 2 * pair));
          store_field(packed + 5 * kStep, bit_plane(block + q5_k::kFifthBits, 2 * pair + 1));
          split_pair(block + q5_k::kQuants + pair * q5_k::kGroup, packed + kStep,
                     packed + 6 * kStep);
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
        // Group g = 8 half + 2 quarter + part; quarters 0 and 2 share low bytes, as do 1 and 3.
        for (std::size_t half = 0; half < 2; ++half) {
          for (std::size_t part = 0; part < 2; ++part) {
            std::uint32_t upper[4];
            bit_pairs(block + q6_k::kHigh + 32 * half + 16 * part, upper);
            for (std::size_t quarter = 0; quarter < 2; ++quarter) {
              const std::byte* low = block + q6_k::kLow + 64 * half + 32 * quarter + 16 * part;
              std::byte* first = packed + 3 * kStep * (8 * half + 2 * quarter + part);
              std::byte* second = first + 3 * kStep * 4;
              for (std::size_t s = 0; s < 2; ++s) {
                const NibblePair pair =
                    join_nibbles(word(low + s * kWord), word(low + (s + 2) * kWord));
                store_field(first + s * kStep, pair.low);
                store_field(second + s * kStep, pair.high);
              }
              store_field(first + 2 * kStep, upper[quarter]);
              store_field(second + 2 * kStep, upper[quarter + 2]);
            }
          }
        }
      });
}

void pack_iq4_xs(const std::byte* file_rows, std::size_t rows, std::size_t k,
                 std::byte* panel) noexcept {
  pack_rows<iq4_xs::kValues, iq4_xs::kBytes>(
      file_rows, rows, k, panel,
      [](const std::byte* block, std::byte* packed, std::size_t r) noexcept {
        packed = place_half(block + iq4_xs::kScale, packed, r);
        packed = place_half(block + iq4_xs::kScalesHigh, packed, r);
        packed = scatter_words(block + iq4_xs::kScalesLow, 1, packed, r);
        scatter_words(block + iq4_xs::kQuants, 4 * iq4_xs::kGroups, packed, r);
      });
}

}  // namespace lockstep::quant
