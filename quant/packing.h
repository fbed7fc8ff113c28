// Packed weights: panels of 8 rows, interleaved so that one 32-byte load holds 4 consecutive
// columns of all 8 rows and every row keeps to its own 32-bit lane. A kernel that reads panels
// needs no horizontal sums, and computes one token and many in the same order. Packing moves and
// regroups bits, it changes no value and adds no byte: only the rows that fill up the last panel
// are new, and they are zeros.
//
// "Row lanes" below are 8 consecutive fields, one per row. A "step" is 32 bytes of row lanes, each
// lane the bytes of 4 consecutive columns c, c + 1, c + 2, c + 3. "Nibbles" are 4 steps that hold
// 32 columns: step s has columns 4s + c in the low nibbles, 16 + 4s + c in the high ones.
//
// Blocks of 32 columns (64 for NVFP4):
//   Q4_0, 144 bytes     [d: 8 x f16][nibbles]
//   Q4_1, 160 bytes     [d: 8 x f16][m: 8 x f16][nibbles]
//   Q5_0, 176 bytes     [d: 8 x f16][fifth bits][nibbles]
//   Q5_1, 192 bytes     [d: 8 x f16][m: 8 x f16][fifth bits][nibbles]
//                       fifth bits: one step; bit s of a byte = column 4s + c
//   Q8_0, 272 bytes     [d: 8 x f16][8 steps of int8: columns 4s + c]
//   IQ4_NL, 144 bytes   as Q4_0
//   MXFP4, 136 bytes    [e: 8 bytes][nibbles]
//   NVFP4, 288 bytes    [scales of group 0: 8 bytes] ... [of group 3]
//                       [4 groups of 16 columns, each 2 steps: low nibbles = columns 4s + c, high
//                       nibbles = columns 8 + 4s + c]
//
// Blocks of 256 columns:
//   Q2_K, 672 bytes     [d: 8 x f16][dmin: 8 x f16][bytes of groups 4i .. 4i + 3: 4 x 8 x 4]
//                       [16 groups of 16 columns, each a step: bits 2i, 2i + 1 = columns 4i + c]
//   Q3_K, 880 bytes     [d: 8 x f16][scale bytes 0-3, 4-7, 8-11 of the file's block: 3 x 8 x 4]
//                       [8 runs of 32 columns, each 3 steps of 8 quads, quad i = columns 4i + c:
//                          bits 0-2 and 3-5 of step s: quads 2s and 2s + 1
//                          bits 6-7 of steps 0 and 1: low 2 bits of quads 6 and 7
//                          bits 6 and 7 of step 2: third bits of quads 6 and 7]
//   Q4_K, 1152 bytes    [d: 8 x f16][dmin: 8 x f16][scale bytes 0-3, 4-7, 8-11: 3 x 8 x 4]
//                       [8 groups of 32 columns: nibbles]
//   Q5_K, 1408 bytes    [d: 8 x f16][dmin: 8 x f16][scale bytes 0-3, 4-7, 8-11: 3 x 8 x 4]
//                       [8 groups of 32 columns, each fifth bits and nibbles as in Q5_0]
//   Q6_K, 1680 bytes    [d: 8 x f16][scales of groups 4i .. 4i + 3: 4 x 8 x 4 int8]
//                       [16 groups of 16 columns, each
//                          a step of low halves: low nibble = columns c, high nibble = 8 + c
//                          a step of low halves: low nibble = columns 4 + c, high = 12 + c
//                          a step of upper 2 bits: bits 2i, 2i + 1 = columns 4i + c]
//   IQ4_XS, 1088 bytes  [d: 8 x f16][high bits of the scales: 8 x u16][low bits: 8 x 4 bytes]
//                       [8 groups of 32 columns: nibbles]
//   Q4X, 1096 bytes     pairs of rows instead of row lanes, because a lookup by vpshufb takes one
//                       codebook per half of a register:
//                       [8 groups, each a scale byte of every row: 8 x 8]
//                       [book bits of 8 groups, upper half: 8 bytes]
//                       [8 groups, each 4 pairs of rows: 16 bytes of row p, 16 bytes of row p + 4]
//                       The codebooks of rows p and p + 4 are bits 4p, 4p + 1 and 4p + 2, 4p + 3 of
//                       a 16-bit number per group; its bits 0-7 are the top bits of the 8 scale
//                       bytes, bits 8-15 the book bits.
#pragma once

#include <cstddef>

#include "quant/format.h"

namespace lockstep::quant {

inline constexpr std::uint32_t kPanelRows = 8;

// As MatmulKernel::panel_bytes.
template <Format kFormat>
std::size_t panel_bytes(std::size_t k) noexcept {
  return kPanelRows * bytes_of(kFormat, k);
}

// As MatmulKernel::pack.
using PackRows = void(const std::byte* file_rows, std::size_t rows, std::size_t k,
                      std::byte* panel) noexcept;

// packing_blocks.cpp
PackRows pack_q4_0, pack_q4_1, pack_q5_0, pack_q5_1, pack_q8_0, pack_iq4_nl, pack_mxfp4, pack_nvfp4;
// packing_k.cpp
PackRows pack_q2_k, pack_q3_k, pack_q4_k, pack_q5_k, pack_q6_k, pack_iq4_xs;
// packing_q4x.cpp
PackRows pack_q4x;

}  // namespace lockstep::quant
