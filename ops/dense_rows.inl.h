// Matmul with unquantized weights on vector units: Eigen's packets on fixed tiles.
//
// Eigen's own matrix product blocks by shape and cache size, so an element's order of addition
// would depend on how many tokens came along. Here Eigen gives the packets and their arithmetic,
// the width of its widest register block (24 rows with AVX2) and the packing of tokens; the tiles
// are fixed, over chunks of kDenseDepth columns. Within one each element is one chain of fma in the
// order of k, and chunks are added in order. Rejected: Eigen's micro-kernel on such tiles, which
// has 4 tokens at most, wants f32 and adds into a zeroed tile (f16, 128 tokens, one core: 0.84 of
// the speed with AVX-512, 0.95 with AVX2). Weights are widened where they are multiplied: the
// conversion is hidden behind the multiplications, and a chunk takes half the first-level cache.
//
// A panel holds these rows side by side, [k][rows], in the file's element type. Each
// dense_rows_<isa>.cpp includes this, compiled with flags of its instruction set and with Eigen's
// namespace renamed: nothing in it may be shared with other sources.
#pragma once

#define EIGEN_DONT_PARALLELIZE
#define EIGEN_NO_DEBUG
#define EIGEN_NO_MALLOC

// Two corrections to Eigen 3.4. With clang, it writes fma as inline assembler, which makes clang
// spill an accumulator in every step of the micro-kernel (25 against 32 multiply-adds per ns, clang
// 14); its AVX-512 code has no such assembler, and asks whether this is clang for a reason. And it
// finds the half-precision conversions of the processor with clang only.
#include <Eigen/src/Core/util/Macros.h>
#if !defined(__AVX512F__)
#undef EIGEN_COMP_CLANG
#define EIGEN_COMP_CLANG 0
#endif
#if defined(__F16C__) && !EIGEN_COMP_CLANG
#define EIGEN_HAS_FP16_C
#endif

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "ops/dense.h"

namespace lockstep::ops {
namespace {

namespace eigen = Eigen::internal;
using Index = Eigen::Index;
using Packet = eigen::packet_traits<float>::type;
using HalfPacket = eigen::packet_traits<Eigen::half>::type;
using Bf16Packet = eigen::packet_traits<Eigen::bfloat16>::type;
using Traits = eigen::gebp_traits<float, float>;

constexpr std::size_t kLanes = eigen::packet_traits<float>::size;
constexpr std::size_t kPanelRows = Traits::mr;
constexpr std::size_t kPackets = kPanelRows / kLanes;
constexpr std::size_t kGroup = Traits::nr;  // tokens in one register block
// Groups in one tile: as many as the registers hold, 12 of 16 or 24 of 32 being sums.
constexpr std::size_t kTileGroups = sizeof(Packet) == 64 ? 2 : 1;
constexpr std::size_t kTileTokens = kTileGroups * kGroup;
constexpr std::size_t kTokenBlock = 16 * kTileTokens;  // tokens that meet a chunk of all panels
static_assert(kPanelRows == 3 * kLanes && kPackets == 3 && kGroup == 4,
              "the tile this file is written for");

// The stored element types, and one packet of them as f32.
struct F32 {
  using Stored = float;
  static Packet load(const float* from) noexcept { return eigen::ploadu<Packet>(from); }
};
struct F16 {
  using Stored = std::uint16_t;
  static Packet load(const std::uint16_t* from) noexcept {
    return eigen::half2float(eigen::ploadu<HalfPacket>(reinterpret_cast<const Eigen::half*>(from)));
  }
};
struct Bf16 {
  using Stored = std::uint16_t;
  static Packet load(const std::uint16_t* from) noexcept {
    return eigen::Bf16ToF32(
        eigen::ploadu<Bf16Packet>(reinterpret_cast<const Eigen::bfloat16*>(from)));
  }
};

std::size_t smaller(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }

const float* token(const quant::MatmulCall& call, std::size_t t) noexcept {
  return reinterpret_cast<const float*>(call.activations + t * call.activation_stride);
}

template <class Element>
std::size_t panel_bytes(std::size_t k) noexcept {
  return kPanelRows * k * sizeof(typename Element::Stored);
}

template <class Element>
void pack(const std::byte* file_rows, std::size_t rows, std::size_t k, std::byte* panel) noexcept {
  constexpr std::size_t kSize = sizeof(typename Element::Stored);
  if (rows < kPanelRows) std::memset(panel, 0, panel_bytes<Element>(k));
  // In blocks of columns, whose part of the panel stays in the first-level cache.
  constexpr std::size_t kColumns = 64;
  for (std::size_t first = 0; first < k; first += kColumns) {
    const std::size_t end = smaller(first + kColumns, k);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = first; i < end; ++i) {
        std::memcpy(panel + (i * kPanelRows + r) * kSize, file_rows + (r * k + i) * kSize, kSize);
      }
    }
  }
}

