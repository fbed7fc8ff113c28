// Sizes are decided here once, so that what the writer writes is what the reader accepts.
#include "runtime/gguf_layout.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "runtime/checked.h"

namespace lockstep {

namespace {
constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();
}

std::string_view alignment_problem(std::uint64_t alignment) noexcept {
  if (!std::has_single_bit(alignment)) return "is no power of two";
  if (alignment < 8) return "is below 8";
  if (alignment > (1u << 20)) return "is above 1048576";
  return {};
}

std::size_t bytes_of(MetadataType type) noexcept {
  switch (type) {
    case MetadataType::u8:
    case MetadataType::i8:
    case MetadataType::boolean:
      return 1;
    case MetadataType::u16:
    case MetadataType::i16:
      return 2;
    case MetadataType::u32:
    case MetadataType::i32:
    case MetadataType::f32:
      return 4;
    case MetadataType::u64:
    case MetadataType::i64:
    case MetadataType::f64:
      return 8;
    case MetadataType::string:
    case MetadataType::array:
      break;
  }
  return 0;
}

std::optional<TensorSize> tensor_size(const quant::FormatTraits& format,
                                      std::span<const std::uint64_t> dims) noexcept {
  // Zero dimensions are legal, but must not hide the overflow of the others from later arithmetic.
  std::optional<std::uint64_t> magnitude = 1;
  bool empty = false;
  for (const std::uint64_t dim : dims) {
    empty = empty || dim == 0;
    if (magnitude) magnitude = checked_multiply(*magnitude, std::max<std::uint64_t>(dim, 1));
  }
  if (!magnitude || *magnitude > kMaxSize) return std::nullopt;
  if (empty) return TensorSize{0, 0};
  const auto bytes = checked_multiply(*magnitude / format.block_values, format.block_bytes);
  if (!bytes || *bytes > kMaxSize) return std::nullopt;
  return TensorSize{*magnitude, *bytes};
}

}  // namespace lockstep
