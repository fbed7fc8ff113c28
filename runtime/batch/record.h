// The record of a job: a small JSON file beside the output, OUT.job, that says what its rows were
// made from. A resumed job, and a merge of several, compare it with theirs: rows of two models in
// one file would look right and be worthless. The instruction set, threads and slots are not in it:
// rows are the same bytes on all.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep::batch {

// A file's size and a hash of its bytes, 16 hexadecimal digits.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::string hash;
  bool operator==(const FileStamp&) const = default;
};

struct JobRecord {
  FileStamp input;
  std::uint64_t input_lines = 0;  // that are not blank
  FileStamp model;                // of its header and of samples over its data
  std::string part;               // which part of the input a shard answers; "" if all of it
  // Everything else that can change a row: name -> JSON text of the value.
  std::map<std::string, std::string> options;

  bool operator==(const JobRecord&) const = default;
  void set(const std::string& name, std::string_view text);
  template <typename T>
  requires std::is_arithmetic_v<T>
  void set(const std::string& name, T value) {
    set_json(name, fmt::format("{}", value));  // the shortest text that reads back the same
  }

 private:
  void set_json(const std::string& name, const std::string& text);
};

// One thing that differs: "temperature", "0.7", "0.8".
struct Change {
  std::string name, then, now;
};

// What differs but for the input. `partial`: `now` need not have all options yet; those that it
// lacks are not compared. `parts`: compare the parts as well.
struct Comparison {
  bool partial = false;
  bool parts = true;
};
std::vector<Change> changes(const JobRecord& then, const JobRecord& now, Comparison how);

// "temperature was 0.7, now 0.8; max_tokens was 20, now 40"
std::string describe(const std::vector<Change>& list);

// The record's file of an output.
std::filesystem::path record_path(const std::filesystem::path& output);
// Nothing if there is none. Throws Error(bad_input) for a file that is no record or of a later
// version, Error(io).
std::optional<JobRecord> read_record(const std::filesystem::path& output);
// Replaces an older one; killed half-way, that stays. Throws Error(io) or Error(cannot_create).
void write_record(const std::filesystem::path& output, const JobRecord& record);

// Takes the first 16 MiB and 256 samples of 4 KiB: a file of any size in a moment, while another
// quantization, another training run or a damaged header shows. Nothing in it for a file that
// cannot be read: loading it tells why.
FileStamp stamp_model(const std::filesystem::path& path);

// 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace lockstep::batch
