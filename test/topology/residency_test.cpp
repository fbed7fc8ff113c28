// Asking the kernel where pages are. That it is right about nodes shows in the NUMA guests; here is
// what every machine can tell.
#include "topology/residency.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <span>

#include "support/catch.h"
#include "topology/described_machine.h"
#include "topology/memory_policy.h"
#include "topology/node_memory.h"

using namespace lockstep::topology;

TEST_CASE("pages are counted when they are touched") {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const NodeBuffer buffer(kBytes, false);
  const Residency before = residency_of(buffer.data(), kBytes);
  if (!before.unknown.empty()) {
    WARN("SKIPPED: the system does not tell: " << before.unknown);
    return;
  }
  CHECK(before.untouched == kBytes);
  CHECK(before.bytes_on.empty());
  std::fill(buffer.data(), buffer.data() + kBytes / 2, std::byte{1});
  const Residency after = residency_of(buffer.data(), kBytes);
  std::uint64_t touched = 0;
  for (const auto& [node, bytes] : after.bytes_on) touched += bytes;
  CHECK(touched == kBytes / 2);
  CHECK(after.untouched == kBytes / 2);
  CHECK(after.on(after.bytes_on.begin()->first) > 0);
  CHECK(after.on(1023) == 0);
  // A page belongs to the range that it begins in.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  CHECK(residency_of(buffer.data() + 1, page).bytes_on.begin()->second == page);
  CHECK(residency_of(buffer.data(), 0).untouched == 0);
}

TEST_CASE("huge pages are read from the description of the mappings") {
  const auto file = lockstep::test::scratch_dir("smaps") / "smaps";
  std::ofstream(file) << "1000-201000 rw-p 00000000 00:00 0 \n"
                         "Rss:                2048 kB\n"
                         "AnonHugePages:      1024 kB\n"
                         "VmFlags: rd wr\n"
                         "300000-700000 rw-p 00000000 00:00 0 [heap]\n"
                         "AnonHugePages:      4096 kB\n"
                         "800000-900000 r--p 00000000 08:01 77 /usr/lib/a-b.so\n"
                         "AnonHugePages:      1024 kB\n";
  const auto bytes = [&](std::uintptr_t begin, std::uintptr_t end) {
    const std::span<const std::byte> range(reinterpret_cast<const std::byte*>(begin), end - begin);
    return huge_page_bytes({&range, 1}, file);
  };
  CHECK(bytes(0x1000, 0x201000) == 1024 * 1024);
  CHECK(bytes(0x300000, 0x500000) == 2 * 1024 * 1024);  // at most what lies in the range
  CHECK(bytes(0x1000, 0x700000) == 5 * 1024 * 1024);
  CHECK(bytes(0x900000, 0xa00000) == 0);
  const std::span<const std::byte> pieces[] = {
      {reinterpret_cast<const std::byte*>(0x1000), 0x1000},
      {reinterpret_cast<const std::byte*>(0x300000), 0x1000},
      {reinterpret_cast<const std::byte*>(0x400000), 0x1000}};
  CHECK(huge_page_bytes(pieces, file) == 3 * 0x1000);
  CHECK(huge_page_bytes(pieces, file.parent_path() / "missing") == 0);
}

TEST_CASE("placing pages is refused or works, and never harms the memory") {
  const NodeBuffer buffer(std::size_t{1} << 20, false);
  const Machine machine = Machine::detect();
  const unsigned node = machine.nodes.front().os_index;
  if (memory_policy_refusal().empty()) {
    CHECK(prefer_node(buffer.data(), buffer.size(), node));
    CHECK(interleave_nodes(buffer.data(), buffer.size(), {&node, 1}));
  } else {
    CHECK(memory_policy_refusal().find("not ") == 0);
  }
  CHECK_FALSE(prefer_node(buffer.data(), buffer.size(), 5000));
  CHECK(prefer_node(buffer.data() + 1, 10, node));  // no whole page: nothing to do
  std::fill(buffer.data(), buffer.data() + buffer.size(), std::byte{3});
  CHECK(buffer.data()[buffer.size() - 1] == std::byte{3});
}
