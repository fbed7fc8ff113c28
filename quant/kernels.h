// The list of matmul kernels, and how one is chosen.
//
// A kernel is (format x instruction set x packing). The list in dispatch.cpp is the only one:
// choosing, tests, fuzzers and benches all iterate over it. A kernel brings its own packing: the
// loader packs a weight row once into panels of `panel_rows` rows, and the same bytes serve one
// token and many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "quant/format.h"
#include "quant/isa.h"
#include "quant/rows.h"

namespace lockstep::quant {

// Where the parts of one token's quantized activations lie inside a buffer of `bytes` bytes.
// `activation` is q8_0 or q8_k; k a multiple of its block. Part offsets and `bytes` are multiples
// of 64.
struct ActivationLayout {
  std::size_t q = 0, sums = 0, scale = 0, bytes = 0;
  static ActivationLayout of(Format activation, std::size_t k) noexcept;
  ActivationRow row(const std::byte* base) const noexcept;
};

// One call: rows [0, rows) of the panels at `panels`, times every token.
// y[t * y_stride + r] = dot(row r, token t).
struct MatmulCall {
  const std::byte* panels = nullptr;  // first panel; rows starts at a panel edge
  std::size_t rows = 0;               // rows to compute; the last panel may be partly used
  std::size_t k = 0;                  // columns, a multiple of the format's block
  const std::byte* activations =
      nullptr;  // tokens rows of ActivationLayout (or f32[k]), one after another
  std::size_t activation_stride = 0;  // bytes from one token to the next
  std::size_t tokens = 0;
  float* y = nullptr;
  std::size_t y_stride = 0;         // floats from one token to the next
  const std::byte* side = nullptr;  // the tensor's side data, where the format has it
};

using MatmulRun = void(const MatmulCall& call) noexcept;

struct MatmulKernel {
  std::string_view name;  // "q4_0/avx2/r8"
  Format format;
  Isa isa;
  std::uint32_t panel_rows;  // rows stored side by side; 1 = the file's own row-major blocks
  // Bytes of one panel of k columns.
  std::size_t (*panel_bytes)(std::size_t k) noexcept;
  // Packs `rows` (1..panel_rows) consecutive file rows into one panel; missing rows become zero
  // weights.
  void (*pack)(const std::byte* file_rows, std::size_t rows, std::size_t k,
               std::byte* panel) noexcept;
  MatmulRun* run;
};

// The kernels of one instruction set on the 8-row panels of packing.h, by format; null where it has
// none and a set that it includes serves.
struct PanelRuns {
  MatmulRun* q4_0 = nullptr;
  MatmulRun* q4_1 = nullptr;
  MatmulRun* q5_0 = nullptr;
  MatmulRun* q5_1 = nullptr;
  MatmulRun* q8_0 = nullptr;
  MatmulRun* q2_k = nullptr;
  MatmulRun* q3_k = nullptr;
  MatmulRun* q4_k = nullptr;
  MatmulRun* q5_k = nullptr;
  MatmulRun* q6_k = nullptr;
  MatmulRun* iq4_nl = nullptr;
  MatmulRun* iq4_xs = nullptr;
  MatmulRun* mxfp4 = nullptr;
  MatmulRun* nvfp4 = nullptr;
  MatmulRun* q4x = nullptr;
};

// Every kernel built into this binary, whatever this processor can run.
std::span<const MatmulKernel> all_matmul_kernels() noexcept;

// The kernel for `format` that uses the best instruction set that `isa` includes; null for dense
// formats.
const MatmulKernel* find_matmul(Format format, Isa isa) noexcept;

// Row arithmetic for an instruction set that was built (see built_isas()).
const RowKernels& row_kernels(Isa isa) noexcept;

}  // namespace lockstep::quant
