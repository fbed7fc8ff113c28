// See merge.h. Records are compared before rows: they name the reason, rows only show it.
#include "runtime/batch/merge.h"

#include <fmt/format.h>

#include <optional>
#include <system_error>
#include <utility>

#include "lockstep/error.h"
#include "runtime/batch/record.h"
#include "runtime/batch/replacement.h"
#include "runtime/printable.h"

namespace lockstep::batch {

namespace {

// The record of the first part that has one, and which part that was.
struct Reference {
  std::optional<JobRecord> record;
  std::string part;
};

std::string differences(const std::vector<Change>& list, const std::string& first,
                        const std::string& second) {
  std::string text;
  for (const Change& change : list) {
    text += fmt::format("{}{} is {} in {} and {} in {}", text.empty() ? "" : "; ",
                        printable(change.name), printable(change.then), first,
                        printable(change.now), second);
  }
  return text;
}

std::string stamp_text(const FileStamp& stamp) {
  return fmt::format("{} bytes with hash {}", stamp.bytes, stamp.hash);
}

Reference compare_records(const MergeOptions& options, std::vector<std::string>& notes) {
  Reference reference;
  std::vector<std::string> without;
  for (const std::filesystem::path& part : options.parts) {
    const std::optional<JobRecord> record = read_record(part);
    if (!record) {
      without.push_back(part.string());
    } else if (!reference.record) {
      reference = {record, part.string()};
    } else {
      std::vector<Change> list =
          changes(*reference.record, *record, {.partial = false, .parts = false});
      if (reference.record->input != record->input) {
        list.push_back(
            {"the input", stamp_text(reference.record->input), stamp_text(record->input)});
      }
      if (list.empty()) continue;
      throw Error(ErrorCode::bad_input,
                  fmt::format("the parts do not belong together: {}; nothing was written",
                              differences(list, reference.part, part.string())));
    }
  }
  if (!without.empty()) {
    notes.push_back(fmt::format(
        "warning: no record beside {}: whether model and options were the same is not known",
        fmt::join(without, ", ")));
  }
  return reference;
}

void compare_input(const MergeOptions& options, const Reference& reference,
                   const ContentHash& content) {
  if (!reference.record) return;
  const FileStamp now{content.bytes(), hash_text(content.value())};
  if (now == reference.record->input) return;
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: not the input of {}, which was {}; this one is {}; nothing was "
                          "written",
                          options.input.string(), reference.part,
                          stamp_text(reference.record->input), stamp_text(now)));
}

void refuse_missing(const MergeOptions& options, const Collation& rows, std::size_t lines) {
  throw Error(
      ErrorCode::bad_input,
      fmt::format("{}: {} of {} lines have no row: {}{}; nothing was written (--partial "
                  "writes what there is)",
                  options.input.string(), rows.missing, lines, fmt::join(rows.first_missing, ", "),
                  rows.missing > rows.first_missing.size() ? ", ..." : ""));
}

void note_rows(const MergeOptions& options, Merged& merged) {
  for (const std::size_t part : merged.rows.torn) {
    merged.notes.push_back(
        fmt::format("{}: the last row is torn and left out", options.parts[part].string()));
  }
  if (merged.rows.repeated > 0) {
    merged.notes.push_back(
        fmt::format("{} rows were there more than once, byte for byte; one of each is kept",
                    merged.rows.repeated));
  }
}

std::vector<RowFile> open_parts(const MergeOptions& options, std::vector<std::string>& notes) {
  std::vector<RowFile> parts;
  for (const std::filesystem::path& path : options.parts) {
    std::error_code error;
    if (std::filesystem::equivalent(path, options.output, error)) {
      throw Error(ErrorCode::usage,
                  fmt::format("{}: is a part and the output at once", path.string()));
    }
    parts.emplace_back(path);
    if (!parts.back().is_locked_by_another()) continue;
    notes.push_back(fmt::format(
        "warning: {} is being written at this moment; later rows are left out", path.string()));
  }
  return parts;
}

}  // namespace

Merged merge_outputs(const MergeOptions& options) {
  Merged merged;
  const std::vector<RowFile> parts = open_parts(options, merged.notes);
  Reference reference = compare_records(options, merged.notes);
  InputFile input(options.input, options.format);
  const InputSurvey survey = survey_input(input, {.keep_ids = true, .flags = options.flags});
  compare_input(options, reference, survey.content);

  CollateOptions how;
  how.last_line = survey.last_line;
  how.ids = &survey.ids;
  how.flags = options.flags;
  Replacement output(options.output);
  merged.lines = survey.lines;
  merged.rows = collate(parts, how, [&](std::string_view row) { output.write(row); });
  if (merged.rows.missing > 0 && !options.partial)
    refuse_missing(options, merged.rows, survey.lines);
  output.commit();
  if (reference.record) {
    reference.record->part.clear();
    write_record(options.output, *reference.record);
  } else {
    std::error_code error;  // one of an older output would be wrong
    std::filesystem::remove(record_path(options.output), error);
  }
  note_rows(options, merged);
  return merged;
}

}  // namespace lockstep::batch
