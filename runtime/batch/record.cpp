// See record.h.
#include "runtime/batch/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "lockstep/error.h"
#include "runtime/batch/file_lock.h"
#include "runtime/batch/replacement.h"
#include "runtime/fingerprint.h"
#include "runtime/printable.h"

namespace lockstep::batch {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr const char* kVersionKey = "lockstep_job";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kHeadBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kSamples = 256;
constexpr std::size_t kSampleBytes = 4096;

std::string stamp_text(const FileStamp& stamp) {
  if (stamp.hash.empty()) return "a file that cannot be read";
  return fmt::format("{} bytes with hash {}", stamp.bytes, stamp.hash);
}

void compare(std::vector<Change>& list, const std::string& name, const std::string& then,
             const std::string& now) {
  if (then != now) list.push_back({name, then, now});
}

ordered_json stamp_json(const FileStamp& stamp) {
  return {{"bytes", stamp.bytes}, {"hash", stamp.hash}};
}

FileStamp stamp_from(const json& object) {
  return {object.at("bytes").get<std::uint64_t>(), object.at("hash").get<std::string>()};
}

JobRecord parse_record(const json& file) {
  JobRecord record;
  record.input = stamp_from(file.at("input"));
  record.input_lines = file.at("input").at("lines").get<std::uint64_t>();
  record.model = stamp_from(file.at("model"));
  record.part = file.at("part").get<std::string>();
  for (const auto& [name, value] : file.at("options").items()) record.options[name] = value.dump();
  return record;
}

}  // namespace

void JobRecord::set(const std::string& name, std::string_view text) {
  options[name] = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// In the form that reading the file back gives.
void JobRecord::set_json(const std::string& name, const std::string& text) {
  options[name] = json::parse(text).dump();
}

std::vector<Change> changes(const JobRecord& then, const JobRecord& now, Comparison how) {
  std::vector<Change> list;
  compare(list, "the model", stamp_text(then.model), stamp_text(now.model));
  if (how.parts) {
    compare(list, "the part", then.part.empty() ? "all of the input" : then.part,
            now.part.empty() ? "all of the input" : now.part);
  }
  for (const auto& [name, value] : then.options) {
    const auto found = now.options.find(name);
    if (found != now.options.end()) {
      compare(list, name, value, found->second);
    } else if (!how.partial) {
      list.push_back({name, value, "no option of this version"});
    }
  }
  for (const auto& [name, value] : now.options) {
    if (!then.options.contains(name)) list.push_back({name, "not recorded", value});
  }
  return list;
}

std::string describe(const std::vector<Change>& list) {
  std::string text;
  for (const Change& change : list) {
    text += fmt::format("{}{} was {}, now {}", text.empty() ? "" : "; ", printable(change.name),
                        printable(change.then), printable(change.now));
  }
  return text;
}

std::filesystem::path record_path(const std::filesystem::path& output) {
  return output.string() + ".job";
}

std::optional<JobRecord> read_record(const std::filesystem::path& output) {
  const std::filesystem::path path = record_path(output);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad()) {
    throw Error(ErrorCode::io, fmt::format("{}: cannot be read", path.string()));
  }
  const auto refuse = [&](const char* what) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: {}; without it nothing is compared", path.string(), what));
  };
  try {
    const json file = json::parse(text);
    const auto version = file.at(kVersionKey).get<std::uint64_t>();
    if (version != kVersion) refuse("the record of a job of another version of lockstep");
    return parse_record(file);
  } catch (const json::exception&) {
    refuse("no record of a job");
  }
  return std::nullopt;
}

void write_record(const std::filesystem::path& output, const JobRecord& record) {
  ordered_json options = ordered_json::object();
  for (const auto& [name, value] : record.options) options[name] = ordered_json::parse(value);
  ordered_json input = stamp_json(record.input);
  input["lines"] = record.input_lines;
  const ordered_json file = {{kVersionKey, kVersion},
                             {"input", input},
                             {"model", stamp_json(record.model)},
                             {"part", record.part},
                             {"options", options}};
  Replacement out(record_path(output));
  out.write(file.dump(2) + "\n");
  out.commit();
}

FileStamp stamp_model(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  Fingerprint hash;
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  const auto add = [&](std::uint64_t offset, std::size_t count) {
    ssize_t got = 0;
    do {
      got = ::pread(file.get(), buffer.data(), count, static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    if (got > 0) hash.add(std::span(buffer).first(static_cast<std::size_t>(got)));
    return got > 0;
  };
  const std::uint64_t head = std::min(size, kHeadBytes);
  for (std::uint64_t at = 0; at < head; at += buffer.size()) {
    if (!add(at, static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), head - at))))
      return {};
  }
  // The last sample ends with the file.
  const std::uint64_t room = size - head > kSampleBytes ? size - head - kSampleBytes : 0;
  for (std::uint64_t i = 0; size > head && i < kSamples; ++i) {
    if (!add(head + room / (kSamples - 1) * i + room % (kSamples - 1) * i / (kSamples - 1),
             kSampleBytes))
      return {};
  }
  return {size, hash_text(hash.value())};
}

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace lockstep::batch
