// Byte pair merging, shared by both tokenizer families: the cheapest mergeable pair of neighbours
// becomes one symbol, the leftmost of equals first, until no pair can be merged. A linked list over
// an array and a heap of candidates make it O(n log n), so that one word of a megabyte is no trap.
// A candidate whose symbols have changed since it was made is skipped when it comes up, not
// searched for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"

namespace lockstep {

inline constexpr std::int32_t kNoSymbol = -1;

struct Symbol {
  std::uint32_t begin;  // bytes [begin, begin + size) of the text; size 0 once merged into another
  std::uint32_t size;
  std::int32_t previous;
  std::int32_t next;
  TokenId id;  // kNoToken for text that is no token (yet)
};

struct Merge {
  double cost;  // cheapest first: a merge rank, or a score with its sign changed
  TokenId id;   // what the pair becomes
};

class Merger {
 public:
  std::vector<Symbol>& symbols() noexcept { return symbols_; }
  void clear() noexcept { symbols_.clear(); }

  void append(std::uint32_t begin, std::uint32_t size, TokenId id) {
    const auto index = static_cast<std::int32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({begin, size, index - 1, kNoSymbol, id});
  }

  // `find(left, right)` -> std::optional<Merge>. Afterwards the list from symbols()[0] holds the
  // result.
  template <typename Find>
  void run(const Find& find) {
    heap_.clear();
    for (std::int32_t i = 1; i < static_cast<std::int32_t>(symbols_.size()); ++i) {
      consider(i - 1, i, find);
    }
    std::make_heap(heap_.begin(), heap_.end(), later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Candidate best = heap_.back();
      heap_.pop_back();
      Symbol& left = symbols_[static_cast<std::size_t>(best.left)];
      Symbol& right = symbols_[static_cast<std::size_t>(best.right)];
      // Sizes only grow until a symbol dies, so an equal sum of two living ones means: unchanged.
      if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
      left.size = best.size;
      left.id = best.id;
      left.next = right.next;
      right.size = 0;
      if (left.next != kNoSymbol)
        symbols_[static_cast<std::size_t>(left.next)].previous = best.left;
      push_if(left.previous, best.left, find);
      push_if(best.left, left.next, find);
    }
  }

 private:
  struct Candidate {
    double cost;
    std::int32_t left;
    std::int32_t right;
    std::uint32_t size;
    TokenId id;
  };

  static bool later(const Candidate& a, const Candidate& b) noexcept {
    return a.cost != b.cost ? a.cost > b.cost : a.left > b.left;
  }

  template <typename Find>
  bool consider(std::int32_t left, std::int32_t right, const Find& find) {
    if (left == kNoSymbol || right == kNoSymbol) return false;
    const Symbol& a = symbols_[static_cast<std::size_t>(left)];
    const Symbol& b = symbols_[static_cast<std::size_t>(right)];
    const std::optional<Merge> merge = find(a, b);
    if (merge) heap_.push_back({merge->cost, left, right, a.size + b.size, merge->id});
    return merge.has_value();
  }

  template <typename Find>
  void push_if(std::int32_t left, std::int32_t right, const Find& find) {
    if (consider(left, right, find)) std::push_heap(heap_.begin(), heap_.end(), later);
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace lockstep