// One panel times kTokens tokens, into tile[token][24].
template <class Element, std::size_t kTokens>
void panel_times_few(const typename Element::Stored* panel, const quant::MatmulCall& call,
                     std::size_t first, float* tile) noexcept {
  const float* x[kTokens];
  for (std::size_t t = 0; t < kTokens; ++t) x[t] = token(call, first + t);
  Packet total[kTokens][kPackets];
  for (auto& row : total) {
    for (Packet& packet : row) packet = eigen::pset1<Packet>(0.0f);
  }
  for (std::size_t k = 0; k < call.k; k += kDenseDepth) {
    const std::size_t end = k + smaller(kDenseDepth, call.k - k);
    Packet sum[kTokens][kPackets];
    for (auto& row : sum) {
      for (Packet& packet : row) packet = eigen::pset1<Packet>(0.0f);
    }
    for (std::size_t i = k; i < end; ++i) {
      const auto* at = panel + i * kPanelRows;
      const Packet w0 = Element::load(at);
      const Packet w1 = Element::load(at + kLanes);
      const Packet w2 = Element::load(at + 2 * kLanes);
      for (std::size_t t = 0; t < kTokens; ++t) {
        const Packet value = eigen::pset1<Packet>(x[t][i]);
        sum[t][0] = eigen::pmadd(w0, value, sum[t][0]);
        sum[t][1] = eigen::pmadd(w1, value, sum[t][1]);
        sum[t][2] = eigen::pmadd(w2, value, sum[t][2]);
      }
    }
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t p = 0; p < kPackets; ++p) total[t][p] = eigen::padd(total[t][p], sum[t][p]);
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t p = 0; p < kPackets; ++p) {
      eigen::pstoreu(tile + t * kPanelRows + p * kLanes, total[t][p]);
    }
  }
}

// A few tokens: every panel meets them in groups of four and comes from memory once.
template <class Element>
void run_few(const quant::MatmulCall& call) noexcept {
  const auto* panel = reinterpret_cast<const typename Element::Stored*>(call.panels);
  float tile[kGroup * kPanelRows];
  for (std::size_t r = 0; r < call.rows; r += kPanelRows, panel += kPanelRows * call.k) {
    const std::size_t rows = smaller(kPanelRows, call.rows - r);
    for (std::size_t first = 0; first < call.tokens; first += kGroup) {
      const std::size_t count = smaller(kGroup, call.tokens - first);
      switch (count) {
        case 1:
          panel_times_few<Element, 1>(panel, call, first, tile);
          break;
        case 2:
          panel_times_few<Element, 2>(panel, call, first, tile);
          break;
        case 3:
          panel_times_few<Element, 3>(panel, call, first, tile);
          break;
        default:
          panel_times_few<Element, 4>(panel, call, first, tile);
          break;
      }
      for (std::size_t t = 0; t < count; ++t) {
        std::memcpy(call.y + (first + t) * call.y_stride + r, tile + t * kPanelRows,
                    rows * sizeof(float));
      }
    }
  }
}

// Columns [k, k + depth) of tokens [first, first + count) as the micro-kernel wants them: groups of
// four tokens interleaved, the last group filled up with zeros.
void interleave(const quant::MatmulCall& call, std::size_t first, std::size_t count, std::size_t k,
                std::size_t depth, float* to) noexcept {
  using Mapper = eigen::const_blas_data_mapper<float, Index, Eigen::ColMajor>;
  const std::size_t whole = count / kGroup * kGroup;
  const auto stride = static_cast<Index>(call.activation_stride / sizeof(float));
  eigen::gemm_pack_rhs<float, Index, Mapper, Traits::nr, Eigen::ColMajor>()(
      to, Mapper(token(call, first) + k, stride), static_cast<Index>(depth),
      static_cast<Index>(whole));
  if (whole == count) return;
  float* const edge = to + whole * depth;
  for (std::size_t lane = 0; lane < kGroup; ++lane) {
    const bool there = whole + lane < count;
    for (std::size_t i = 0; i < depth; ++i) {
      edge[i * kGroup + lane] = there ? token(call, first + whole + lane)[k + i] : 0.0f;
    }
  }
}

