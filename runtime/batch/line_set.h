// A set of line numbers at one bit a line: what a job remembers of the rows that it found.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
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
  // Returns how many were no members.
  std::size_t add_all(const LineSet& other) {
    std::size_t added = 0;
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size(), 0);
    for (std::size_t i = 0; i < other.words_.size(); ++i) {
      added += static_cast<std::size_t>(std::popcount(other.words_[i] & ~words_[i]));
      words_[i] |= other.words_[i];
    }
    return added;
  }
  // Bit n of word w: line 64 w + n. May end in zeros.
  std::span<const std::uint64_t> words() const noexcept { return words_; }

 private:
  static constexpr std::size_t kBits = 64;
  std::vector<std::uint64_t> words_;
};

}  // namespace lockstep::batch
