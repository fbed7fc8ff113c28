// The matmul kernels in plain C++: row after row of the file's own blocks, each dot product
// computed by the format's vec_dot. They are the definition of right, and the kernel of last resort
// of a format that an instruction set has no kernel for.
#include <cstring>
#include <utility>

#include "quant/scalar/kernels.h"

namespace lockstep::quant::scalar {
namespace {

// A kernel is plain functions without a context, so the format is a template argument. The formats
// are found in the table at start, hence one instance for every row that it could have.
template <std::size_t kRow>
struct RowMajor {
  static const FormatTraits& format() noexcept { return all_formats()[kRow]; }

  static std::size_t panel_bytes(std::size_t k) noexcept { return bytes_of(format().format, k); }

  static void pack(const std::byte* file_rows, std::size_t rows, std::size_t k,
                   std::byte* panel) noexcept {
    std::memcpy(panel, file_rows, rows * panel_bytes(k));
  }

  static void run(const MatmulCall& call) noexcept {
    const ActivationLayout layout = ActivationLayout::of(format().activation, call.k);
    const std::size_t row_bytes = panel_bytes(call.k);
    for (std::size_t r = 0; r < call.rows; ++r) {
      const std::byte* row = call.panels + r * row_bytes;
      for (std::size_t t = 0; t < call.tokens; ++t) {
        const ActivationRow token = layout.row(call.activations + t * call.activation_stride);
        call.y[t * call.y_stride + r] = dot_row(format(), call.side, row, token, call.k);
      }
    }
  }
};

template <std::size_t kRow>
std::size_t add(std::span<MatmulKernel> out) noexcept {
  if (kRow >= all_formats().size()) return 0;
  const FormatTraits& format = all_formats()[kRow];
  if (!format.can_dot()) return 0;
  using Kernel = RowMajor<kRow>;
  out.front() = {.name = {},
                 .format = format.format,
                 .isa = Isa::scalar,
                 .panel_rows = 1,
                 .panel_bytes = Kernel::panel_bytes,
                 .pack = Kernel::pack,
                 .run = Kernel::run};
  return 1;
}

template <std::size_t... kRows>
std::size_t add_each(std::span<MatmulKernel> out, std::index_sequence<kRows...>) noexcept {
  std::size_t count = 0;
  ((count += add<kRows>(out.subspan(count))), ...);
  return count;
}

}  // namespace

std::size_t matmul_kernels(std::span<MatmulKernel> out) noexcept {
  return add_each(out, std::make_index_sequence<kMaxMatmulKernels>());
}

}  // namespace lockstep::quant::scalar