// y[t][r] (+)= one chunk of a panel times kGroups groups of four interleaved tokens. Each y is one
// chain of fma in the order of k.
template <class Element, std::size_t kGroups>
void multiply(const typename Element::Stored* weights, const float* tokens, std::size_t depth,
              bool first_chunk, float* y, std::size_t y_stride) noexcept {
  constexpr std::size_t kTokens = kGroups * kGroup;
  Packet sum[kTokens][kPackets];
#pragma GCC unroll 8
  for (std::size_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 3
    for (std::size_t p = 0; p < kPackets; ++p) sum[t][p] = eigen::pset1<Packet>(0.0f);
  }
#pragma GCC unroll 1
  for (std::size_t i = 0; i < depth; ++i) {
    const Packet w0 = Element::load(weights + i * kPanelRows);
    const Packet w1 = Element::load(weights + i * kPanelRows + kLanes);
    const Packet w2 = Element::load(weights + i * kPanelRows + 2 * kLanes);
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t) {
      const float* const group = tokens + t / kGroup * (depth * kGroup);
      const Packet value = eigen::pset1<Packet>(group[i * kGroup + t % kGroup]);
      sum[t][0] = eigen::pmadd(w0, value, sum[t][0]);
      sum[t][1] = eigen::pmadd(w1, value, sum[t][1]);
      sum[t][2] = eigen::pmadd(w2, value, sum[t][2]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t t = 0; t < kTokens; ++t) {
#pragma GCC unroll 3
    for (std::size_t p = 0; p < kPackets; ++p) {
      float* const at = y + t * y_stride + p * kLanes;
      // Also for the first chunk: as the recurrence has it, 0 + -0 is 0.
      const Packet before = first_chunk ? eigen::pset1<Packet>(0.0f) : eigen::ploadu<Packet>(at);
      eigen::pstoreu(at, eigen::padd(before, sum[t][p]));
    }
  }
}

// The same for fewer tokens than there are in the groups, or fewer rows than in a panel.
template <class Element, std::size_t kGroups>
void multiply_part(const typename Element::Stored* weights, const float* tokens, std::size_t depth,
                   bool first_chunk, std::size_t count, std::size_t rows, float* y,
                   std::size_t y_stride) noexcept {
  float tile[kGroups * kGroup * kPanelRows];
  multiply<Element, kGroups>(weights, tokens, depth, true, tile, kPanelRows);
  for (std::size_t t = 0; t < count; ++t) {
    for (std::size_t r = 0; r < rows; ++r) {
      float& to = y[t * y_stride + r];
      to = (first_chunk ? 0.0f : to) + tile[t * kPanelRows + r];
    }
  }
}

template <class Element>
void run_many(const quant::MatmulCall& call) noexcept {
  alignas(64) float tokens[kTokenBlock * kDenseDepth];
  const auto* panels = reinterpret_cast<const typename Element::Stored*>(call.panels);
  for (std::size_t t = 0; t < call.tokens; t += kTokenBlock) {
    const std::size_t count = smaller(kTokenBlock, call.tokens - t);
    for (std::size_t k = 0; k < call.k; k += kDenseDepth) {
      const std::size_t depth = smaller(kDenseDepth, call.k - k);
      interleave(call, t, count, k, depth, tokens);
      for (std::size_t r = 0; r < call.rows; r += kPanelRows) {
        const std::size_t rows = smaller(kPanelRows, call.rows - r);
        const auto* const chunk = panels + r * call.k + k * kPanelRows;
        for (std::size_t i = 0; i < count; i += kTileTokens) {
          float* const y = call.y + (t + i) * call.y_stride + r;
          const float* const x = tokens + i * depth;
          const std::size_t left = smaller(kTileTokens, count - i);
          if (left == kTileTokens && rows == kPanelRows) {
            multiply<Element, kTileGroups>(chunk, x, depth, k == 0, y, call.y_stride);
          } else if (left > kGroup) {
            multiply_part<Element, kTileGroups>(chunk, x, depth, k == 0, left, rows, y,
                                                call.y_stride);
          } else {
            multiply_part<Element, 1>(chunk, x, depth, k == 0, left, rows, y, call.y_stride);
          }
        }
      }
    }
  }
}

template <class Element>
void run(const quant::MatmulCall& call) noexcept {
  if (call.tokens <= kDenseFewTokens) return run_few<Element>(call);
  run_many<Element>(call);
}

// f32, f16, bf16.
constexpr std::array<quant::MatmulKernel, 3> make_kernels(
    quant::Isa isa, const std::array<std::string_view, 3>& names) noexcept {
  return {
      {{names[0], quant::Format::f32, isa, kPanelRows, panel_bytes<F32>, pack<F32>, run<F32>},
       {names[1], quant::Format::f16, isa, kPanelRows, panel_bytes<F16>, pack<F16>, run<F16>},
       {names[2], quant::Format::bf16, isa, kPanelRows, panel_bytes<Bf16>, pack<Bf16>, run<Bf16>}}};
}

}  // namespace
}  // namespace lockstep::ops
