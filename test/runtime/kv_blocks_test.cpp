// The book-keeping of the paged cache, against a model that is too simple to be wrong: every slot
// has a list of tokens, every block a list of cells that are written and copied as they would be.
#include "runtime/kv_blocks.h"

#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "support/catch.h"

using namespace lockstep;

namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::size_t kBlock = 8;

// Evaluates what was booked and compares all slots with what they should hold.
class Harness {
 public:
  Harness(std::size_t slots, std::size_t context, std::size_t count, bool share = true)
      : blocks({slots, context, count, kBlock, share}),
        expected(slots),
        cells_(count * kBlock, -1) {}

  bool reserve(std::size_t slot, const Tokens& tokens) {
    if (!blocks.reserve(slot, tokens)) return false;
    expected[slot].insert(expected[slot].end(), tokens.begin(), tokens.end());
    return true;
  }

  std::size_t adopt(std::size_t slot, const Tokens& tokens) {
    const std::size_t count = blocks.adopt(slot, tokens);
    expected[slot].assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  void truncate(std::size_t slot, std::size_t length) {
    blocks.truncate(slot, length);
    expected[slot].resize(length);
  }

  void copy() {
    for (const KvBlocks::Copy& copy : blocks.take_copies()) {
      ++copies;
      for (std::size_t i = 0; i < copy.positions; ++i) {
        cells_[copy.to * kBlock + i] = cells_[copy.from * kBlock + i];
      }
    }
  }

  void step() {
    copy();
    for (const std::size_t slot : blocks.touched()) {
      for (std::size_t i = blocks.evaluated(slot); i < blocks.length(slot); ++i) {
        cells_[cell(slot, i)] = blocks.token(slot, i);
      }
    }
    blocks.commit();
    check();
  }

  void check() const {
    std::size_t in_use = 0;
    std::set<std::int32_t> used;
    for (std::size_t slot = 0; slot < expected.size(); ++slot) {
      REQUIRE(blocks.length(slot) == expected[slot].size());
      for (std::size_t i = 0; i < expected[slot].size(); ++i) {
        REQUIRE(cells_[cell(slot, i)] == expected[slot][i]);
        used.insert(blocks.table()[slot * blocks.blocks_per_slot() + i / kBlock]);
      }
    }
    in_use = used.size();
    REQUIRE(blocks.available() + in_use == blocks.options().blocks);
    REQUIRE(blocks.idle() <= blocks.available());
  }

  KvBlocks blocks;
  std::vector<Tokens> expected;  // by slot
  std::size_t copies = 0;        // made so far

 private:
  std::size_t cell(std::size_t slot, std::size_t position) const {
    const std::size_t at = slot * blocks.blocks_per_slot() + position / kBlock;
    return static_cast<std::size_t>(blocks.table()[at]) * kBlock + position % kBlock;
  }

  std::vector<std::int32_t> cells_;
};

Tokens run_of(std::int32_t first, std::size_t count) {
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(first + static_cast<std::int32_t>(i));
  return tokens;
}

}  // namespace

TEST_CASE("a slot gets blocks as it grows and gives them back") {
  Harness cache(2, 20, 5, false);
  CHECK(cache.blocks.blocks_per_slot() == 3);
  CHECK(cache.blocks.room(0) == 20);
  REQUIRE(cache.reserve(0, run_of(0, 9)));
  CHECK(cache.blocks.available() == 3);
  CHECK(cache.blocks.room(0) == 11);
  REQUIRE(cache.reserve(1, run_of(50, 20)));
  CHECK(cache.blocks.available() == 0);
  CHECK(cache.blocks.room(0) == 7);
  CHECK_FALSE(cache.reserve(0, run_of(9, 8)));
  CHECK(cache.blocks.length(0) == 9);
  REQUIRE(cache.reserve(0, run_of(9, 7)));
  cache.step();
  cache.truncate(1, 8);
  CHECK(cache.blocks.available() == 2);
  cache.truncate(1, 0);
  CHECK(cache.adopt(1, run_of(0, 9)) == 0);  // nothing is kept
}

TEST_CASE("what a slot had is found again, block by block and in part") {
  Harness cache(3, 64, 20);
  REQUIRE(cache.reserve(0, run_of(0, 30)));
  cache.step();
  // Even while the first slot lives: three whole blocks, then as far as a full one goes.
  Tokens other = run_of(0, 20);
  other.push_back(99);
  CHECK(cache.adopt(1, other) == 20);
  cache.copy();
  CHECK(cache.copies == 0);
  REQUIRE(cache.reserve(1, {99}));
  cache.step();
  CHECK(cache.copies == 1);  // the third block is shared and full
  cache.truncate(0, 0);
  CHECK(cache.blocks.idle() == 1);  // the third; the fourth was not full, two are in use
  CHECK(cache.adopt(2, run_of(0, 25)) == 24);
  REQUIRE(cache.reserve(2, {24}));
  cache.step();
  // Never all of it: something has to give logits.
  CHECK(cache.adopt(0, run_of(0, 24)) == 23);
  REQUIRE(cache.reserve(0, {23}));
  cache.step();
  // Nothing in common, and a beginning too short to be worth a copy.
  cache.truncate(0, 0);
  CHECK(cache.adopt(0, run_of(1, 30)) == 0);
  CHECK(cache.adopt(0, {0, 1, 2, 7, 7, 7, 7, 7, 7}) == 0);
  CHECK(cache.adopt(0, {0, 1, 2, 3, 7, 7, 7, 7, 7}) == 4);
}

