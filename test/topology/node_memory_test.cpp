// Buffers: zeroed, aligned, untouched until somebody touches them, and owned by exactly one object.
#include "topology/node_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "support/catch.h"

namespace {

using lockstep::topology::NodeBuffer;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t pages_of(std::size_t bytes) { return (bytes + page_bytes() - 1) / page_bytes(); }

// Pages of [data, data + bytes) that have memory behind them; -1 if the range is not mapped.
long resident_pages(const std::byte* data, std::size_t bytes) {
  std::vector<unsigned char> state(pages_of(bytes));
  if (mincore(const_cast<std::byte*>(data), bytes, state.data()) != 0) return -1;
  return std::count_if(state.begin(), state.end(), [](unsigned char s) { return (s & 1u) != 0; });
}

}  // namespace

TEST_CASE("buffers of awkward sizes are zero, writable and page-aligned") {
  const std::size_t huge = std::size_t{2} << 20;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, std::size_t{4097}, huge - 1,
                                  huge, huge + 1, 3 * huge + 12345}) {
    CAPTURE(bytes);
    const NodeBuffer buffer(bytes);
    CHECK(buffer.size() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % page_bytes() == 0);
    if (bytes >= huge) CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % huge == 0);
    CHECK(std::all_of(buffer.data(), buffer.data() + bytes,
                      [](std::byte b) { return b == std::byte{0}; }));
    std::fill(buffer.data(), buffer.data() + bytes, std::byte{0xa5});
    CHECK(buffer.data()[bytes - 1] == std::byte{0xa5});
  }
}

TEST_CASE("no page has memory before its owner touches it") {
  const std::size_t bytes = std::size_t{16} << 20;
  const NodeBuffer buffer(bytes);
  CHECK(resident_pages(buffer.data(), bytes) == 0);
  // One touch brings one page, or the one huge page around it, and nothing else.
  buffer.data()[bytes / 2] = std::byte{1};
  const long resident = resident_pages(buffer.data(), bytes);
  CHECK(resident >= 1);
  CHECK(resident <= static_cast<long>(pages_of(std::size_t{2} << 20)));
}

TEST_CASE("a buffer of no bytes is legal") {
  const NodeBuffer buffer(0);
  CHECK(buffer.data() == nullptr);
  CHECK(buffer.size() == 0);
}

TEST_CASE("what cannot be mapped throws bad_alloc") {
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_AS(NodeBuffer(most), std::bad_alloc);
  CHECK_THROWS_AS(NodeBuffer(most - (std::size_t{4} << 20)), std::bad_alloc);
  CHECK_THROWS_AS(NodeBuffer(most / 2), std::bad_alloc);
}

TEST_CASE("moving hands the memory over and leaves nothing behind") {
  NodeBuffer first(5000);
  std::byte* const data = first.data();
  data[4999] = std::byte{7};

  NodeBuffer second(std::move(first));
  CHECK(first.data() == nullptr);  // NOLINT(bugprone-use-after-move): that is what is tested
  CHECK(first.size() == 0);
  CHECK(second.data() == data);
  CHECK(second.size() == 5000);

  NodeBuffer third(10'000);
  const std::byte* const old = third.data();
  third = std::move(second);
  CHECK(second.data() == nullptr);  // NOLINT(bugprone-use-after-move)
  CHECK(third.data() == data);
  CHECK(third.data()[4999] == std::byte{7});
  CHECK(resident_pages(old, 10'000) == -1);

  NodeBuffer& alias = third;
  third = std::move(alias);
  CHECK(third.data() == data);
  CHECK(third.size() == 5000);
  CHECK(third.data()[4999] == std::byte{7});
}

TEST_CASE("the last owner unmaps everything") {
  const std::byte* small = nullptr;
  const std::byte* large = nullptr;
  const std::size_t large_bytes = (std::size_t{5} << 20) + 1;
  {
    const NodeBuffer one(4097);
    const NodeBuffer two(large_bytes);
    small = one.data();
    large = two.data();
    CHECK(resident_pages(small, 4097) >= 0);
    CHECK(resident_pages(large, large_bytes) >= 0);
  }
  CHECK(resident_pages(small, 4097) == -1);
  CHECK(resident_pages(large, std::size_t{6} << 20) == -1);
}
