// Codebook and ternary formats times Q8_K activations on AVX2. Rows stay as the file has them: a
// block is unpacked to int8 in the first-level cache and then multiplied with every token of a
// chunk, so that its look-ups are paid once. Products of |q| <= 62 and |y| <= 127 fit int16 in
// pairs.
#include "quant/avx2/kernels.h"
#include "quant/avx2/panel.h"
#include "quant/unpack.h"

namespace lockstep::quant::avx2 {
namespace {

constexpr std::size_t kBlock = 256;
// Tokens per unpacked block: as many as keep their activations in the second-level cache.
constexpr std::size_t kChunk = 32;

// For each of N tokens the weighted products of one block, as 8 partial sums.
template <int N>
LOCKSTEP_INLINE void block_products(const UnpackedBlock& w, const std::int8_t* const (&y)[N],
                                    __m256i (&sums)[N]) noexcept {
  // The scale of the first 16 columns of a step in the lower half, of the others in the upper.
  const __m256i spread = _mm256_setr_epi64x(0x0100010001000100, 0x0100010001000100,
                                            0x0302030203020302, 0x0302030203020302);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kBlock; i += 32) {
    const __m256i q = _mm256_load_si256(reinterpret_cast<const __m256i*>(w.q + i));
    const __m256i magnitude = _mm256_abs_epi8(q);
    const __m256i pair =
        _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(w.scales + i / 32)));
    const __m256i scale = _mm256_shuffle_epi8(pair, spread);
#pragma GCC unroll 4
    for (int t = 0; t < N; ++t) {
      const __m256i activations = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(y[t] + i));
      const __m256i products = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(activations, q));
      const __m256i scaled = _mm256_madd_epi16(products, scale);
      sums[t] = i == 0 ? scaled : _mm256_add_epi32(sums[t], scaled);
    }
  }
}

LOCKSTEP_INLINE __m128i halves_added(__m256i x) noexcept {
  return _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}

// acc[0 .. N) += the products of one block. N is 1 or 4.
template <int N>
LOCKSTEP_INLINE void add_block(const UnpackedBlock& w, const ActivationRow* tokens,
                               std::size_t block, float* acc) noexcept {
  const std::int8_t* y[N];
  for (int t = 0; t < N; ++t) y[t] = tokens[t].q + block * kBlock;
  __m256i sums[N];
  block_products<N>(w, y, sums);
  if constexpr (N == 4) {
    const __m256i pairs =
        _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    const __m128 isum = _mm_cvtepi32_ps(halves_added(pairs));
    const __m128 da = _mm_setr_ps(tokens[0].scale[block], tokens[1].scale[block],
                                  tokens[2].scale[block], tokens[3].scale[block]);
    const __m128 scale = _mm_mul_ps(_mm_set1_ps(w.scale), da);
    _mm_storeu_ps(acc, _mm_fmadd_ps(scale, isum, _mm_loadu_ps(acc)));
  } else {
    __m128i quarter = halves_added(sums[0]);
    quarter = _mm_hadd_epi32(quarter, quarter);
    quarter = _mm_hadd_epi32(quarter, quarter);
    const __m128 scale = _mm_mul_ss(_mm_set_ss(w.scale), _mm_set_ss(tokens[0].scale[block]));
    const __m128 sum = _mm_fmadd_ss(scale, _mm_cvtepi32_ps(quarter), _mm_load_ss(acc));
    _mm_store_ss(acc, sum);
  }
}

template <Format kFormat>
LOCKSTEP_INLINE void run_rows(const MatmulCall& call) noexcept {
  const ActivationLayout layout = ActivationLayout::of(Format::q8_k, call.k);
  const std::size_t blocks = call.k / kBlock;
  const std::size_t block_bytes = bytes_of(kFormat, kBlock);
  for (std::size_t begin = 0; begin < call.tokens; begin += kChunk) {
    const std::size_t rest = call.tokens - begin;
    const std::size_t tokens = rest < kChunk ? rest : kChunk;
    ActivationRow activations[kChunk];
    for (std::size_t t = 0; t < tokens; ++t) {
      activations[t] = layout.row(call.activations + (begin + t) * call.activation_stride);
    }
    const std::byte* block = call.panels;
    for (std::size_t r = 0; r < call.rows; ++r) {
      float acc[kChunk] = {};
      for (std::size_t b = 0; b < blocks; ++b, block += block_bytes) {
        UnpackedBlock unpacked;
        unpack_block<kFormat>(block, unpacked);
        std::size_t t = 0;
        for (; t + 4 <= tokens; t += 4) add_block<4>(unpacked, activations + t, b, acc + t);
        for (; t < tokens; ++t) add_block<1>(unpacked, activations + t, b, acc + t);
      }
      for (std::size_t t = 0; t < tokens; ++t) call.y[(begin + t) * call.y_stride + r] = acc[t];
    }
  }
}

}  // namespace

void run_iq1_s(const MatmulCall& call) noexcept { run_rows<Format::iq1_s>(call); }
void run_iq1_m(const MatmulCall& call) noexcept { run_rows<Format::iq1_m>(call); }
void run_iq2_xxs(const MatmulCall& call) noexcept { run_rows<Format::iq2_xxs>(call); }
void run_iq2_xs(const MatmulCall& call) noexcept { run_rows<Format::iq2_xs>(call); }
void run_iq2_s(const MatmulCall& call) noexcept { run_rows<Format::iq2_s>(call); }
void run_iq3_xxs(const MatmulCall& call) noexcept { run_rows<Format::iq3_xxs>(call); }
void run_iq3_s(const MatmulCall& call) noexcept { run_rows<Format::iq3_s>(call); }
void run_tq1_0(const MatmulCall& call) noexcept { run_rows<Format::tq1_0>(call); }
void run_tq2_0(const MatmulCall& call) noexcept { run_rows<Format::tq2_0>(call); }

}  // namespace lockstep::quant::avx2
