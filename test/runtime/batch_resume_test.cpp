// A job that goes on: torn rows, foreign rows, changed options and inputs, and which lines are
// left. All with a model whose answers can be worked out by hand, so that thousands of cuts take
// seconds.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/error.h"
#include "runtime/batch/file_lock.h"
#include "runtime/batch/job.h"
#include "runtime/batch/job_files.h"
#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/runtime/fake_step_model.h"
#include "test/runtime/silent_observer.h"

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::FakeStepModel;
using lockstep::test::SilentObserver;
using lockstep::test::TempDir;

namespace {

JobRecord some_record() {
  JobRecord record;
  record.model = {1000, "00000000000000aa"};
  record.set("temperature", 0.7f);
  record.set("max_tokens", 20);
  record.set("kv_type", "f32");
  return record;
}

// A folder with one job in it.
struct Workplace {
  TempDir dir;
  std::filesystem::path input = dir.path() / "in.jsonl";
  std::filesystem::path output = dir.path() / "out.jsonl";

  explicit Workplace(std::string_view lines) { dir.write("in.jsonl", lines); }

  std::string rows() const { return TempDir::read(output); }
  void put_rows(std::string_view bytes) const { dir.write("out.jsonl", bytes); }
};

struct Result {
  JobStats stats;
  std::vector<std::string> notes;
  std::string error;  // what was thrown, if anything
  ErrorCode code = ErrorCode::internal;

  bool notes_mention(std::string_view text) const {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(text) != std::string::npos;
    });
  }
};

struct How {
  bool resume = true;
  bool sorted = false;
  InputFormat format = InputFormat::jsonl;
  JobRecord record = some_record();
  std::size_t slots = 3;
};

