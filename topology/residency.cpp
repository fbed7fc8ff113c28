// move_pages(2) without targets moves nothing and reports the node of every page.
#include "topology/residency.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace lockstep::topology {
namespace {

constexpr std::size_t kPagesPerCall = 16384;

bool ask(std::vector<void*>& pages, std::vector<int>& nodes) {
#ifdef SYS_move_pages
  return syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) == 0;
#else
  static_cast<void>(pages), static_cast<void>(nodes);
  errno = ENOSYS;
  return false;
#endif
}

std::uint64_t number(std::string_view text, int base) {
  std::uint64_t value = 0;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

}  // namespace

Residency residency_of(const std::byte* data, std::size_t bytes) {
  Residency residency;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes + page - 1) / page;
  std::vector<void*> pages;
  std::vector<int> nodes;
  for (std::uintptr_t at = begin; at < end; at += pages.size()) {
    pages.clear();
    for (std::uintptr_t i = at; i < std::min(end, at + kPagesPerCall); ++i) {
      pages.push_back(reinterpret_cast<void*>(i * page));
    }
    nodes.assign(pages.size(), -ENOENT);
    if (!ask(pages, nodes)) {
      residency.unknown = std::strerror(errno);
      return residency;
    }
    for (const int node : nodes) {
      if (node >= 0) {
        residency.bytes_on[static_cast<unsigned>(node)] += page;
      } else {
        residency.untouched += page;
      }
    }
  }
  return residency;
}

std::uint64_t huge_page_bytes(std::span<const std::span<const std::byte>> ranges,
                              const std::filesystem::path& smaps) {
  std::uint64_t found = 0;
  std::uint64_t overlap = 0;  // of the mapping that is being described with all ranges
  std::ifstream file(smaps);
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = line;
    const std::size_t dash = text.find('-');
    const std::size_t colon = text.find(':');
    if (dash != text.npos && dash < text.find(' ')) {  // "7f00-7f80 rw-p ..."
      const std::uint64_t begin = number(text.substr(0, dash), 16);
      const std::uint64_t end = number(text.substr(dash + 1), 16);
      overlap = 0;
      for (const std::span<const std::byte> range : ranges) {
        const auto first = reinterpret_cast<std::uintptr_t>(range.data());
        const std::uint64_t low = std::max<std::uint64_t>(begin, first);
        const std::uint64_t high = std::min<std::uint64_t>(end, first + range.size());
        if (low < high) overlap += high - low;
      }
    } else if (overlap != 0 && text.substr(0, colon) == "AnonHugePages") {
      found += std::min(overlap, number(text.substr(colon + 1), 10) * 1024);
    }
  }
  return found;
}

}  // namespace lockstep::topology
