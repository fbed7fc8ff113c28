// `lockstep batch --resume` as a job script uses it: killed, stopped, out of space, started twice.
// Each case ends with every id exactly once and the rows of an undisturbed run.
#include <signal.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/tiny_model.h"
#include "test/cli/batch_jobs.h"

using namespace lockstep::test;
using nlohmann::json;

TEST_CASE("a torn last row is computed again, and one without its newline is completed") {
  const BatchFolder job(requests(6));
  const std::vector<std::string> expected = job.undisturbed();
  REQUIRE(job.run({"--slots", "1"}).code == 0);
  const std::vector<std::string> rows = lines_of(job.rows());
  const std::string three = rows[0] + "\n" + rows[1] + "\n" + rows[2] + "\n";
  for (const bool whole : {false, true}) {
    job.dir.write("out.jsonl", three + (whole ? rows[3] : rows[3].substr(0, rows[3].size() / 2)));
    const std::string summary = (job.dir.path() / "summary.json").string();
    const Outcome outcome = job.run({"--resume", "--summary", summary});
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(job.rows().compare(0, three.size(), three) == 0);
    CHECK(sorted_lines(job.rows()) == expected);
    check_rows(job.rows());
    const std::string were_there = whole ? "4" : "3";
    CHECK(mentions(outcome, "resumed: " + were_there + " of 6 rows were there"));
    CHECK(mentions(outcome, "6 of 6 rows (" + were_there + " resumed, 0 error rows)"));
    const json figures = json::parse(TempDir::read(summary));
    CHECK(figures.at("rows") == 6);
    CHECK(figures.at("resumed_rows") == (whole ? 4 : 3));
    CHECK(figures.at("exit_code") == 0);
    CHECK(figures.at("input_format") == "jsonl");
    // Only the missing rows were computed.
    std::size_t tokens = 0;
    for (std::size_t i = whole ? 4 : 3; i < 6; ++i) {
      tokens += json::parse(rows[i]).at("usage").at("completion_tokens").get<std::size_t>();
    }
    CHECK(figures.at("output_tokens") == tokens);
  }
}

TEST_CASE("a job that is killed fifty times loses nothing and repeats nothing") {
  const BatchFolder job(requests(700, 40));
  const std::vector<std::string> options = {"--resume", "--slots", "6"};
  const std::vector<std::string> expected = job.undisturbed();
  std::mt19937 random(20240);  // NOLINT: the same kills in every run
  std::size_t killed = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string before = job.rows();
    Invocation how;
    const bool by_time = random() % 3 == 0;
    const auto delay = std::chrono::microseconds(random() % 60000);
    const std::size_t growth = random() % 1500;
    how.meanwhile = [&](pid_t child) {
      if (by_time) {
        std::this_thread::sleep_for(delay);
      } else {
        for (int looks = 0; looks < 2000 && job.bytes() < before.size() + growth; ++looks) {
          std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
      }
      ::kill(child, SIGKILL);
    };
    const Outcome outcome = job.run(options, how);
    INFO(outcome.err);
    CHECK((outcome.signal == SIGKILL || outcome.code == 0));
    killed += outcome.signal == SIGKILL ? 1 : 0;
    // Whole rows stay as they are; what is not whole is at the end, if anywhere.
    const std::string after = job.rows();
    const std::size_t whole = before.rfind('\n') + 1;
    REQUIRE(after.size() >= whole);
    REQUIRE(after.compare(0, whole, before, 0, whole) == 0);
  }
  CHECK(killed > 25);
  const Outcome last = job.run(options);
  INFO(last.err);
  CHECK(last.code == 0);
  check_rows(job.rows());
  CHECK((sorted_lines(job.rows()) == expected));
}

TEST_CASE("a changed model, option or input is refused by name, and the output stays") {
  const BatchFolder job(requests(8));
  const std::string first = (job.dir.path() / "one.gguf").string();
  const std::string second = (job.dir.path() / "two.gguf").string();
  write_tiny_model(first, lockstep::quant::Format::f16, 1);
  write_tiny_model(second, lockstep::quant::Format::f16, 2);
  REQUIRE(job.run({"-m", first}).code == 0);
  const std::string rows = job.rows();
  const auto refused = [&](const std::vector<std::string>& options, const std::string& what) {
    const Outcome outcome = job.run(options);
    INFO(outcome.err);
    CHECK(outcome.code == 65);
    CHECK(outcome.messages().size() == 1);
    CHECK(mentions(outcome, what));
    CHECK(job.rows() == rows);
  };
  refused({"-m", second, "--resume"}, "the model was ");
  refused({"-m", first, "--resume", "--temperature", "0.5"}, "temperature was 0, now 0.5");
  refused({"-m", first, "--resume", "--seed", "3", "--max-tokens", "9"},
          "max_tokens was 0, now 9; seed was 0, now 3");
  refused({"-m", first, "--resume", "--kv-type", "f16"}, "kv_type was \"f32\", now \"f16\"");
  CHECK(job.run({"-m", first}).code == 73);
  CHECK(mentions(job.run({"-m", first}), "--resume"));
  job.dir.write("in.jsonl", requests(8) + "{\"prompt\":\"A dog\",\"max_tokens\":2}\n");
  const Outcome grown = job.run({"-m", first, "--resume"});
  CHECK(grown.code == 0);
  CHECK(mentions(grown, "the input has grown by 1 line"));
  CHECK(lines_of(job.rows()).size() == 9);
  job.dir.write("in.jsonl", requests(7));
  CHECK(mentions(job.run({"-m", first, "--resume"}), "has changed"));
}