Result run(const Workplace& place, const How& how = {}) {
  Result result;
  try {
    JobFilesOptions options;
    options.input = place.input;
    options.output = place.output;
    options.format = how.format;
    options.resume = how.resume;
    options.sorted = how.sorted;
    JobFiles files(options, how.record);
    result.notes = files.notes();
    if (!files.complete()) {
      FakeStepModel model(64, how.slots, 40);
      SilentObserver observer;
      const std::atomic<bool> stop{false};
      RowWriter& rows = files.begin(how.record);
      LineSource lines = files.lines();
      result.stats = run_job(model, lines, files.survey(), rows, {}, stop, observer);
    }
    files.finish(true);
  } catch (const Error& error) {
    result.error = error.what();
    result.code = error.code();
  }
  return result;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> sorted(const std::string& text) {
  std::vector<std::string> lines = split(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Requests of both formats, an error row and a blank line; answers of several lengths.
constexpr std::string_view kSixLines =
    "{\"id\":\"a\",\"prompt\":\"Eone|\"}\n"
    "{\"id\":2,\"prompt\":\"Ea longer answer|\"}\n"
    "\n"
    "{\"broken\n"
    "{\"custom_id\":\"c\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":{\"prompt\":"
    "\"E\\u00e4\\u00f6|\"}}\n"
    "{\"prompt\":\"qqqq\",\"max_tokens\":9}\n"
    "{\"id\":\"\\u00e9\\n\",\"prompt\":\"E|\"}\n";

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an output cut at any byte ends with the same rows, and whole rows are not rewritten") {
  Workplace place(kSixLines);
  REQUIRE(run(place).error.empty());
  const std::string whole = place.rows();
  const std::vector<std::string> expected = sorted(whole);
  REQUIRE(expected.size() == 6);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    place.put_rows(whole.substr(0, cut));
    const Result again = run(place);
    REQUIRE(again.error.empty());
    const std::string rows = place.rows();
    REQUIRE(sorted(rows) == expected);
    // A row that lacks only its newline is as good as whole.
    const bool lacks_newline = cut > 0 && cut < whole.size() && whole[cut] == '\n';
    const std::size_t kept = lacks_newline ? cut + 1 : whole.rfind('\n', cut - 1) + 1;
    REQUIRE(rows.compare(0, cut == 0 ? 0 : kept, whole, 0, cut == 0 ? 0 : kept) == 0);
  }
}

TEST_CASE("zero bytes that a power failure left at the end are cut off") {
  Workplace place(kSixLines);
  REQUIRE(run(place).error.empty());
  const std::string whole = place.rows();
  const std::size_t second = whole.find('\n', whole.find('\n') + 1) + 1;
  const std::string zeros(5000, '\0');
  for (const std::string& damaged :
       {whole + zeros, whole.substr(0, second) + zeros, whole.substr(0, second + 10) + zeros,
        whole.substr(0, second - 1) + zeros, zeros,
        // the first pages of the last row were lost, its end was not
        whole.substr(0, second) + zeros + "\"}\n"}) {
    place.put_rows(damaged);
    const Result again = run(place);
    INFO(again.error);
    REQUIRE(again.error.empty());
    CHECK(sorted(place.rows()) == sorted(whole));
  }
}

TEST_CASE("rows that were there are told apart, and only the others are computed") {
  Workplace place(kSixLines);
  REQUIRE(run(place, {.slots = 1}).error.empty());
  const std::vector<std::string> rows = split(place.rows());
  place.put_rows(rows[0] + "\n" + rows[2] + "\n" + rows[3] + "\n" + rows[4].substr(0, 9));
  const Result again = run(place);
  CHECK(again.stats.resumed == 3);
  CHECK(again.stats.rows == 6);
  CHECK(again.stats.total == 6);
  CHECK(again.stats.errors == 1);  // one of the three that were there
  CHECK(again.notes_mention("resumed: 3 of 6 rows were there (1 error rows)"));
  CHECK(again.notes_mention("a torn last row of 9 bytes"));
  CHECK(run(place).notes_mention("resumed: 6 of 6"));
  CHECK(run(place).stats.total == 0);  // not run at all
}

TEST_CASE(
    "without an output a resumed job starts from the beginning, and an empty one is no hindrance") {
  Workplace place(kSixLines);
  CHECK(run(place).stats.resumed == 0);
  const std::vector<std::string> expected = sorted(place.rows());
  place.put_rows("");
  How other;
  other.record.set("temperature", 0.9f);
  CHECK(run(place, other).error.empty());
  CHECK(sorted(place.rows()) == expected);
}

TEST_CASE("without --resume an output that exists is refused, with a hint") {
  Workplace place(kSixLines);
  place.put_rows("precious\n");
  const Result refused = run(place, {.resume = false});
  CHECK(refused.code == ErrorCode::cannot_create);
  CHECK(mentions(refused.error, "--resume"));
  CHECK(place.rows() == "precious\n");
}

TEST_CASE("rows of another job are refused by line and reason, and nothing is changed") {
  Workplace place(kSixLines);
  REQUIRE(run(place, {.slots = 1}).error.empty());
  const std::vector<std::string> rows = split(place.rows());
  struct Case {
    std::string row;
    const char* reason;
  };
  const std::string answer = R"(,"text":"","finish_reason":"stop"})";
  for (const auto& [row, reason] : std::vector<Case>{
           {"no row", "not valid JSON"},
           {"", "not valid JSON"},
           {"[1]", "no JSON object"},
           {R"({"id":"a","text":""})", "no line number"},
           {R"({"line":2,"text":""})", "no id"},
           {R"({"id":2,"line":2})", "neither an answer nor an error"},
           {R"({"id":2,"line":99)" + answer, "no request on line 99"},
           {R"({"id":null,"line":3)" + answer, "no request on line 3"},
           {R"({"id":"2","line":2)" + answer, "its id is \"2\""},
           {R"({"id":null,"line":2)" + answer, "its id is null"},
           {std::string("{\"id\":2,\0}", 10), "not valid JSON"},
       }) {
    const std::string bytes = rows[0] + "\n" + row + "\n" + rows[3] + "\n" + rows[4].substr(0, 7);
    place.put_rows(bytes);
    const Result refused = run(place);
    INFO(row << " -> " << refused.error);
    CHECK(refused.code == ErrorCode::bad_input);
    CHECK(mentions(refused.error, "out.jsonl: line 2 is no row of this job: "));
    CHECK(mentions(refused.error, reason));
    CHECK(place.rows() == bytes);
  }
}

TEST_CASE("two different rows of a line are refused, the same row twice is not") {
  Workplace place(kSixLines);
  REQUIRE(run(place, {.slots = 1}).error.empty());
  const std::string whole = place.rows();
  const std::string first = split(whole)[0];
  place.put_rows(whole + first + "\n");
  const Result twice = run(place);
  CHECK(twice.error.empty());
  CHECK(twice.notes_mention("1 row is there twice"));
  CHECK(place.rows() == whole + first + "\n");

  std::string other = first;
  other.replace(other.find("one"), 3, "two");
  place.put_rows(whole + other + "\n");
  const Result refused = run(place);
  CHECK(refused.code == ErrorCode::bad_input);
  CHECK(mentions(refused.error, "lines 1 and 7 are different rows for line 1 of the input"));
  CHECK(place.rows() == whole + other + "\n");
}

TEST_CASE("a changed model or option is named with both values") {
  Workplace place(kSixLines);
  REQUIRE(run(place).error.empty());
  const std::string whole = place.rows();
  const std::string half = whole.substr(0, whole.size() / 2);
  place.put_rows(half);
  How how;
  how.record.set("temperature", 0.8f);
  how.record.set("kv_type", "f16");
  const Result options = run(place, how);
  CHECK(options.code == ErrorCode::bad_input);
  CHECK(mentions(options.error, "kv_type was \"f32\", now \"f16\"; temperature was 0.7, now 0.8"));
  CHECK(mentions(options.error, "out.jsonl.job"));

  How model;
  model.record.model.hash = "00000000000000bb";
  CHECK(mentions(run(place, model).error,
                 "the model was 1000 bytes with hash 00000000000000aa, now 1000 bytes with hash "
                 "00000000000000bb"));
  How part;
  part.record.part = "shard 2/4";
  CHECK(mentions(run(place, part).error, "the part was all of the input, now shard 2/4"));
  How newer;
  newer.record.set("logit_bias", "x");
  CHECK(mentions(run(place, newer).error, "logit_bias was not recorded, now \"x\""));
  How older;
  older.record.options.erase("max_tokens");
  CHECK(mentions(run(place, older).error, "max_tokens was 20, now no option of this version"));
  CHECK(place.rows() == half);

  // Removing the record is the way to mix rows knowingly.
  std::filesystem::remove(record_path(place.output));
  const Result mixed = run(place, how);
  CHECK(mixed.error.empty());
  CHECK(mixed.notes_mention("warning: there is no "));
  CHECK(sorted(place.rows()) == sorted(whole));
}

TEST_CASE("a record that is none is refused") {
  Workplace place(kSixLines);
  REQUIRE(run(place).error.empty());
  for (const char* text : {"", "{}", "[]", "{\"lockstep_job\":1}", "{\"lockstep_job\":2}"}) {
    place.dir.write("out.jsonl.job", text);
    const Result refused = run(place);
    CHECK(refused.code == ErrorCode::bad_input);
    CHECK(mentions(refused.error, "out.jsonl.job: "));
  }
}

TEST_CASE("a changed input is refused, one that has grown by lines is not") {
  const std::string old_lines = "{\"id\":1,\"prompt\":\"Ea|\"}\n{\"id\":2,\"prompt\":\"Eb|\"}";
  Workplace place(old_lines);
  REQUIRE(run(place, {.slots = 1}).error.empty());
  const std::string whole = place.rows();
  const std::string half = whole.substr(0, whole.find('\n') + 1);
  for (const std::string& changed :
       {std::string("{\"id\":1,\"prompt\":\"Ex|\"}\n{\"id\":2,\"prompt\":\"Eb|\"}"),
        old_lines.substr(0, old_lines.size() - 1), old_lines + " ", std::string()}) {
    place.put_rows(half);
    place.dir.write("in.jsonl", changed);
    const Result refused = run(place);
    INFO(changed << ": " << refused.error);
    CHECK(refused.code == ErrorCode::bad_input);
    CHECK(mentions(refused.error, "has changed (it was "));
    CHECK(place.rows() == half);
  }
  place.dir.write("in.jsonl", old_lines + "\n\n{\"id\":3,\"prompt\":\"Ec|\"}\n");
  const Result grown = run(place);
  CHECK(grown.error.empty());
  CHECK(grown.notes_mention("the input has grown by 1 line since the job began"));
  CHECK(split(place.rows()).size() == 3);
  CHECK(place.rows().compare(0, whole.size(), whole) == 0);
  // From now on the longer input is the job's.
  place.dir.write("in.jsonl", old_lines);
  CHECK(run(place).code == ErrorCode::bad_input);
}

TEST_CASE(
    "the option --sorted puts the rows in the order of the input, also when all were there "
    "already") {
  std::string lines = "\n";
  for (int i = 0; i < 40; ++i) {
    lines += R"({"id":)" + std::to_string(i) + R"(,"prompt":"E)" +
             std::string(static_cast<std::size_t>(i * 7 % 13), 'x') + "|\"}\n";
  }
  Workplace place(lines);
  REQUIRE(run(place, {.slots = 1}).error.empty());
  const std::string in_order = place.rows();
  std::filesystem::remove(place.output);
  REQUIRE(run(place, {.slots = 8}).error.empty());
  const std::string completion_order = place.rows();
  REQUIRE(completion_order != in_order);
  const Result again = run(place, {.sorted = true});
  CHECK(again.stats.total == 0);
  CHECK(place.rows() == in_order);

  place.put_rows(completion_order.substr(0, completion_order.size() / 2));
  CHECK(run(place, {.sorted = true, .slots = 8}).error.empty());
  CHECK(place.rows() == in_order);
  // What a job that was killed while it sorted left behind is in nobody's way.
  place.put_rows(completion_order);
  place.dir.write("out.jsonl.part", "half a file");
  CHECK(run(place, {.sorted = true}).error.empty());
  CHECK(place.rows() == in_order);
  CHECK_FALSE(std::filesystem::exists(place.dir.path() / "out.jsonl.part"));
}

TEST_CASE("an output that another process writes is refused") {
  Workplace place(kSixLines);
  place.put_rows("");
  const Descriptor other = open_locked(place.output, 2);  // O_RDWR
  REQUIRE(other.is_open());
  const Result refused = run(place);
  CHECK(refused.code == ErrorCode::cannot_create);
  CHECK(mentions(refused.error, "another process is writing it"));
}

TEST_CASE("each line of a text file is a prompt") {
  Workplace place(
      "\xef\xbb\xbf"
      "Eone|\r\n   \n{\"prompt\":\"Ex|\"}\nE\xff|\nEtwo|");
  const Result job = run(place, {.format = InputFormat::text, .slots = 1});
  CHECK(job.error.empty());
  CHECK(job.stats.errors == 1);
  const std::vector<std::string> rows = split(place.rows());
  REQUIRE(rows.size() == 4);
  CHECK(mentions(rows[0], R"({"id":null,"line":1,"text":"one",)"));
  CHECK(mentions(place.rows(), "not valid UTF-8 at byte 2 of the line"));
  CHECK(mentions(place.rows(), R"({"id":null,"line":5,"text":"two",)"));
  CHECK(mentions(place.rows(), R"("line":3,"text":)"));  // JSON is a text like any other
  CHECK(format_named("auto", "a/b.txt") == InputFormat::text);
  CHECK(format_named("auto", "a/txt") == InputFormat::jsonl);
  CHECK(format_named("jsonl", "b.txt") == InputFormat::jsonl);
  CHECK(format_named("text", "b.jsonl") == InputFormat::text);
}

TEST_CASE("finished lines are skipped, and the others are claimed in their order") {
  class Odd final : public LineClaims {
   public:
    bool mine(std::size_t index) override {
      asked.push_back(index);
      return index % 2 == 1;
    }
    std::vector<std::size_t> asked;
  };
  Workplace place("a\n\nb\nc\nd\n\ne\nf\n");
  InputFile input(place.input);
  FinishedLines finished;
  finished.lines.add(3);
  finished.lines.add(8);
  Odd claims;
  LineSource lines(input, finished, &claims);
  std::vector<std::string> taken;
  for (InputLine line; lines.next(line);) taken.push_back(line.text);
  CHECK(taken == std::vector<std::string>{"d"});
  CHECK(claims.asked == std::vector<std::size_t>{0, 2, 3, 4});
  LineSource all(input, finished);
  std::size_t count = 0;
  for (InputLine line; all.next(line);) ++count;
  CHECK(count == 4);
}

TEST_CASE("a stop ends the checks before the job") {
  Workplace place(kSixLines);
  const std::atomic<bool> stop{true};
  JobFilesOptions options;
  options.input = place.input;
  options.output = place.output;
  options.flags.stop = &stop;
  try {
    JobFiles files(options, some_record());
    FAIL("went on");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::interrupted);
  }
  CHECK_FALSE(std::filesystem::exists(place.output));
}

TEST_CASE("the stamp of a model sees its header, its size and its weights") {
  const TempDir dir;
  std::string bytes(std::size_t{20} << 20, 'w');
  const FileStamp stamp = stamp_model(dir.write("m", bytes));
  CHECK(stamp.bytes == bytes.size());
  CHECK(stamp == stamp_model(dir.write("m", bytes)));
  bytes[1000] = 'x';
  CHECK(stamp != stamp_model(dir.write("m", bytes)));
  bytes[1000] = 'w';
  bytes.back() = 'x';
  CHECK(stamp != stamp_model(dir.write("m", bytes)));
  bytes.back() = 'w';
  for (std::size_t i = std::size_t{17} << 20; i < std::size_t{18} << 20; ++i) bytes[i] = 'v';
  CHECK(stamp != stamp_model(dir.write("m", bytes)));
  CHECK(stamp_model(dir.path() / "none").hash.empty());
  CHECK(stamp_model(dir.write("empty", "")).bytes == 0);
}
