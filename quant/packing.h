// Packed weights: panels of 8 rows, interleaved so that one 32-byte load holds 4 consecutive
// columns of all 8 rows and every row keeps to its own 32-bit lane. A kernel that reads panels
// needs no horizontal sums, and computes one token and many in the same order. Packing moves and
// regroups bits, it changes no value and adds no byte: only the rows that fill up the last panel
// are new, and they are zeros.
//
// "Row lanes" below are 8 consecutive fields, one per row. A "step" is 32 bytes of row lanes, each
// lane the bytes of 4 consecutive columns c, c + 1, c + 2, c + 3.
//
//   Q4_0, per block of 32 columns, 144 bytes
//     [d: 8 x f16][4 steps of nibbles: low = columns 4s + c, high = columns 16 + 4s + c]
//   Q8_0, per block of 32 columns, 272 bytes
//     [d: 8 x f16][8 steps of int8: columns 4s + c]
//   Q4_K, per block of 256 columns, 1152 bytes
//     [d: 8 x f16][dmin: 8 x f16][scale bytes 0-3, 4-7, 8-11 of the file's block: 3 x 8 x 4 bytes]
//     [8 groups of 32 columns, each 4 steps of nibbles as in Q4_0]
//   Q6_K, per block of 256 columns, 1680 bytes
//     [d: 8 x f16][scales of groups 4i .. 4i + 3: 4 x 8 x 4 int8]
//     [16 groups of 16 columns, each
//        a step of low halves: low nibble = columns c, high nibble = columns 8 + c
//        a step of low halves: low nibble = columns 4 + c, high nibble = columns 12 + c
//        a step of upper 2 bits: bits 2i, 2i + 1 = columns 4i + c]
//   Q4X, per block of 256 columns, 1096 bytes: pairs of rows instead of row lanes, because a lookup
//   by vpshufb takes one codebook per half of a register
//     [8 groups, each a scale byte of every row: 8 x 8][book bits of 8 groups, upper half: 8 bytes]
//     [8 groups, each 4 pairs of rows: 16 bytes of row p, 16 bytes of row p + 4]
//     The codebooks of rows p and p + 4 are bits 4p, 4p + 1 and 4p + 2, 4p + 3 of a 16-bit number
//     per group; its bits 0-7 are the top bits of the 8 scale bytes, bits 8-15 the book bits.
#pragma once

#include <cstddef>

namespace lockstep::quant {

inline constexpr std::size_t kPanelRows = 8;

std::size_t panel_bytes_q4_0(std::size_t k) noexcept;
std::size_t panel_bytes_q8_0(std::size_t k) noexcept;
std::size_t panel_bytes_q4_k(std::size_t k) noexcept;
std::size_t panel_bytes_q6_k(std::size_t k) noexcept;
std::size_t panel_bytes_q4x(std::size_t k) noexcept;

// As MatmulKernel::pack.
void pack_q4_0(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept;
void pack_q8_0(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept;
void pack_q4_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept;
void pack_q6_k(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept;
void pack_q4x(const std::byte* file_rows, std::size_t rows, std::size_t k,
              std::byte* panel) noexcept;

}  // namespace lockstep::quant
