// Joining outputs: every line exactly one row, whichever file it is in.
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/batch/collate.h"
#include "runtime/batch/merge.h"
#include "runtime/batch/record.h"
#include "support/catch.h"
#include "support/random.h"
#include "support/temp_dir.h"

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::Random;
using lockstep::test::TempDir;

namespace {

std::string row(std::size_t line, const std::string& text = "t") {
  return R"({"id":"r)" + std::to_string(line) + R"(","line":)" + std::to_string(line) +
         R"(,"text":")" + text + "\"}\n";
}

std::string request(std::size_t line) {
  return R"({"id":"r)" + std::to_string(line) + R"(","prompt":"x"})" + "\n";
}

struct Bench {
  TempDir dir;
  MergeOptions options;

  explicit Bench(std::size_t lines) {
    std::string text;
    for (std::size_t i = 1; i <= lines; ++i) text += request(i);
    options.input = dir.write("in.jsonl", text);
    options.output = dir.path() / "all.jsonl";
  }
  void part(const std::string& name, const std::string& bytes) {
    options.parts.push_back(dir.write(name, bytes));
  }
  void record(const std::string& name, const JobRecord& of) const {
    write_record(dir.path() / name, of);
  }
  std::string result() const { return TempDir::read(options.output); }
  bool wrote() const { return std::filesystem::exists(options.output); }

  // What is thrown.
  std::string refusal(ErrorCode code = ErrorCode::bad_input) const {
    try {
      merge_outputs(options);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return error.what();
    }
    return "";
  }
};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("parts are joined in the order of the input") {
  Bench bench(5);
  bench.part("a", row(4) + row(1));
  bench.part("b", row(5) + row(3) + row(2));
  const Merged merged = merge_outputs(bench.options);
  CHECK(bench.result() == row(1) + row(2) + row(3) + row(4) + row(5));
  CHECK(merged.rows.rows == 5);
  CHECK(merged.lines == 5);
  CHECK_FALSE(std::filesystem::exists(bench.dir.path() / "all.jsonl.part"));
}

TEST_CASE("missing lines are counted and named, and nothing is written") {
  Bench bench(20);
  bench.part("a", row(2) + row(20));
  const std::string error = bench.refusal();
  CHECK(mentions(error, "18 of 20 lines have no row: 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, ..."));
  CHECK_FALSE(bench.wrote());
  bench.options.partial = true;
  CHECK(merge_outputs(bench.options).rows.missing == 18);
  CHECK(bench.result() == row(2) + row(20));
}

TEST_CASE("the same row twice is kept once, different ones are refused by file and line") {
  Bench bench(3);
  bench.part("a", row(1) + row(2));
  bench.part("b", row(2) + row(3));
  CHECK(merge_outputs(bench.options).rows.repeated == 1);
  CHECK(bench.result() == row(1) + row(2) + row(3));
  bench.options.output = bench.dir.path() / "other.jsonl";
  bench.part("c", row(3) + row(2, "other"));
  const std::string error = bench.refusal();
  CHECK(mentions(error, "c: line 2: another row than the one in "));
  CHECK(mentions(error, "for line 2 of the input"));
  CHECK_FALSE(bench.wrote());
}

TEST_CASE("rows that are none of the input's are refused") {
  for (const auto& [bad, reason] :
       std::vector<std::pair<std::string, std::string>>{{row(9), "no request on line 9"},
                                                        {R"({"id":"r1","line":2,"text":""})"
                                                         "\n",
                                                         "its id is \"r1\""},
                                                        {"nonsense\n", "not valid JSON"}}) {
    Bench bench(3);
    bench.part("a", row(1) + bad + row(3));
    const std::string error = bench.refusal();
    CHECK(mentions(error, "a: line 2: "));
    CHECK(mentions(error, reason));
    CHECK_FALSE(bench.wrote());
  }
}