TEST_CASE("options that change only how the rows are computed may change") {
  const BatchFolder job(requests(20));
  const std::vector<std::string> expected = job.undisturbed();
  REQUIRE(job.run({"--slots", "2", "--threads", "1"}).code == 0);
  const std::string rows = job.rows();
  job.dir.write("out.jsonl", rows.substr(0, rows.size() / 2));
  const Outcome outcome =
      job.run({"--resume", "--slots", "7", "--threads", "2", "--isa", "scalar", "--numa", "none"});
  CHECK(outcome.code == 0);
  CHECK(sorted_lines(job.rows()) == expected);
}

TEST_CASE("a resumed job that is complete loads no model, and keeps its exit code") {
  const BatchFolder job(requests(3) + "{}\n");
  REQUIRE(job.run().code == 1);
  const std::string rows = job.rows();
  Invocation how;
  how.environment = {{"LOCKSTEP_ISA", "no such thing"}};
  const Outcome again = job.run({"--resume"}, how);
  INFO(again.err);
  CHECK(again.code == 1);
  CHECK(mentions(again, "nothing was left to compute"));
  CHECK(job.rows() == rows);
  const BatchFolder empty("\n");
  CHECK(empty.run({"--resume"}).code == 0);
  CHECK(std::filesystem::exists(empty.output));
}

TEST_CASE(
    "the option --sorted gives the order of the input, also after a kill and on a finished "
    "output") {
  const BatchFolder job(requests(60, 30));
  const std::vector<std::string> expected = job.undisturbed();
  REQUIRE(job.run({"--slots", "8"}).code == 0);
  const std::string unsorted = job.rows();
  const auto in_order = [&] {
    std::size_t last = 0;
    for (const std::string& row : lines_of(job.rows())) {
      const std::size_t line = json::parse(row).at("line");
      if (line <= last) return false;
      last = line;
    }
    return sorted_lines(job.rows()) == expected;
  };
  REQUIRE_FALSE(in_order());
  CHECK(job.run({"--resume", "--sorted"}).code == 0);
  CHECK(in_order());
  job.dir.write("out.jsonl", unsorted.substr(0, unsorted.size() / 3));
  CHECK(job.run({"--resume", "--sorted"}).code == 0);
  CHECK(in_order());
}

TEST_CASE("a second job with the same output is refused while the first one runs") {
  const BatchFolder job(requests(5000, 200));
  Outcome second, third;
  Invocation how;
  how.meanwhile = [&](pid_t child) {
    CHECK(wait_until([&] { return job.bytes() > 0; }));
    second = job.run({"--resume"});
    third = job.run();
    ::kill(child, SIGTERM);
  };
  CHECK(job.run({}, how).code == 75);
  CHECK(second.code == 73);
  CHECK(mentions(second, "another process is writing it"));
  CHECK(third.code == 73);
  check_rows(job.rows());
}

TEST_CASE("rows that do not belong to the job are named by output line") {
  const BatchFolder job(requests(5));
  REQUIRE(job.run({"--slots", "1"}).code == 0);
  std::string rows = job.rows();
  rows.replace(rows.find("\"r2\""), 4, "\"r9\"");
  job.dir.write("out.jsonl", rows);
  const Outcome outcome = job.run({"--resume"});
  CHECK(outcome.code == 65);
  CHECK(mentions(outcome, "out.jsonl: line 3 is no row of this job: its id is \"r9\""));
  CHECK(job.rows() == rows);
}

TEST_CASE("each line of a text file is a prompt") {
  const BatchFolder job("Once upon a time\r\n\n   \nThere was once\n", "prompts.txt");
  const Outcome outcome = job.run({"--max-tokens", "5"});
  CHECK(outcome.code == 0);
  const BatchFolder same(
      "{\"prompt\":\"Once upon a time\"}\n\n\n{\"prompt\":\"There was once\"}\n");
  CHECK(sorted_lines(job.rows()) == same.undisturbed({"--max-tokens", "5"}));
  const Outcome changed = job.run({"--max-tokens", "5", "--resume", "--input-format", "jsonl"});
  CHECK(changed.code == 65);
  CHECK(mentions(changed, "input_format was \"text\", now \"jsonl\""));
}
