// Extents of a tensor, slowest dimension first: [tokens, dim] is {tokens, dim} and the last is
// contiguous.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace lockstep::ops {

// Thrown while a graph is built; the text names the op, the operand and both extents.
class ShapeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

class Shape {
 public:
  static constexpr std::size_t kMaxRank = 4;

  constexpr Shape() noexcept = default;
  constexpr Shape(std::initializer_list<std::size_t> extents) {
    if (extents.size() > kMaxRank) throw ShapeError("a shape has at most 4 dimensions");
    for (std::size_t extent : extents) extents_[rank_++] = extent;
  }

  constexpr std::size_t rank() const noexcept { return rank_; }
  constexpr std::size_t operator[](std::size_t i) const noexcept { return extents_[i]; }
  // The contiguous dimension, and the product of all others; both 1 for rank 0.
  constexpr std::size_t columns() const noexcept { return rank_ ? extents_[rank_ - 1] : 1; }
  constexpr std::size_t rows() const noexcept {
    std::size_t product = 1;
    for (std::size_t i = 0; i + 1 < rank_; ++i) product *= extents_[i];
    return product;
  }
  constexpr std::size_t elements() const noexcept { return rows() * columns(); }
  constexpr bool operator==(const Shape&) const noexcept = default;

 private:
  std::array<std::size_t, kMaxRank> extents_{};
  std::size_t rank_ = 0;
};

// "[3, 64]"
std::string to_string(const Shape& shape);

}  // namespace lockstep::ops
