// Token texts to ids, and finding special tokens in text. The special ones (control, user-defined,
// unknown) form a trie, so that a prompt is scanned once whatever their number: at each place the
// longest one wins, and places are taken from left to right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "runtime/tokenizer/tokenizer.h"

namespace lockstep {

struct Tokenizer::Index {
  struct Match {
    TokenId id = kNoToken;
    std::size_t size = 0;
  };

  // The texts must outlive the index and stay where they are.
  std::unordered_map<std::string_view, TokenId> by_text;

  void add_special(std::string_view text, TokenId id, bool user_defined);
  // The longest special token that `rest` starts with. User-defined ones are ordinary vocabulary
  // that merging must not take apart, so they are found always; the others only if `all`.
  Match match(std::string_view rest, bool all) const noexcept;
  bool may_start(char byte) const noexcept { return starts_[static_cast<unsigned char>(byte)]; }

 private:
  struct End {
    TokenId id;
    bool user_defined;
  };
  static std::uint64_t edge(std::uint32_t node, char byte) noexcept {
    return (std::uint64_t{node} << 8) | static_cast<unsigned char>(byte);
  }

  std::array<bool, 256> starts_{};
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // node 0 is the root
  std::unordered_map<std::uint32_t, End> ends_;
};

}  // namespace lockstep
