// split(): the slices of a team tile the rows, in order, at aligned edges, evenly.
#include "ops/split.h"

#include "support/catch.h"

using lockstep::ops::Lane;
using lockstep::ops::Slice;
using lockstep::ops::split;

TEST_CASE("slices cover all rows in order, at aligned edges, evenly", "[split]") {
  for (const std::size_t rows : {0, 1, 2, 7, 8, 9, 31, 32, 33, 100, 257, 4096}) {
    for (const std::size_t align : {1, 2, 7, 8, 24, 64}) {
      const std::size_t units = (rows + align - 1) / align;
      for (unsigned workers = 1; workers <= 13; ++workers) {
        std::size_t end = 0;
        for (unsigned worker = 0; worker < workers; ++worker) {
          const Slice slice = split(rows, align, {worker, workers, 0, 1});
          CAPTURE(rows, align, workers, worker);
          REQUIRE(slice.begin == end);
          REQUIRE(slice.end >= slice.begin);
          REQUIRE((slice.begin % align == 0 || slice.begin == rows));
          const std::size_t mine = (slice.size() + align - 1) / align;
          REQUIRE(mine >= units / workers);
          REQUIRE(mine <= (units + workers - 1) / workers);
          end = slice.end;
        }
        REQUIRE(end == rows);
      }
    }
  }
}

TEST_CASE("the remainder is spread, not heaped on the first workers", "[split]") {
  // 10 units for 4 workers: 2 3 2 3.
  CHECK(split(10, 1, {0, 4, 0, 1}) == Slice{0, 2});
  CHECK(split(10, 1, {1, 4, 0, 1}) == Slice{2, 5});
  CHECK(split(10, 1, {2, 4, 0, 1}) == Slice{5, 7});
  CHECK(split(10, 1, {3, 4, 0, 1}) == Slice{7, 10});
}

TEST_CASE("the split does not depend on the node", "[split]") {
  CHECK(split(100, 8, {1, 2, 0, 1}) == split(100, 8, {1, 2, 1, 2}));
}

TEST_CASE("huge row counts do not overflow", "[split]") {
  const std::size_t rows = std::size_t{1} << 60;
  CHECK(split(rows, 1, {255, 256, 0, 1}).end == rows);
  CHECK(split(rows, 1, {128, 256, 0, 1}).begin == rows / 2);
}
