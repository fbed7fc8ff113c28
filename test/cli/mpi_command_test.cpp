// `mpirun lockstep batch`: ranks that share a job answer what one process answers.
#include <string>
#include <vector>

#include "support/catch.h"
#include "test/cli/mpi_ranks.h"
#include "topology/machine.h"

using namespace lockstep;
using namespace lockstep::test;
using nlohmann::json;

TEST_CASE("ranks share a job: every line once, the rows of one process") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob whole(requests(150));
  const std::vector<std::string> expected = whole.undisturbed();
  for (const unsigned ranks : {2u, 3u}) {
    const SharedJob job(requests(150));
    const Outcome outcome = job.run({}, under_mpirun(ranks));
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    job.check_complete(expected);
    for (unsigned rank = 0; rank < ranks; ++rank) CHECK_FALSE(job.part_rows(rank).empty());
    CHECK_FALSE(std::filesystem::exists(job.output));
    CHECK(count(outcome.err, "all ranks: 150 of 150 rows are in ") == 1);
    const std::string merged = (job.dir.path() / "merged.jsonl").string();
    CHECK(job.merge(merged).code == 0);
    CHECK(sorted_lines(TempDir::read(merged)) == expected);
  }
}

TEST_CASE("unbound ranks divide the cores") {
  LOCKSTEP_NEEDS_MPI();
  const topology::Machine machine = topology::Machine::detect();
  if (machine.cores.size() < 2) {
    WARN("SKIPPED: one core cannot be divided");
    return;
  }
  const SharedJob job(requests(4));
  const Outcome outcome = job.run({}, under_mpirun(2));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(count(outcome.err, "local rank 0 of 2: node") == 1);
  CHECK(count(outcome.err, "local rank 1 of 2: node") == 1);
  CHECK(count(outcome.err, "used by another rank") == 0);
}

TEST_CASE("a dry run under mpirun is refused, in so many words") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob job(requests(4));
  const Outcome outcome = job.run({"--dry-run"}, under_mpirun(2));
  INFO(outcome.err);
  CHECK(outcome.code == 64);
  CHECK(mentions(outcome, "--dry-run is for a single process, not for mpirun"));
}

TEST_CASE("two ranks, merged, are the same bytes as one process, sorted") {
  LOCKSTEP_NEEDS_MPI();
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += R"({"id":)" + std::to_string(i) + R"(,"prompt":"Once upon a time there was a fox )" +
             std::to_string(i % 7) + R"(","logprobs":2,"temperature":)" + std::to_string(i % 2) +
             R"(,"max_tokens":)" + std::to_string(1 + i * 7 % 30) + "}\n";
  }
  const SharedJob alone(lines);
  REQUIRE(alone.run({"--sorted"}).code == 0);
  const SharedJob job(lines);
  const Outcome outcome = job.run({}, under_mpirun(2));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::string merged = (job.dir.path() / "merged.jsonl").string();
  CHECK(job.merge(merged).code == 0);
  CHECK(TempDir::read(merged) == alone.rows());
}

TEST_CASE("more ranks than lines, and an input without any") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob one(requests(1));
  CHECK(one.run({}, under_mpirun(3)).code == 0);
  one.check_complete(one.undisturbed());
  const SharedJob none("\n\n");
  const Outcome outcome = none.run({}, under_mpirun(2));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(none.all_rows().empty());
}

TEST_CASE("error rows of one rank end nobody: all lines are answered, the exit code is 1") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob job("{}\n" + requests(60));
  const std::vector<std::string> expected = job.undisturbed();
  const std::string summary = (job.dir.path() / "s.json").string();
  const Outcome outcome = job.run({"--summary", summary}, under_mpirun(2));
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  job.check_complete(expected);
  std::size_t rows = 0;
  for (const unsigned rank : {0u, 1u}) {
    const json told = json::parse(TempDir::read(batch::rank_file(summary, rank)));
    CHECK(told.at("rank") == rank);
    CHECK(told.at("ranks") == 2);
    rows += told.at("rows").get<std::size_t>();
  }
  CHECK(rows == 61);
}

// Between machines rank 0 has to answer the others itself. Messages over TCP alone are what that
// takes on one machine; later versions of Open MPI have no such part.
TEST_CASE("a rank that cannot reach the counter in memory asks rank 0 for lines") {
  LOCKSTEP_NEEDS_MPI();
  if (!open_mpi_version().starts_with("4.")) {
    WARN("SKIPPED: not Open MPI 4");
    return;
  }
  const SharedJob job(requests(100));
  const Outcome outcome =
      job.run({}, under_mpirun(2, {"--mca", "btl", "self,tcp", "--mca", "osc", "pt2pt"}));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  job.check_complete(job.undisturbed());
}

TEST_CASE("ranks with outputs of their own answer jobs of their own") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob a(requests(20)), b(requests(9, 30));
  const Outcome outcome = run(under_mpirun(a, b));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(count(outcome.err, "have outputs of their own: each answers its whole input") == 1);
  CHECK(sorted_lines(a.rows()) == a.undisturbed());
  CHECK(sorted_lines(b.rows()) == b.undisturbed());
}

TEST_CASE("ranks are counted without MPI, too, or not at all") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob job(requests(30));
  CHECK(job.run({"--shard", "auto"}, under_mpirun(2)).code == 0);
  CHECK(lines_of(job.part_rows(0)).size() == 15);
  job.check_complete(job.undisturbed());
  // A rank that is alone has a job like any other.
  const SharedJob alone(requests(5));
  CHECK(alone.run({}, under_mpirun(1)).code == 0);
  CHECK(sorted_lines(alone.rows()) == alone.undisturbed());
  CHECK(alone.run({"--resume"}, under_mpirun(1)).code == 0);
}
