// A set of line numbers at one bit a line: what a job remembers of the rows that it found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::batch {

class LineSet {
 public:
  // False if the line is a member already.
  bool add(std::size_t line) {
    const std::size_t word = line / kBits;
    if (word >= words_.size()) words_.resize(word + 1, 0);
    const std::uint64_t bit = std::uint64_t{1} << (line % kBits);
    if ((words_[word] & bit) != 0) return false;
    words_[word] |= bit;
    return true;
  }
  bool contains(std::size_t line) const noexcept {
    const std::size_t word = line / kBits;
    return word < words_.size() && (words_[word] >> (line % kBits) & 1) != 0;
  }

 private:
  static constexpr std::size_t kBits = 64;
  std::vector<std::uint64_t> words_;
};

}  // namespace lockstep::batch
