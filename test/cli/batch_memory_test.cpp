// Memory does not grow with the number of lines, and what is not there is refused. Not for
// sanitizers, which keep freed memory and need an address space without a limit.
#include <string>

#include "support/catch.h"
#include "support/tiny_model.h"
#include "test/cli/batch_jobs.h"

using namespace lockstep::test;

namespace {

// One in ten is answered, the others are refused: error rows are quick.
std::string short_requests(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += R"({"id":"request-)" + std::to_string(i) + R"(","prompt":"a","max_tokens":)" +
            (i % 10 == 0 ? "1" : "0") + "}\n";
  }
  return text;
}

// The most memory that the run took.
std::size_t peak_of(const BatchFolder& job, const std::vector<std::string>& options) {
  const std::string summary = (job.dir.path() / "summary.json").string();
  std::vector<std::string> all = {"--slots", "64", "--resume", "--summary", summary};
  all.insert(all.end(), options.begin(), options.end());
  const Outcome outcome = job.run(all);
  INFO(outcome.err);
  REQUIRE(outcome.code == 1);
  const auto bytes = nlohmann::json::parse(TempDir::read(summary)).at("peak_memory_bytes");
  REQUIRE(bytes > 0);
  return bytes;
}

}  // namespace

TEST_CASE("a hundred thousand lines take the memory of a thousand, resumed and sorted too") {
  constexpr std::size_t kMargin = std::size_t{8} << 20;
  std::size_t fresh[2] = {}, resumed[2] = {};
  for (const bool is_long : {false, true}) {
    const std::size_t count = is_long ? 100000 : 1000;
    const BatchFolder job(short_requests(count));
    const std::string model = (job.dir.path() / "m.gguf").string();
    write_tiny_model(model, lockstep::quant::Format::f16);
    fresh[is_long] = peak_of(job, {"-m", model});
    // The last rows again: most of the output is read and few rows are computed.
    const std::string rows = job.rows();
    job.dir.write("out.jsonl", rows.substr(0, rows.size() - 1000));
    resumed[is_long] = peak_of(job, {"-m", model, "--sorted"});
    CHECK(lines_of(job.rows()).size() == count);
  }
  CHECK(fresh[1] < fresh[0] + kMargin);
  CHECK(resumed[1] < resumed[0] + kMargin);
}

TEST_CASE(
    "memory that a limit does not leave is refused before the model is read, with all figures") {
  const BatchFolder job(requests(3));
  Invocation how;
  how.launcher = {"/bin/bash", "-c", "ulimit -v 400000; exec \"$0\" \"$@\""};
  Outcome outcome = job.run({"--ctx", "200000", "-t", "1"}, how);
  INFO(outcome.err);
  CHECK(outcome.code == 71);
  CHECK(mentions(outcome, "not enough memory: weights "));
  CHECK(mentions(outcome, "limit of the address space (ulimit -v) leaves "));
  CHECK(outcome.messages().size() == 1);
  CHECK_FALSE(std::filesystem::exists(job.output));
  // What fits is shown, and taken.
  outcome = job.run({"--slots", "2000", "-t", "1"}, how);
  CHECK(outcome.code == 0);
  CHECK(mentions(outcome, " (limit of the address space (ulimit -v)): weights "));
}
