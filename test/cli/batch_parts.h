// Jobs that several processes share, for the tests of shards and ranks: the parts that they leave,
// and what must hold of all of them together.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/batch/rank_files.h"
#include "test/cli/batch_jobs.h"

namespace lockstep::test {

struct SharedJob : BatchFolder {
  using BatchFolder::BatchFolder;

  std::filesystem::path part(unsigned rank) const { return batch::rank_file(output, rank); }
  std::string part_rows(unsigned rank) const { return TempDir::read(part(rank)); }
  std::size_t part_bytes(unsigned rank) const {
    std::error_code error;
    const auto size = std::filesystem::file_size(part(rank), error);
    return error ? 0 : static_cast<std::size_t>(size);
  }

  // Rows of all parts, and of the output without a rank, if there is one.
  std::string all_rows() const {
    std::string all = TempDir::read(output);
    for (const auto& file : batch::find_rank_files(output)) all += TempDir::read(file);
    return all;
  }
  // Every line has exactly one row, and that of an undisturbed run. A torn last row of a part that
  // nobody went on with is none.
  void check_complete(const std::vector<std::string>& expected) const {
    CHECK(sorted_lines(all_rows()) == expected);
  }

  // Makes a part as a crash leaves it: the first `rows` rows and `torn` bytes of the next.
  void cut_part(unsigned rank, std::size_t rows, std::size_t torn) const {
    const std::vector<std::string> lines = lines_of(part_rows(rank));
    REQUIRE(lines.size() > rows);
    REQUIRE(lines[rows].size() > torn);
    std::string kept;
    for (std::size_t i = 0; i < rows; ++i) kept += lines[i] + "\n";
    std::ofstream(part(rank), std::ios::binary) << kept + lines[rows].substr(0, torn);
  }

  Outcome merge(const std::string& merged) const {
    std::vector<std::string> words = {"merge", "-i", input.string(), "-o", merged};
    for (const auto& file : batch::find_rank_files(output)) words.push_back(file.string());
    return test::run(words);
  }
};

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace lockstep::test
