// The searching encoders for AVX2.
#include "quant/avx2/kernels.h"

#include "quant/avx2/simd.h"

#include "quant/encode/make_encoders.inl.h"

namespace lockstep::quant::avx2 {

constinit const SearchingEncoders kEncoders = make_encoders<Avx2Simd>();

}  // namespace lockstep::quant::avx2
