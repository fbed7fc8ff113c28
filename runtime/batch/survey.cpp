// The check of all ids before anything is computed. Only hashes are kept, sorted; if two are equal
// the file is read once more and the ids themselves are compared, so the check is exact at 8 bytes
// per line.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/batch/input.h"
#include "runtime/printable.h"

namespace lockstep::batch {

namespace {

constexpr const char* kWhen = "before anything was computed";

// Leaves the hashes that occur more than once, each once, in order.
void keep_repeated(std::vector<std::uint64_t>& hashes) {
  std::sort(hashes.begin(), hashes.end());
  std::size_t kept = 0;
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    const bool is_new = kept == 0 || hashes[kept - 1] != hashes[i];
    if (hashes[i] == hashes[i - 1] && is_new) hashes[kept++] = hashes[i];
  }
  hashes.resize(kept);
}

// Compares the ids of all lines whose hash is one of these.
void compare_exactly(InputFile& input, const std::vector<std::uint64_t>& hashes,
                     const StopFlags& flags) {
  std::map<std::string, std::size_t> seen;
  InputLine line;
  input.seek(0, 1);
  while (input.next(line)) {
    flags.check(kWhen);
    const std::string id = identify_line(line, input.format()).id;
    if (id.empty() || !std::binary_search(hashes.begin(), hashes.end(), LineIds::hash(id)))
      continue;
    const auto [it, is_new] = seen.emplace(id, line.number);
    if (is_new) continue;
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: lines {} and {} have the same id {}; nothing was computed",
                            input.path().string(), it->second, line.number, printable(id)));
  }
}

}  // namespace

InputSurvey survey_input(InputFile& input, const SurveyOptions& options) {
  InputSurvey survey;
  survey.content = ContentHash(options.prefix);
  bool format_known = false;
  std::vector<std::uint64_t> hashes;
  InputLine line;
  input.seek(0, 1);
  input.hash_into(&survey.content);
  while (input.next(line)) {
    options.flags.check(kWhen);
    ++survey.lines;
    survey.last_line = line.number;
    const LineIdentity identity = identify_line(line, input.format());
    if (identity.lacks_id) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: line {} has no custom_id; nothing was computed",
                              input.path().string(), line.number));
    }
    if (identity.is_object && !format_known) {
      format_known = true;
      survey.fallback = identity.is_openai ? RowFormat::openai_chat : RowFormat::plain;
    }
    survey.has_chat = survey.has_chat || identity.is_chat;
    if (!identity.id.empty()) hashes.push_back(LineIds::hash(identity.id));
    if (options.keep_ids) survey.ids.add(line.number, identity.id);
  }
  input.hash_into(nullptr);
  keep_repeated(hashes);
  if (!hashes.empty()) compare_exactly(input, hashes, options.flags);
  input.seek(0, 1);
  return survey;
}

}  // namespace lockstep::batch
