// Rows are taken apart without building a document: a resumed job reads all of its output first.
#include "runtime/batch/row_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lockstep/error.h"

namespace lockstep::batch {

using nlohmann::json;

namespace {

constexpr std::size_t kBlock = 4096;

// Looks at the fields of the outermost object and skips what is in them.
class HeadReader final : public json::json_sax_t {
 public:
  bool null() override { return field("null", true); }
  bool boolean(bool) override { return field("", false); }
  bool number_integer(number_integer_t value) override {
    return field(std::to_string(value), false);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 1 && key_ == "line") line_ = static_cast<std::size_t>(value);
    return field(std::to_string(value), false);
  }
  bool number_float(number_float_t, const string_t&) override { return field("", false); }
  bool string(string_t& value) override {
    const bool is_id = depth_ == 1 && (key_ == "id" || key_ == "custom_id");
    return field(is_id ? json(value).dump() : "", false);
  }
  bool binary(binary_t&) override { return field("", false); }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object_ = true;
    return open();
  }
  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name;
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

  ParsedRow result() const {
    if (!is_object_) return "it is no JSON object";
    if (line_ == 0) return "it has no line number";
    const std::string& id = custom_id_.empty() ? id_ : custom_id_;
    if (id.empty()) return "it has no id";
    if (!has_answer_ && !has_error_) return "it has neither an answer nor an error";
    return RowHead{line_, id, has_error_};
  }

 private:
  // A value of the field key_; `text`: what an id is compared by.
  bool field(std::string text, bool is_null) {
    if (depth_ != 1) return true;
    if (key_ == "id") id_ = std::move(text);
    if (key_ == "custom_id") custom_id_ = std::move(text);
    if (key_ == "text" || key_ == "response") has_answer_ = true;
    if (key_ == "error") has_error_ = !is_null;
    return true;
  }
  bool open() {
    if (depth_ == 1) field("", false);
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::size_t depth_ = 0;
  std::string key_, id_, custom_id_;
  std::size_t line_ = 0;
  bool is_object_ = false, has_answer_ = false, has_error_ = false;
};

// pread of all of it; fewer bytes at the end of the file.
std::size_t read_at(int descriptor, std::uint64_t offset, char* into, std::size_t count,
                    const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(descriptor, into + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(ErrorCode::io,
                  fmt::format("{}: cannot read: {}", path.string(), std::strerror(errno)));
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

ParsedRow parse_row(std::string_view text) {
  HeadReader reader;
  if (!json::sax_parse(text.begin(), text.end(), &reader)) return "it is not valid JSON";
  return reader.result();
}

RowFile::RowFile(const std::filesystem::path& path)
    : path_(path), owned_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  descriptor_ = owned_.get();
  if (!owned_.is_open()) {
    throw Error(ErrorCode::no_input,
                fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  }
  measure();
}

RowFile::RowFile(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {
  measure();
}

void RowFile::measure() {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::no_input, fmt::format("{}: not a regular file", path_.string()));
  }
  bytes_ = file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  std::vector<char> block(kBlock);
  while (bytes_ > 0) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes_, block.size()));
    if (read_at(descriptor_, bytes_ - count, block.data(), count, path_) != count) break;
    std::size_t used = count;
    while (used > 0 && block[used - 1] == '\0') --used;
    bytes_ -= count - used;
    if (used > 0) break;
  }
}

bool RowFile::is_torn(const Line& line) const {
  if (!line.ended)
    return line.too_long || std::holds_alternative<std::string>(parse_row(line.text));
  const bool is_last = line.offset + line.text.size() + 1 == bytes_;
  return is_last && line.text.find('\0') != std::string::npos;
}

std::string RowFile::row_at(std::uint64_t offset) const {
  std::string row;
  for (std::size_t step = kBlock;; step *= 2) {
    const std::size_t before = row.size();
    const std::uint64_t left = bytes_ - offset - before;
    row.resize(before + static_cast<std::size_t>(std::min<std::uint64_t>(step, left)));
    row.resize(before + read_at(descriptor_, offset + before, row.data() + before,
                                row.size() - before, path_));
    const std::size_t newline = row.find('\n', before);
    if (newline != std::string::npos) {
      row.resize(newline + 1);
      return row;
    }
    if (row.size() == before) return row + "\n";
  }
}

bool RowFile::is_locked_by_another() const { return batch::is_locked_by_another(descriptor_); }

}  // namespace lockstep::batch
