// The check of all ids before anything is computed. Only hashes are kept; lines whose hashes meet
// are read again and compared, so the check is exact at 24 bytes per line.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/batch/input.h"
#include "runtime/printable.h"

namespace lockstep::batch {

namespace {

struct IdRecord {
  std::uint64_t hash;
  std::uint64_t offset;
  std::size_t line;
};

[[noreturn]] void refuse_duplicate(const InputFile& input, const std::string& id, std::size_t first,
                                   std::size_t second) {
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: lines {} and {} have the same id {}; nothing was computed",
                          input.path().string(), first, second, printable(id)));
}

// Compares the real ids of records with equal hashes, in line order.
void compare_exactly(InputFile& input, const IdRecord* begin, const IdRecord* end) {
  std::map<std::string, std::size_t> seen;
  InputLine line;
  for (const IdRecord* record = begin; record != end; ++record) {
    input.seek(record->offset, record->line);
    if (!input.next(line)) continue;
    const std::string id = identify_line(line.text).id;
    const auto [it, is_new] = seen.emplace(id, record->line);
    if (!is_new) refuse_duplicate(input, id, it->second, record->line);
  }
}

void check_duplicates(InputFile& input, std::vector<IdRecord>& records) {
  std::sort(records.begin(), records.end(), [](const IdRecord& a, const IdRecord& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.line < b.line;
  });
  const IdRecord* const end = records.data() + records.size();
  for (const IdRecord* group = records.data(); group != end;) {
    const IdRecord* next = group;
    while (next != end && next->hash == group->hash) ++next;
    if (next - group > 1) compare_exactly(input, group, next);
    group = next;
  }
}

}  // namespace

InputSurvey survey_input(InputFile& input) {
  InputSurvey survey;
  bool format_known = false;
  std::vector<IdRecord> records;
  InputLine line;
  input.seek(0, 1);
  while (input.next(line)) {
    ++survey.lines;
    const LineIdentity identity = identify_line(line.text);
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
    if (!identity.id.empty()) {
      records.push_back({std::hash<std::string>{}(identity.id), line.offset, line.number});
    }
  }
  check_duplicates(input, records);
  input.seek(0, 1);
  return survey;
}

}  // namespace lockstep::batch
