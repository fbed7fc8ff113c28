// Signals to `lockstep batch`: at every stage of a job it ends in time with exit code 75, and goes
// on afterwards as if nothing had happened.
#include <signal.h>

#include <string>
#include <vector>

#include "support/catch.h"
#include "support/tiny_model.h"
#include "test/cli/batch_jobs.h"

using namespace lockstep::test;

namespace {

// Waits until stderr, which goes into this file, has the text.
bool wait_for_text(const std::filesystem::path& file, const std::string& text) {
  return wait_until([&] { return TempDir::read(file).find(text) != std::string::npos; });
}

struct Told {
  Outcome outcome;
  std::string err;
};

// Sends the signals, one after the other, as soon as stderr has the text. They must differ: the
// same one twice may arrive once.
Told run_and_signal(const BatchFolder& job, const std::vector<std::string>& options,
                    const std::string& text, const std::vector<int>& signals) {
  const std::filesystem::path err = job.dir.write("stderr", "");
  Invocation how;
  const std::string err_name = err.string();
  how.errors_to = err_name.c_str();
  how.meanwhile = [&](pid_t child) {
    CHECK(wait_for_text(err, text));
    for (const int signal : signals) ::kill(child, signal);
  };
  Told told{job.run(options, how), ""};
  told.err = TempDir::read(err);
  return told;
}

}  // namespace

TEST_CASE("SIGTERM, SIGINT and SIGUSR1 stop a job; --resume ends it") {
  const std::string lines = requests(200, 40);
  const std::vector<std::string> expected = BatchFolder(lines).undisturbed();
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    const BatchFolder job(lines);
    Invocation how;
    how.meanwhile = [&](pid_t child) {
      CHECK(wait_until([&] { return job.bytes() > 0; }));
      ::kill(child, signal);
    };
    const std::string summary = (job.dir.path() / "s.json").string();
    const Outcome stopped = job.run({"--slots", "1", "--threads", "1", "--summary", summary}, how);
    INFO(stopped.err);
    CHECK(stopped.code == 75);
    CHECK(mentions(stopped, "--resume goes on"));
    check_rows(job.rows());
    const std::size_t kept = lines_of(job.rows()).size();
    CHECK(kept < 200);
    const auto figures = nlohmann::json::parse(TempDir::read(summary));
    CHECK(figures.at("exit_code") == 75);
    CHECK(figures.at("interrupted") == true);
    CHECK(figures.at("rows") == kept);
    CHECK(job.run({"--resume", "--summary", summary}).code == 0);
    CHECK((sorted_lines(job.rows()) == expected));
    CHECK(nlohmann::json::parse(TempDir::read(summary)).at("resumed_rows") == kept);
  }
}

TEST_CASE("a signal during a long prefill drops the step when the period of grace is over") {
  std::string lines;
  for (int i = 0; i < 3; ++i) {
    lines += R"({"id":"p)" + std::to_string(i) + R"(","prompt":")" + std::string(3500, "abc"[i]) +
             R"(","max_tokens":4})" + "\n";
  }
  const BatchFolder job(lines);
  lockstep::perf::LlamaShape shape = tiny_shape(lockstep::quant::Format::f16);
  shape.context = 8192;
  const std::string model = (job.dir.path() / "m.gguf").string();
  write_tiny_model(model, shape, lockstep::quant::Format::f16);
  const std::vector<std::string> options = {"-m", model, "--ctx", "8192", "--resume"};
  const std::vector<std::string> expected = job.undisturbed({"-m", model, "--ctx", "8192"});

  std::vector<std::string> at_once = options;
  at_once.insert(at_once.end(), {"--grace", "0"});
  CHECK(run_and_signal(job, at_once, "lockstep: model ", {SIGTERM}).outcome.code == 75);
  check_rows(job.rows());
  std::vector<std::string> soon = options;
  soon.insert(soon.end(), {"--grace", "0.01"});
  CHECK(run_and_signal(job, soon, "lockstep: model ", {SIGUSR1}).outcome.code == 75);
  check_rows(job.rows());
  CHECK(run_and_signal(job, options, "lockstep: model ", {SIGTERM, SIGINT}).outcome.code == 75);
  check_rows(job.rows());

  CHECK(job.run(options).code == 0);
  CHECK(sorted_lines(job.rows()) == expected);
}

TEST_CASE("a signal while the model is loaded ends the job before anything is written") {
  const BatchFolder job(requests(3));
  lockstep::perf::LlamaShape shape = tiny_shape(lockstep::quant::Format::f16);
  shape.layers = 24;
  shape.width = 512;
  shape.feed_forward = 2048;
  const std::string model = (job.dir.path() / "m.gguf").string();
  write_tiny_model(model, shape, lockstep::quant::Format::f16);
  REQUIRE(job.run({"-m", model}).code == 0);
  const std::vector<std::string> expected = sorted_lines(job.rows());
  const std::string first = lines_of(job.rows())[0] + "\n";
  // The note about resumed rows comes before the model is loaded.
  for (const std::vector<int>& signals :
       {std::vector<int>{SIGTERM}, std::vector<int>{SIGINT, SIGUSR1}}) {
    job.dir.write("out.jsonl", first);
    const Told told = run_and_signal(job, {"-m", model, "--resume"}, "resumed: ", signals);
    INFO(told.err);
    CHECK(told.outcome.code == 75);
    CHECK(told.err.find("stopped by a signal") != std::string::npos);
    CHECK(job.rows().compare(0, first.size(), first) == 0);
    check_rows(job.rows());
  }
  CHECK(job.run({"-m", model, "--resume"}).code == 0);
  CHECK(sorted_lines(job.rows()) == expected);
}
