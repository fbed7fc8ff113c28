// Finding the optional data set beside the checkout (models, golden values, vocabularies). A test
// that needs it says SKIPPED when it is not there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::test {

// ../shared beside the source tree, or the folder that LOCKSTEP_SHARED names; empty if there is
// none.
inline std::filesystem::path shared_dir() {
  std::filesystem::path dir = std::filesystem::path(LOCKSTEP_SOURCE_DIR).parent_path() / "shared";
  if (const char* named = std::getenv("LOCKSTEP_SHARED")) dir = named;
  return std::filesystem::is_directory(dir) ? dir : std::filesystem::path{};
}

}  // namespace lockstep::test

// Leaves the test case with a visible notice when FILE (relative to the data set) is missing; else
// defines PATH.
#define LOCKSTEP_SHARED_OR_SKIP(PATH, FILE)                                     \
  const std::filesystem::path PATH = lockstep::test::shared_dir() / (FILE);     \
  if (lockstep::test::shared_dir().empty() || !std::filesystem::exists(PATH)) { \
    WARN("SKIPPED: no " << (FILE) << " in the shared data set");                \
    return;                                                                     \
  }
