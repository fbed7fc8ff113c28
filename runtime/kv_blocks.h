// Which block of the key/value cache holds which positions of which slot: a free list, reference
// counts, and an index of full blocks by what they hold, so that sequences that begin alike share
// the blocks of their beginning. Book-keeping only; the values are kv_cache.h's.
//
// Tokens are booked before they are evaluated: reserve() finds room, and from then on others can
// share the block, even within the step that computes it, since a layer writes keys and values of
// the whole batch before anybody reads them. commit() after the step makes it final, rollback()
// undoes what was booked since the last commit.
//
// A block that is full is never written again. What would write to it, or to one that others use
// too, gets a copy first (copy on write). Full blocks whose last user has gone stay in the index
// until their room is needed, the one unused for longest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep {

class KvBlocks {
 public:
  struct Options {
    std::size_t slots = 1;
    std::size_t context = 1;  // positions of a slot at most
    std::size_t blocks = 1;   // in all; one more than a slot needs, so that it can copy one
    std::size_t block = 32;   // positions of a block
    bool share = true;        // keep an index; else adopt() finds nothing
  };
  // Positions to be copied from the beginning of one block to that of another before the step.
  struct Copy {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::size_t positions = 0;
    bool operator==(const Copy&) const = default;
  };

  explicit KvBlocks(const Options& options);

  const Options& options() const noexcept { return options_; }
  std::size_t blocks_per_slot() const noexcept { return per_slot_; }

  // Positions of a slot with those that are booked, and the first that is yet to be evaluated.
  std::size_t length(std::size_t slot) const { return slots_.at(slot).length; }
  std::size_t evaluated(std::size_t slot) const { return slots_.at(slot).evaluated; }
  // The token at a position below length().
  std::int32_t token(std::size_t slot, std::size_t position) const;

  // Gives an empty slot the longest beginning of `tokens` that the index knows, but leaves at least
  // one token to evaluate. Returns its length: the first position to reserve.
  std::size_t adopt(std::size_t slot, std::span<const std::int32_t> tokens);
  // Books tokens for the positions from length() on; length() + tokens must not exceed the context.
  // False, and nothing is changed, if there are not enough blocks.
  bool reserve(std::size_t slot, std::span<const std::int32_t> tokens);
  // How many tokens reserve() would take now.
  std::size_t room(std::size_t slot) const;
  // Forgets all positions from `length` on. Positions that another slot adopted in this step must
  // not be among them (std::logic_error).
  void truncate(std::size_t slot, std::size_t length);

  // Copies that are due since the last call: whoever calls makes them at once, in this order, and
  // before the booked tokens are evaluated.
  std::vector<Copy> take_copies() { return std::exchange(copies_, {}); }
  void commit();
  void rollback();
  // Slots that have booked something since the last commit.
  const std::vector<std::size_t>& touched() const noexcept { return touched_; }

  // i32 [slots, blocks_per_slot()].
  std::span<const std::int32_t> table() const noexcept { return table_; }

  // Blocks that nobody uses, those that only the index still knows included; and the latter alone.
  std::size_t available() const noexcept { return free_.size() + idle_.size(); }
  std::size_t idle() const noexcept { return idle_.size(); }

 private:
  using Serial = std::uint64_t;  // of a full block and all blocks before it; 0: the beginning

  struct Block {
    std::uint32_t users = 0;  // slots
    Serial serial = 0;        // not 0: full
    Serial parent = 0;        // of the block before it
    bool indexed = false;
    bool booked = false;    // indexed, but not yet evaluated
    std::size_t owner = 0;  // if booked: the slot that will evaluate it
    std::list<std::uint32_t>::iterator idle;
  };
  struct Slot {
    std::size_t length = 0;
    std::size_t evaluated = 0;
    std::size_t committed = 0;  // where rollback() returns to
    bool touched = false;
  };

  std::int32_t& entry(std::size_t slot, std::size_t index) {
    return table_[slot * per_slot_ + index];
  }
  std::uint32_t block_at(std::size_t slot, std::size_t index) const {
    return static_cast<std::uint32_t>(table_[slot * per_slot_ + index]);
  }
  std::span<std::int32_t> tokens_of(std::uint32_t block) {
    return {&tokens_[block * options_.block], options_.block};
  }
  std::span<const std::int32_t> tokens_of(std::uint32_t block) const {
    return {&tokens_[block * options_.block], options_.block};
  }
  std::size_t blocks_of(std::size_t length) const noexcept {
    return (length + options_.block - 1) / options_.block;
  }
  // Whether the next token would go into a block that must not be written.
  bool must_copy(std::size_t slot) const;
  std::size_t blocks_needed(std::size_t slot, std::size_t tokens) const;

  void touch(std::size_t slot);
  std::uint32_t take_block();
  void share_block(std::uint32_t block);
  void unbook(std::size_t slot, std::uint32_t block);
  void release(std::size_t slot, std::uint32_t block);
  void copy_tail(std::size_t slot);
  void append(std::size_t slot, std::int32_t token);
  void add_to_index(std::size_t slot, std::uint32_t block, Serial parent);
  void remove_from_index(std::uint32_t block);
  bool find_full(Serial parent, std::span<const std::int32_t> tokens, std::uint32_t& block) const;
  std::size_t find_partial(Serial parent, std::span<const std::int32_t> tokens,
                           std::uint32_t& block) const;

  Options options_;
  std::size_t per_slot_;
  std::vector<Block> blocks_;
  std::vector<std::int32_t> tokens_;  // [blocks, block]
  std::vector<Slot> slots_;
  std::vector<std::int32_t> table_;
  std::vector<std::uint32_t> free_;  // taken from the end
  std::list<std::uint32_t> idle_;    // indexed and unused, the one to go first in front
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_content_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_beginning_;
  Serial next_serial_ = 1;
  std::vector<Copy> copies_;
  std::vector<std::size_t> touched_;
  std::vector<std::uint32_t> booked_;  // blocks that became full since the last commit
};

}  // namespace lockstep
