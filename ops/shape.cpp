// Text for shapes: what error messages and printed plans show.
#include "ops/shape.h"

namespace lockstep::ops {

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace lockstep::ops
