// The input as lines of requests: which lines count, and what each format makes of one.
#include "runtime/batch/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lockstep/error.h"
#include "runtime/utf8.h"

namespace lockstep::batch {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

std::string_view name_of(InputFormat format) noexcept {
  return format == InputFormat::text ? "text" : "jsonl";
}

InputFormat format_named(std::string_view name, const std::filesystem::path& path) {
  const bool is_text = name == "auto" ? path.extension() == ".txt" : name == "text";
  return is_text ? InputFormat::text : InputFormat::jsonl;
}

InputFile::InputFile(const std::filesystem::path& path, InputFormat format)
    : path_(path),
      format_(format),
      // O_NONBLOCK: a named pipe without a writer must be refused, not waited for.
      file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_.is_open()) {
    throw Error(ErrorCode::no_input,
                fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  }
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::no_input,
                fmt::format("{}: not a regular file (the input is read twice)", path.string()));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  reader_.emplace(file_.get(), size_, kMaxLine, path);
}

bool InputFile::next(InputLine& line) {
  while (reader_->next(line)) {
    if (line.number == 1 && line.text.starts_with(kByteOrderMark))
      line.text.erase(0, kByteOrderMark.size());
    if (line.too_long) return true;
    if (!line.text.empty() && line.text.back() == '\r') line.text.pop_back();
    if (!is_blank(line.text)) return true;
  }
  return false;
}

bool InputFile::line_ends_at(std::uint64_t bytes) const {
  if (bytes == 0 || bytes >= size_) return true;
  char around[3] = {};  // the last byte of the prefix and what follows
  const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(3, size_ - (bytes - 1)));
  if (::pread(file_.get(), around, want, static_cast<off_t>(bytes - 1)) < 0) return false;
  return around[0] == '\n' || around[1] == '\n' || (around[1] == '\r' && around[2] == '\n');
}

ParsedLine parse_line(const InputLine& line, InputFormat format, const RequestDefaults& defaults,
                      RowFormat fallback) {
  const auto refuse = [&](const char* code, std::string message) {
    return RequestError{{line.number, fallback, "null"}, 400, code, std::move(message)};
  };
  if (line.too_long) {
    return refuse("line_too_long",
                  fmt::format("the line is longer than {} MiB", InputFile::kMaxLine >> 20));
  }
  if (format == InputFormat::jsonl)
    return parse_request(line.text, line.number, defaults, fallback);
  if (const std::size_t valid = valid_utf8_prefix(line.text); valid < line.text.size()) {
    return refuse("invalid_request",
                  fmt::format("not valid UTF-8 at byte {} of the line", valid + 1));
  }
  // By way of JSON, so that a prompt means the same in both formats.
  nlohmann::json request;
  request["prompt"] = line.text;
  return parse_request(request.dump(), line.number, defaults, fallback);
}

LineIdentity identify_line(const InputLine& line, InputFormat format) {
  if (format == InputFormat::jsonl) return identify_line(line.text);
  LineIdentity identity;
  identity.is_object = true;
  return identity;
}

std::uint64_t LineIds::hash(std::string_view id) noexcept {
  const std::uint64_t value = std::hash<std::string_view>{}(id);
  return value == 0 ? 1 : value;
}

void LineIds::add(std::size_t line, std::string_view id) {
  hashes_.resize(line + 1, 0);
  hashes_[line] = hash(id.empty() ? "null" : id);
}

bool LineIds::matches(std::size_t line, std::string_view id) const noexcept {
  return has_line(line) && hashes_[line] == hash(id);
}

}  // namespace lockstep::batch
