// Where pages really are: the kernel is asked, nothing is assumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace lockstep::topology {

struct Residency {
  std::map<unsigned, std::uint64_t> bytes_on;  // by node (OS index), whole pages
  std::uint64_t untouched = 0;                 // bytes that have no page yet
  std::string unknown;                         // why the kernel did not tell; "" if it did

  std::uint64_t on(unsigned node) const {
    const auto found = bytes_on.find(node);
    return found == bytes_on.end() ? 0 : found->second;
  }
};

// The pages that begin in [data, data + bytes).
Residency residency_of(const std::byte* data, std::size_t bytes);

// Bytes of these ranges, which do not overlap, in huge pages, at most: of a mapping that lies
// partly outside, the huge pages may, too. 0 where the system does not tell. `smaps` is
// /proc/self/smaps, which the kernel walks all pages of the process for: asked once for all.
std::uint64_t huge_page_bytes(std::span<const std::span<const std::byte>> ranges,
                              const std::filesystem::path& smaps = "/proc/self/smaps");

}  // namespace lockstep::topology
