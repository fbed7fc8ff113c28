// Jobs for the tests of `lockstep batch` and `lockstep merge`: requests, runs in a folder, and what
// must hold of every output in the end.
#pragma once

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/cli/process.h"

namespace lockstep::test {

// Requests with ids r0, r1, ... for the embedded model; answers of 1 to `tokens` tokens, some of
// them drawn at random.
inline std::string requests(std::size_t count, std::size_t tokens = 12) {
  const std::vector<std::string> openings = {"Once upon a time", "There was once", "A fox",
                                             "The old pony and the badger went"};
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += R"({"id":"r)" + std::to_string(i) + R"(","prompt":")" + openings[i % 4] +
            R"(","max_tokens":)" + std::to_string(1 + i * 7 % tokens) +
            (i % 3 == 0 ? R"(,"temperature":1)" : "") + "}\n";
  }
  return text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Every row is JSON on a line of its own, and no line of the input has two.
inline void check_rows(const std::string& bytes) {
  CHECK((bytes.empty() || bytes.back() == '\n'));
  std::set<std::size_t> seen;
  for (const std::string& line : lines_of(bytes)) {
    CHECK(seen.insert(nlohmann::json::parse(line).at("line").get<std::size_t>()).second);
  }
}

inline bool mentions(const Outcome& outcome, const std::string& text) {
  return outcome.err.find(text) != std::string::npos;
}

// A folder with an input. Runs end in its output unless they say otherwise.
struct BatchFolder {
  TempDir dir;
  std::filesystem::path input, output = dir.path() / "out.jsonl";

  explicit BatchFolder(const std::string& lines, const std::string& name = "in.jsonl")
      : input(dir.write(name, lines)) {}

  std::vector<std::string> arguments(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> all = {"batch", "-i", input.string(), "-o", output.string()};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  Outcome run(const std::vector<std::string>& options = {}, Invocation how = {}) const {
    how.arguments = arguments(options);
    Outcome outcome = test::run(how);
    CHECK_FALSE(outcome.timed_out);
    return outcome;
  }
  std::string rows() const { return TempDir::read(output); }
  std::size_t bytes() const {
    std::error_code error;
    const auto size = std::filesystem::file_size(output, error);
    return error ? 0 : static_cast<std::size_t>(size);
  }
  // The rows that an undisturbed run writes.
  std::vector<std::string> undisturbed(const std::vector<std::string>& options = {}) const {
    BatchFolder calm(TempDir::read(input), input.filename().string());
    const Outcome outcome = calm.run(options);
    INFO(outcome.err);
    CHECK((outcome.code == 0 || outcome.code == 1));
    return sorted_lines(calm.rows());
  }
};

}  // namespace lockstep::test
