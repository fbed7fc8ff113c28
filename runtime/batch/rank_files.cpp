// See rank_files.h. A folder is looked through: ranks of earlier runs may be more than there are
// now, and of a run that was killed some may have no file.
#include "runtime/batch/rank_files.h"

#include <map>
#include <optional>
#include <string>
#include <system_error>

#include "topology/launcher.h"

namespace lockstep::batch {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMark = ".rank-";

fs::path marked(const fs::path& path, const std::string& rank) {
  return path.parent_path() / (path.stem().string() + kMark + rank + path.extension().string());
}

// The rank in a name of the form that rank_file() makes.
std::optional<unsigned> rank_in(const std::string& name, const fs::path& path) {
  const std::string front = path.stem().string() + kMark;
  const std::string back = path.extension().string();
  if (name.size() <= front.size() + back.size()) return std::nullopt;
  if (!name.starts_with(front) || !name.ends_with(back)) return std::nullopt;
  const std::string number = name.substr(front.size(), name.size() - front.size() - back.size());
  const std::optional<unsigned> rank = topology::parse_count(number.c_str());
  // "007" is not ours.
  return rank && std::to_string(*rank) == number ? rank : std::nullopt;
}

}  // namespace

fs::path rank_file(const fs::path& path, unsigned rank) {
  return marked(path, std::to_string(rank));
}

std::string rank_files_pattern(const fs::path& path) { return marked(path, "*").string(); }

std::vector<fs::path> find_rank_files(const fs::path& path) {
  std::map<unsigned, fs::path> found;
  const fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (const auto rank = rank_in(it->path().filename().string(), path)) {
      found[*rank] = rank_file(path, *rank);
    }
  }
  std::vector<fs::path> files;
  for (auto& [rank, file] : found) files.push_back(std::move(file));
  return files;
}

}  // namespace lockstep::batch
