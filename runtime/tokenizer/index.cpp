// The trie of special tokens. Edges live in one hash map keyed by node and byte: vocabularies have
// a few hundred special tokens, a prompt leaves the trie after a byte or two nearly everywhere.
#include "runtime/tokenizer/index.h"

namespace lockstep {

void Tokenizer::Index::add_special(std::string_view text, TokenId id, bool user_defined) {
  if (text.empty()) return;  // would be found everywhere and never end
  starts_[static_cast<unsigned char>(text.front())] = true;
  std::uint32_t node = 0;
  for (const char byte : text) {
    const auto fresh = static_cast<std::uint32_t>(edges_.size() + 1);
    node = edges_.try_emplace(edge(node, byte), fresh).first->second;
  }
  ends_.insert_or_assign(node, End{id, user_defined});
}

Tokenizer::Index::Match Tokenizer::Index::match(std::string_view rest, bool all) const noexcept {
  Match best;
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const auto next = edges_.find(edge(node, rest[i]));
    if (next == edges_.end()) break;
    node = next->second;
    const auto end = ends_.find(node);
    if (end != ends_.end() && (all || end->second.user_defined)) best = {end->second.id, i + 1};
  }
  return best;
}

}  // namespace lockstep
