// The searching encoders in plain C++: what those of the instruction sets are tested against.
#include "quant/scalar/kernels.h"

#include "quant/scalar/simd.h"

#include "quant/encode/make_encoders.inl.h"

namespace lockstep::quant::scalar {

constinit const SearchingEncoders kEncoders = make_encoders<ScalarSimd>();

}  // namespace lockstep::quant::scalar
