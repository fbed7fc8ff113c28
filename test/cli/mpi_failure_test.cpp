// Ranks that cannot begin, that die, that are stopped: nobody waits for ever, no row is lost, and
// --resume ends the job.
#include <signal.h>
#include <sys/resource.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "support/catch.h"
#include "test/cli/mpi_ranks.h"

using namespace lockstep::test;

namespace {

// Enough work that no rank is done before the test has done something to it, given few slots.
constexpr std::size_t kLines = 300;
std::string long_job() { return requests(kLines, 40); }

// Once rank 1 has written rows.
Invocation disturbed(const SharedJob& job, unsigned ranks,
                     const std::function<void(pid_t mpirun)>& disturb) {
  Invocation how = under_mpirun(ranks);
  how.meanwhile = [&job, disturb](pid_t mpirun) {
    CHECK(wait_until([&] { return job.part_bytes(1) > 0; }));
    disturb(mpirun);
  };
  return how;
}

void check_resumes(const SharedJob& job, unsigned ranks) {
  const Outcome resumed = job.run({"--resume"}, under_mpirun(ranks));
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(mentions(resumed, "all ranks: 300 of 300 rows are in "));
  job.check_complete(job.undisturbed());
}

}  // namespace

TEST_CASE("a rank that is killed ends the others and loses no finished row") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob job(long_job());
  const Outcome killed = job.run({"--slots", "1"}, disturbed(job, 2, [](pid_t mpirun) {
                                   const pid_t rank = process_of_rank(mpirun, 1);
                                   CHECK(rank > 0);
                                   if (rank > 0) ::kill(rank, SIGKILL);
                                 }));
  INFO(killed.err);
  CHECK(killed.code == 128 + SIGKILL);
  CHECK(lines_of(job.all_rows()).size() < kLines);
  check_resumes(job, 2);
}

TEST_CASE("ranks that are stopped end with code 75; another number of them goes on") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob job(long_job());
  // mpirun hands this signal to all ranks.
  const Outcome stopped =
      job.run({"--slots", "1"}, disturbed(job, 2, [](pid_t mpirun) { ::kill(mpirun, SIGUSR1); }));
  INFO(stopped.err);
  CHECK(stopped.code == 75);
  CHECK(count(stopped.err, "stopped by a signal") == 2);
  check_rows(job.all_rows());
  check_resumes(job, 3);
}

TEST_CASE("a rank whose disk is full leaves the rest to the others") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob job(long_job());
  const Outcome full = job.run({"--slots", "2"}, disturbed(job, 2, [&](pid_t mpirun) {
                                 const pid_t rank = process_of_rank(mpirun, 1);
                                 const rlimit limit{job.part_bytes(1), job.part_bytes(1)};
                                 CHECK(rank > 0);
                                 CHECK(::prlimit(rank, RLIMIT_FSIZE, &limit, nullptr) == 0);
                               }));
  INFO(full.err);
  CHECK(full.code == 74);
  CHECK(count(full.err, "lockstep: error: ") == 1);
  CHECK(mentions(full, "error: rank 1 of 2: "));
  CHECK(mentions(full, "cannot write"));
  check_rows(job.all_rows());
  // What rank 1 had taken is missing, and nothing else.
  CHECK(lines_of(job.all_rows()).size() > kLines - 40);
  check_resumes(job, 2);
}

TEST_CASE("what prevents a job on all ranks is told once, before any output is made") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob job(requests(4));
  const auto refused = [](const SharedJob& tried, const std::vector<std::string>& options, int code,
                          const std::string& why) {
    const Outcome outcome = tried.run(options, under_mpirun(2));
    INFO(outcome.err);
    CHECK(outcome.code == code);
    CHECK(count(outcome.err, "lockstep: error: rank 0 of 2: ") == 1);
    CHECK(count(outcome.err, "lockstep: error: ") == 1);
    CHECK(mentions(outcome, why));
    CHECK(tried.all_rows().empty());
  };
  refused(job, {"--temperature", "-1"}, 64, "temperature");
  refused(job, {"-m", job.input.string()}, 69, "not a GGUF file");
  std::ofstream(job.part(7)).flush();
  refused(job, {}, 73, "out.rank-7.jsonl: exists already");
  SharedJob blind(requests(4));
  blind.input = blind.dir.path() / "no-such-file.jsonl";
  refused(blind, {}, 66, "cannot open");
  SharedJob stream(requests(4));
  stream.output = "-";
  refused(stream, {}, 64, "need an --output that is a file");
}

TEST_CASE("one rank that cannot begin stops all, and so do two jobs with one output") {
  LOCKSTEP_NEEDS_MPI();
  const SharedJob job(requests(4));
  const auto refused = [&](const std::vector<std::string>& second, int code,
                           const std::string& why) {
    const Outcome outcome = run(under_mpirun(job, job, second));
    INFO(outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.code == code);
    CHECK(count(outcome.err, "lockstep: error: ") == 1);
    CHECK(mentions(outcome, why));
    CHECK(job.all_rows().empty());
  };
  refused({"--no-such-option"}, 64, "--no-such-option");
  refused({"--top-p", "7"}, 64, "rank 1 of 2: top_p");
  refused({"--threads", "5000"}, 64, "rank 1 of 2: threads must be");
  refused({"--seed", "9"}, 64,
          "ranks 0 and 1 have this output and different options (seed: 0 and 9)");
}