TEST_CASE("a torn last row is left out, one that lacks its newline is not") {
  Bench bench(3);
  bench.part("a", row(1) + row(2).substr(0, 9));
  std::string whole = row(3);
  whole.pop_back();
  bench.part("b", whole + std::string(700, '\0'));
  CHECK(mentions(bench.refusal(), "1 of 3 lines have no row: 2;"));
  bench.part("c", row(2));
  const Merged merged = merge_outputs(bench.options);
  CHECK(bench.result() == row(1) + row(2) + row(3));
  CHECK(merged.rows.torn == std::vector<std::size_t>{0});
}

TEST_CASE("parts of different models, options or inputs are named") {
  Bench bench(2);
  bench.part("a", row(1));
  bench.part("b", row(2));
  InputFile input(bench.options.input);
  const InputSurvey survey = survey_input(input);
  JobRecord record;
  record.input = {survey.content.bytes(), hash_text(survey.content.value())};
  record.input_lines = 2;
  record.model = {7, "m"};
  record.set("seed", 1);
  JobRecord other = record;
  record.part = "shard 1/2";
  other.part = "shard 2/2";
  bench.record("a", record);
  bench.record("b", other);
  CHECK(bench.refusal().empty());
  REQUIRE(read_record(bench.options.output));
  CHECK(read_record(bench.options.output)->part.empty());
  CHECK(read_record(bench.options.output)->options == record.options);

  JobRecord changed = other;
  changed.set("seed", 2);
  bench.record("b", changed);
  const std::string error = bench.refusal();
  CHECK(mentions(error, "seed is 1 in "));
  CHECK(mentions(error, " and 2 in "));
  changed = other;
  changed.model.hash = "n";
  bench.record("b", changed);
  CHECK(mentions(bench.refusal(), "the model is 7 bytes with hash m in "));
  changed = other;
  changed.input.bytes = 1;
  bench.record("b", changed);
  CHECK(mentions(bench.refusal(), "the input is "));

  bench.record("b", other);
  bench.dir.write("in.jsonl", request(1) + request(2) + "\n");
  CHECK(mentions(bench.refusal(), "not the input of "));
  // A record that would be wrong does not stay beside the output.
  std::filesystem::remove(record_path(bench.dir.path() / "a"));
  std::filesystem::remove(record_path(bench.dir.path() / "b"));
  const Merged merged = merge_outputs(bench.options);
  CHECK(merged.notes.size() == 1);
  CHECK_FALSE(std::filesystem::exists(record_path(bench.options.output)));
}

TEST_CASE("the output may not be one of the parts") {
  Bench bench(1);
  bench.part("a", row(1));
  bench.options.output = bench.dir.path() / "." / "a";
  CHECK(mentions(bench.refusal(ErrorCode::usage), "part and the output at once"));
  CHECK(TempDir::read(bench.dir.path() / "a") == row(1));
}

TEST_CASE("rows are put in order in portions of any size") {
  constexpr std::size_t kLines = 300;
  Random random(5);
  std::vector<std::string> rows;
  std::string expected;
  for (std::size_t i = 1; i <= kLines; ++i) {
    // Some longer than what is read at a time.
    rows.push_back(row(i, std::string(random.below(10) == 0 ? random.below(20000) : 3, 'x')));
    expected += rows.back();
  }
  for (std::size_t i = kLines - 1; i > 0; --i) std::swap(rows[i], rows[random.below(i + 1)]);
  const TempDir dir;
  std::string mixed;
  for (const std::string& one : rows) mixed += one;
  const RowFile file(dir.write("rows", mixed));
  for (const std::size_t portion : {1u, 7u, 299u, 300u, 1000u}) {
    std::string result;
    CollateOptions options;
    options.last_line = kLines;
    options.lines_at_once = portion;
    const Collation collation =
        collate({&file, 1}, options, [&](std::string_view one) { result += one; });
    CHECK(collation.rows == kLines);
    CHECK((result == expected));
  }
}
