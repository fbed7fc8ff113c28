// See kv_blocks.h. Matches are exact: the index is found by hashes and then compared token by
// token, and the serial of the block before stands for everything that came before it.
#include "runtime/kv_blocks.h"

#include <algorithm>
#include <stdexcept>

namespace lockstep {
namespace {

// Sharing part of a block takes a copy, and finding it a look at all blocks that begin alike: the
// least that is worth it, and the most that are looked at.
constexpr std::size_t kLeastPartial = 4;
constexpr std::size_t kMostCompared = 64;

std::size_t common_prefix(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t count = 0;
  while (count < most && a[count] == b[count]) ++count;
  return count;
}

std::uint64_t key_of(std::uint64_t seed, std::span<const std::int32_t> tokens) noexcept {
  std::uint64_t key = seed * 0x9E3779B97F4A7C15u + 1;
  for (const std::int32_t token : tokens) {
    key = (key ^ static_cast<std::uint32_t>(token)) * 0xBF58476D1CE4E5B9u;
    key ^= key >> 29;
  }
  return key;
}

std::uint64_t begin_key(std::uint64_t seed, std::span<const std::int32_t> tokens) noexcept {
  return key_of(~seed, tokens.first(kLeastPartial));
}

template <class Map>
void erase_value(Map& map, std::uint64_t key, std::uint32_t value) {
  const auto [first, last] = map.equal_range(key);
  const auto found =
      std::find_if(first, last, [value](const auto& item) { return item.second == value; });
  if (found != last) map.erase(found);
}

}  // namespace

KvBlocks::KvBlocks(const Options& options)
    : options_(options),
      per_slot_(blocks_of(options.context)),
      blocks_(options.blocks),
      tokens_(options.blocks * options.block),
      slots_(options.slots),
      table_(options.slots * per_slot_, 0) {
  free_.reserve(options.blocks);
  for (std::size_t i = options.blocks; i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
}

std::int32_t KvBlocks::token(std::size_t slot, std::size_t position) const {
  return tokens_[block_at(slot, position / options_.block) * options_.block +
                 position % options_.block];
}

bool KvBlocks::must_copy(std::size_t slot) const {
  const std::size_t length = slots_[slot].length;
  if (length % options_.block == 0) return false;
  const Block& tail = blocks_[block_at(slot, length / options_.block)];
  return tail.users > 1 || tail.indexed;
}

std::size_t KvBlocks::blocks_needed(std::size_t slot, std::size_t tokens) const {
  if (tokens == 0) return 0;
  const std::size_t length = slots_[slot].length;
  return blocks_of(length + tokens) - blocks_of(length) + (must_copy(slot) ? 1 : 0);
}

std::size_t KvBlocks::room(std::size_t slot) const {
  const std::size_t length = slots_.at(slot).length;
  std::size_t blocks = available();
  if (must_copy(slot)) {
    if (blocks == 0) return 0;
    --blocks;
  }
  const std::size_t in_tail = blocks_of(length) * options_.block - length;
  return std::min(options_.context - length, in_tail + blocks * options_.block);
}

void KvBlocks::touch(std::size_t slot) {
  if (slots_[slot].touched) return;
  slots_[slot].touched = true;
  touched_.push_back(slot);
}

std::uint32_t KvBlocks::take_block() {
  std::uint32_t block = 0;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else {
    block = idle_.front();
    idle_.pop_front();
    remove_from_index(block);
  }
  blocks_[block] = {.users = 1, .idle = {}};
  return block;
}

void KvBlocks::share_block(std::uint32_t block) {
  if (blocks_[block].users++ == 0) idle_.erase(blocks_[block].idle);
}

// For a slot that will not evaluate all of the block, which it has booked.
void KvBlocks::unbook(std::size_t slot, std::uint32_t block) {
  const Block& left = blocks_[block];
  if (!left.booked || left.owner != slot) return;
  if (left.users > 1) {
    throw std::logic_error("positions were forgotten that another slot adopted in this step");
  }
  remove_from_index(block);
}

void KvBlocks::release(std::size_t slot, std::uint32_t block) {
  unbook(slot, block);
  Block& left = blocks_[block];
  if (--left.users > 0) return;
  if (left.indexed) {
    left.idle = idle_.insert(idle_.end(), block);
  } else {
    free_.push_back(block);
  }
}

void KvBlocks::add_to_index(std::size_t slot, std::uint32_t block, Serial parent) {
  Block& full = blocks_[block];
  full.parent = parent;
  std::uint32_t same = 0;
  if (find_full(parent, tokens_of(block), same)) {
    // Two slots computed the same side by side. Who comes after either of them may continue from
    // both, but one of the two in the index is enough.
    full.serial = blocks_[same].serial;
    return;
  }
  full.serial = next_serial_++;
  full.indexed = full.booked = true;
  full.owner = slot;
  booked_.push_back(block);
  by_content_.emplace(key_of(parent, tokens_of(block)), block);
  by_beginning_.emplace(begin_key(parent, tokens_of(block)), block);
}

void KvBlocks::remove_from_index(std::uint32_t block) {
  Block& full = blocks_[block];
  erase_value(by_content_, key_of(full.parent, tokens_of(block)), block);
  erase_value(by_beginning_, begin_key(full.parent, tokens_of(block)), block);
  if (full.booked) std::erase(booked_, block);
  full.indexed = full.booked = false;
}

bool KvBlocks::find_full(Serial parent, std::span<const std::int32_t> tokens,
                         std::uint32_t& block) const {
  const auto [first, last] = by_content_.equal_range(key_of(parent, tokens));
  for (auto item = first; item != last; ++item) {
    const Block& candidate = blocks_[item->second];
    const auto held = tokens_of(item->second);
    if (candidate.parent == parent && std::equal(held.begin(), held.end(), tokens.begin())) {
      block = item->second;
      return true;
    }
  }
  return false;
}

std::size_t KvBlocks::find_partial(Serial parent, std::span<const std::int32_t> tokens,
                                   std::uint32_t& block) const {
  if (tokens.size() < kLeastPartial) return 0;
  const auto [first, last] = by_beginning_.equal_range(begin_key(parent, tokens));
  std::size_t longest = 0;
  std::size_t compared = 0;
  for (auto item = first; item != last && compared < kMostCompared; ++item, ++compared) {
    const Block& candidate = blocks_[item->second];
    // One that is booked has nothing yet that could be copied.
    if (candidate.parent != parent || candidate.booked) continue;
    const std::size_t alike = common_prefix(tokens_of(item->second), tokens);
    if (alike > longest) {
      longest = alike;
      block = item->second;
    }
  }
  return longest >= kLeastPartial ? longest : 0;
}

std::size_t KvBlocks::adopt(std::size_t slot, std::span<const std::int32_t> tokens) {
  Slot& empty = slots_.at(slot);
  if (empty.length != 0) throw std::logic_error("only an empty slot can adopt a beginning");
  if (!options_.share || tokens.size() < 2) return 0;
  const std::size_t most = std::min(tokens.size() - 1, options_.context);
  Serial parent = 0;
  std::size_t at = 0;
  std::uint32_t block = 0;
  const auto add = [&](std::size_t count) {
    share_block(block);
    entry(slot, at / options_.block) = static_cast<std::int32_t>(block);
    at += count;
  };
  while (at + options_.block <= most &&
         find_full(parent, tokens.subspan(at, options_.block), block)) {
    add(options_.block);
    parent = blocks_[block].serial;
  }
  if (const std::size_t part =
          find_partial(parent, tokens.subspan(at, std::min(most - at, options_.block)), block)) {
    add(part);
  }
  if (at > 0) touch(slot);
  empty.length = empty.evaluated = at;
  return at;
}

// Replaces the last block of a slot by a copy of its own.
void KvBlocks::copy_tail(std::size_t slot) {
  const std::size_t length = slots_[slot].length;
  const std::size_t index = length / options_.block;
  const std::size_t used = length % options_.block;
  const std::uint32_t from = block_at(slot, index);
  const std::uint32_t to = take_block();
  std::copy_n(tokens_of(from).begin(), used, tokens_of(to).begin());
  copies_.push_back({from, to, used});
  entry(slot, index) = static_cast<std::int32_t>(to);
  release(slot, from);
}

void KvBlocks::append(std::size_t slot, std::int32_t token) {
  std::size_t& length = slots_[slot].length;
  const std::size_t index = length / options_.block;
  const std::size_t offset = length % options_.block;
  if (offset == 0) entry(slot, index) = static_cast<std::int32_t>(take_block());
  const std::uint32_t block = block_at(slot, index);
  tokens_of(block)[offset] = token;
  blocks_[block].serial = 0;
  ++length;
  if (offset + 1 < options_.block || !options_.share) return;
  const Serial parent = index == 0 ? 0 : blocks_[block_at(slot, index - 1)].serial;
  add_to_index(slot, block, parent);
}

bool KvBlocks::reserve(std::size_t slot, std::span<const std::int32_t> tokens) {
  const Slot& state = slots_.at(slot);
  if (state.length + tokens.size() > options_.context) {
    throw std::logic_error("a slot would grow beyond its context");
  }
  if (blocks_needed(slot, tokens.size()) > available()) return false;
  if (tokens.empty()) return true;
  touch(slot);
  if (must_copy(slot)) copy_tail(slot);
  for (const std::int32_t token : tokens) append(slot, token);
  return true;
}

void KvBlocks::truncate(std::size_t slot, std::size_t length) {
  Slot& state = slots_.at(slot);
  if (length > state.length) throw std::logic_error("truncating to more than there is");
  const std::size_t keep = blocks_of(length);
  // From the end, so that of a sequence that nobody uses the beginning stays longest.
  for (std::size_t index = blocks_of(state.length); index-- > keep;) {
    release(slot, block_at(slot, index));
  }
  if (length < state.length && length % options_.block != 0) {
    unbook(slot, block_at(slot, keep - 1));
  }
  state.length = length;
  state.evaluated = std::min(state.evaluated, length);
  state.committed = std::min(state.committed, length);
}

void KvBlocks::commit() {
  for (const std::size_t slot : touched_) {
    Slot& state = slots_[slot];
    state.evaluated = state.committed = state.length;
    state.touched = false;
  }
  for (const std::uint32_t block : booked_) blocks_[block].booked = false;
  booked_.clear();
  touched_.clear();
}

void KvBlocks::rollback() {
  // Whoever adopted a block that is only booked did so after its owner had booked it.
  for (std::size_t i = touched_.size(); i-- > 0;) {
    const std::size_t slot = touched_[i];
    slots_[slot].touched = false;
    truncate(slot, slots_[slot].committed);
  }
  touched_
      .clear();  // copies stay due: a slot may keep a block that it got in place of a shared one
}

}  // namespace lockstep