TEST_CASE("a block is shared within the step that computes it") {
  Harness cache(3, 64, 20);
  REQUIRE(cache.reserve(0, run_of(0, 19)));
  Tokens other = run_of(0, 12);
  other.push_back(77);
  CHECK(cache.adopt(1, other) == 8);  // in part only what has been computed already
  REQUIRE(cache.reserve(1, {8, 9, 10, 11, 77}));
  CHECK(cache.adopt(2, run_of(0, 40)) == 16);
  REQUIRE(cache.reserve(2, {16, 17}));
  CHECK(cache.blocks.available() == 20 - 3 - 1 - 1);
  cache.step();
}

TEST_CASE("a cancelled step is undone") {
  Harness cache(3, 64, 20);
  REQUIRE(cache.reserve(0, run_of(0, 12)));
  cache.step();
  REQUIRE(cache.reserve(0, run_of(12, 9)));
  CHECK(cache.adopt(1, run_of(0, 17)) == 16);
  REQUIRE(cache.reserve(1, {16}));
  CHECK(cache.adopt(2, run_of(0, 11)) == 8);
  REQUIRE(cache.reserve(2, {50}));
  cache.blocks.rollback();
  cache.expected = {run_of(0, 12), {}, {}};
  cache.copy();
  cache.check();
  // The second block was never computed: nobody may find it.
  CHECK(cache.adopt(1, run_of(0, 30)) == 8);
}

TEST_CASE("a block that another slot adopted in this step cannot be forgotten") {
  Harness cache(2, 64, 20);
  REQUIRE(cache.reserve(0, run_of(0, 10)));
  CHECK(cache.adopt(1, run_of(0, 20)) == 8);
  CHECK_THROWS_AS(cache.blocks.truncate(0, 0), std::logic_error);
  cache.truncate(1, 0);  // but the other may think better of it
  CHECK(cache.adopt(1, run_of(0, 20)) == 8);
  CHECK_THROWS_AS(cache.blocks.adopt(1, run_of(0, 20)), std::logic_error);
  CHECK_THROWS_AS(cache.blocks.reserve(0, run_of(0, 60)), std::logic_error);
  CHECK_THROWS_AS(cache.blocks.truncate(0, 11), std::logic_error);
}

TEST_CASE("what was unused for longest goes first, the end of a sequence before its beginning") {
  Harness cache(2, 32, 6);
  REQUIRE(cache.reserve(0, run_of(0, 24)));
  cache.step();
  cache.truncate(0, 0);
  REQUIRE(cache.reserve(1, run_of(100, 16)));
  cache.step();
  cache.truncate(1, 0);
  CHECK(cache.blocks.idle() == 5);
  REQUIRE(cache.reserve(0, run_of(200, 16)));  // one free block, and one of the first sequence
  cache.step();
  CHECK(cache.adopt(1, run_of(0, 30)) == 16);
  cache.truncate(1, 0);
  REQUIRE(cache.reserve(1, run_of(300, 24)));  // takes the second sequence, and then the first
  cache.step();
  cache.truncate(1, 0);
  CHECK(cache.adopt(1, run_of(100, 20)) == 0);
  CHECK(cache.adopt(1, run_of(0, 30)) == 8);
}

TEST_CASE("thousands of steps with every operation leave every slot with its own tokens") {
  const auto seed = GENERATE(as<std::uint32_t>{}, 1, 2, 3, 4);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  constexpr std::size_t kSlots = 5, kContext = 50;
  Harness cache(kSlots, kContext, 18);
  // Few texts over few tokens, so that much is shared.
  std::vector<Tokens> texts(6);
  for (Tokens& text : texts) {
    for (std::size_t i = 0; i < kContext; ++i) {
      text.push_back(i < 20 ? static_cast<std::int32_t>(i % 3)
                            : static_cast<std::int32_t>(below(2)));
    }
  }
  std::size_t adopted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<Tokens> before = cache.expected;
    // Truncations come first: what was booked in this step may have been adopted.
    const std::size_t slot = below(kSlots);
    if (below(3) == 0) {
      cache.truncate(slot, below(2) == 0 ? 0 : below(cache.expected[slot].size() + 1));
      before[slot] = cache.expected[slot];
    }
    for (std::size_t i = 0; i < kSlots; ++i) {
      const Tokens& text = texts[below(texts.size())];
      if (cache.expected[i].empty() && below(2) == 0) adopted += cache.adopt(i, text);
      const std::size_t length = cache.expected[i].size();
      if (length == kContext || (length > 0 && below(3) == 0 && cache.blocks.evaluated(i) == 0)) {
        continue;
      }
      Tokens more(text.begin() + static_cast<std::ptrdiff_t>(length), text.end());
      more.resize(1 + below(more.size()));
      const std::size_t room = cache.blocks.room(i);
      const bool fits = cache.reserve(i, more);
      REQUIRE(fits == (more.size() <= room));
      refused += fits ? 0 : 1;
    }
    if (below(10) == 0) {
      cache.blocks.rollback();
      cache.expected = before;
      cache.copy();
      cache.check();
    } else {
      cache.step();
    }
  }
  CHECK(adopted > 1000);
  CHECK(cache.copies > 100);
  CHECK(refused > 100);
}
