// Q4X times Q8_0 activations on AVX2. Every group of every row may use another codebook, so a
// register holds columns of two rows here, not one column of eight: each 128-bit half is looked up
// in its own row's codebook by one vpshufb. The 16 pairs of codebooks are laid out once per call.
// Levels are looked up plus 64 (1..127), so that vpmaddubsw takes them as unsigned and the sum of
// two products stays below 32767; the 64 is taken off with the activation sums.
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"

namespace lockstep::quant::avx2 {
namespace {

constexpr std::size_t kBooks = 4;
constexpr std::size_t kLevels = 16;
constexpr std::size_t kBase = 64;
constexpr std::size_t kShift = 68;

LOCKSTEP_INLINE __m256i broadcast16(const std::int8_t* q) noexcept {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q)));
}

struct TileQ4X {
  static constexpr std::size_t kBlockValues = 256;
  static constexpr std::size_t kBlockBytes = 1096;
  static constexpr std::size_t kBookBits = 64;
  static constexpr std::size_t kQuants = 72;

  // The side data as the loop reads it. Entry i: codebook i % 4 in the lower half, i / 4 in the
  // upper one.
  alignas(32) std::uint8_t books[kBooks * kBooks][2 * kLevels];
  float base;
  int shift;

  explicit TileQ4X(const std::byte* side) noexcept {
    const __m128i offset = _mm_set1_epi8(64);
    for (std::size_t i = 0; i < kBooks * kBooks; ++i) {
      const auto* low = reinterpret_cast<const __m128i*>(side + i % kBooks * kLevels);
      const auto* high = reinterpret_cast<const __m128i*>(side + i / kBooks * kLevels);
      auto* to = reinterpret_cast<__m128i*>(books[i]);
      _mm_store_si128(to, _mm_add_epi8(_mm_loadu_si128(low), offset));
      _mm_store_si128(to + 1, _mm_add_epi8(_mm_loadu_si128(high), offset));
    }
    __builtin_memcpy(&base, side + kBase, sizeof base);
    shift = static_cast<int>(side[kShift]);
  }

  // Scales of 8 rows from their bytes: a shift makes an f16 of the code, the sign goes to its top.
  LOCKSTEP_INLINE static __m256 scales(__m128i bytes, __m128i shift, __m256 base) noexcept {
    const __m128i wide = _mm_cvtepu8_epi16(bytes);
    const __m128i magnitude = _mm_sll_epi16(_mm_and_si128(wide, _mm_set1_epi16(63)), shift);
    const __m128i sign = _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(64)), 9);
    return _mm256_mul_ps(base, _mm256_cvtph_ps(_mm_or_si128(magnitude, sign)));
  }

  template <int N>
  LOCKSTEP_INLINE void compute(const std::byte* panel, std::size_t blocks, const Tokens<N>& tokens,
                               __m256 (&acc)[N]) const noexcept {
    const __m256i four_bits = _mm256_set1_epi8(0x0f);
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256 factor = _mm256_set1_ps(base);
    const __m128i count = _mm_cvtsi32_si128(shift);
    for (std::size_t b = 0; b < blocks; ++b, panel += kBlockBytes) {
      prefetch(panel, kBlockBytes);
      const std::byte* quants = panel + kQuants;
      for (std::size_t g = 0; g < 8; ++g, quants += 128) {
        const std::size_t column = b * kBlockValues + 32 * g;
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(panel + 8 * g));
        const unsigned pairs = (static_cast<unsigned>(_mm_movemask_epi8(bytes)) & 0xffu) |
                               static_cast<unsigned>(panel[kBookBits + g]) << 8;
        const __m256 d = scales(bytes, count, factor);
        __m256i first[4];   // columns 0-15 of rows p and p + 4
        __m256i second[4];  // columns 16-31
#pragma GCC unroll 4
        for (unsigned p = 0; p < 4; ++p) {
          const auto* book = reinterpret_cast<const __m256i*>(books[pairs >> (4 * p) & 15u]);
          const __m256i levels = _mm256_load_si256(book);
          const __m256i nibbles = load_step(quants + 32 * p);
          const __m256i high = _mm256_and_si256(_mm256_srli_epi16(nibbles, 4), four_bits);
          first[p] = _mm256_shuffle_epi8(levels, _mm256_and_si256(nibbles, four_bits));
          second[p] = _mm256_shuffle_epi8(levels, high);
        }
#pragma GCC unroll 4
        for (int t = 0; t < N; ++t) {
          const __m256i y0 = broadcast16(tokens.q(t, column));
          const __m256i y1 = broadcast16(tokens.q(t, column + 16));
          __m256i sums[4];
#pragma GCC unroll 4
          for (int p = 0; p < 4; ++p) {
            const __m256i low = _mm256_madd_epi16(_mm256_maddubs_epi16(first[p], y0), ones);
            const __m256i high = _mm256_madd_epi16(_mm256_maddubs_epi16(second[p], y1), ones);
            sums[p] = _mm256_add_epi32(low, high);
          }
          // Lanes 0-3 add up rows 0-3, which are in the lower halves; lanes 4-7 rows 4-7.
          const __m256i raised = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]),
                                                   _mm256_hadd_epi32(sums[2], sums[3]));
          const __m256i offset =
              _mm256_madd_epi16(tokens.sum_pair(t, column / 16), _mm256_set1_epi16(-64));
          const __m256 isum = _mm256_cvtepi32_ps(_mm256_add_epi32(raised, offset));
          acc[t] = _mm256_fmadd_ps(_mm256_mul_ps(d, tokens.scale_of(t, column / 32)), isum, acc[t]);
        }
      }
    }
  }
};

}  // namespace

void run_q4x(const MatmulCall& call) noexcept {
  run_panels<TileQ4X>(call, Format::q8_0, TileQ4X(call.side));
}

}  // namespace lockstep::quant::avx2
