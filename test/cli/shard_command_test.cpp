// `lockstep batch --shard`: processes that share a job by line number and know nothing of each
// other, as tasks of Slurm do.
#include <string>
#include <vector>

#include "support/catch.h"
#include "test/cli/batch_parts.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

Invocation in(const Variables& environment) {
  Invocation how;
  how.environment = environment;
  return how;
}

Variables slurm_step(const std::string& task, const std::string& tasks) {
  return {{"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_TASKS", tasks},
          {"SLURM_PROCID", task},
          {"SLURM_LOCALID", "0"},
          {"SLURM_STEP_TASKS_PER_NODE", "1(x" + tasks + ")"},
          {"SLURM_NODEID", task}};
}

}  // namespace

TEST_CASE("two shards at the same time answer what one process answers") {
  const SharedJob job(requests(41) + "\n{}\n");
  const std::vector<std::string> expected = job.undisturbed();
  Invocation how;
  Outcome second;
  how.meanwhile = [&](pid_t) { second = job.run({"--shard", "1/2"}); };
  const Outcome first = job.run({"--shard", "0/2"}, how);
  INFO(first.err << second.err);
  CHECK(first.code == 0);
  CHECK(second.code == 1);  // the bad line is its own
  CHECK(mentions(first, "rank 0 of 2: 21 of 21 rows"));
  CHECK(mentions(second, "rank 1 of 2: 21 of 21 rows"));
  CHECK(lines_of(job.part_rows(0)).size() == 21);
  job.check_complete(expected);

  const std::string merged = (job.dir.path() / "merged.jsonl").string();
  CHECK(job.merge(merged).code == 1);
  CHECK(sorted_lines(TempDir::read(merged)) == expected);
}

TEST_CASE("another number of shards, or a process alone, goes on where all have stopped") {
  const SharedJob job(requests(40));
  const std::vector<std::string> expected = job.undisturbed();
  for (const char* const shard : {"0/2", "1/2"}) REQUIRE(job.run({"--shard", shard}).code == 0);
  job.cut_part(0, 5, 9);
  job.cut_part(1, 7, 0);
  const Outcome third = job.run({"--shard", "0/3", "--resume"});
  INFO(third.err);
  CHECK(third.code == 0);
  CHECK(
      mentions(third, "resumed: 12 of 40 rows were there, 5 of them in this output and the rest"));
  CHECK(mentions(third, "a torn last row of 9 bytes is cut off"));
  CHECK(job.run({"--shard", "2/3", "--resume"}).code == 0);
  // All that is left.
  CHECK(job.run({"--resume"}).code == 0);
  CHECK_FALSE(job.rows().empty());
  job.check_complete(expected);

  const Outcome nothing = job.run({"--shard", "4/5", "--resume"});
  CHECK(nothing.code == 0);
  CHECK(mentions(nothing, "nothing was left to compute"));
  CHECK_FALSE(std::filesystem::exists(job.part(4)));
  job.check_complete(expected);
}

TEST_CASE("a torn row of another part counts as missing and is left to its owner") {
  const SharedJob job(requests(30));
  const std::vector<std::string> expected = job.undisturbed();
  for (const char* const shard : {"0/2", "1/2"}) REQUIRE(job.run({"--shard", shard}).code == 0);
  job.cut_part(1, 10, 20);
  const std::string torn = job.part_rows(1);
  CHECK(job.run({"--shard", "0/1", "--resume"}).code == 0);
  CHECK(job.part_rows(1) == torn);
  const std::string merged = (job.dir.path() / "merged.jsonl").string();
  const Outcome outcome = job.merge(merged);
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(sorted_lines(TempDir::read(merged)) == expected);
}

TEST_CASE("parts of another model, input or options are noticed, whichever process wrote them") {
  const SharedJob job(requests(12));
  REQUIRE(job.run({"--shard", "0/2"}).code == 0);
  const Outcome seed = job.run({"--shard", "1/2", "--resume", "--seed", "5"});
  CHECK(seed.code == 65);
  CHECK(mentions(seed, "out.rank-0.jsonl: cannot be resumed: seed was 0, now 5"));
  CHECK_FALSE(std::filesystem::exists(job.part(1)));
  job.dir.write("in.jsonl", requests(12, 9));
  const Outcome input = job.run({"--shard", "1/2", "--resume"});
  CHECK(input.code == 65);
  CHECK(mentions(input, "has changed"));
  // An input that grew is the same job.
  job.dir.write("in.jsonl", requests(14));
  CHECK(job.run({"--shard", "1/2", "--resume"}).code == 0);
  CHECK(job.run({"--shard", "0/2", "--resume"}).code == 0);
  job.check_complete(job.undisturbed());
}

TEST_CASE("tasks of Slurm find their shards") {
  const SharedJob job(requests(25));
  const std::vector<std::string> expected = job.undisturbed();
  for (const char* const id : {"4", "6"}) {
    for (const char* const task : {"0", "1"}) {
      Variables both = slurm_step(task, "2");
      for (const auto& [name, value] : Variables{{"SLURM_ARRAY_TASK_ID", id},
                                                 {"SLURM_ARRAY_TASK_MIN", "4"},
                                                 {"SLURM_ARRAY_TASK_MAX", "6"},
                                                 {"SLURM_ARRAY_TASK_STEP", "2"},
                                                 {"SLURM_ARRAY_TASK_COUNT", "2"}}) {
        both.emplace_back(name, value);
      }
      const Outcome outcome = job.run({"--shard", "slurm"}, in(both));
      INFO(outcome.err);
      CHECK(outcome.code == 0);
    }
  }
  CHECK(std::filesystem::exists(job.part(3)));
  job.check_complete(expected);

  const Outcome missing = job.run({"--shard", "slurm"}, in({{"SLURM_ARRAY_TASK_ID", "1"}}));
  CHECK(missing.code == 64);
  CHECK(mentions(missing, "SLURM_ARRAY_TASK_MIN is not set"));
  CHECK(missing.messages().size() == 1);
}

TEST_CASE("tasks that all answer the whole input are told so, once") {
  const SharedJob job(requests(2));
  const auto output_of = [&](const char* task, const std::vector<std::string>& options) {
    std::filesystem::remove(job.output);
    Outcome outcome = job.run(options, in(slurm_step(task, "2")));
    CHECK(outcome.code == 0);
    CHECK(lines_of(job.rows()).size() == 2);
    return outcome.err;
  };
  CHECK(count(output_of("0", {}), "2 tasks were started, and each answers the whole input") == 1);
  CHECK(count(output_of("1", {}), "were started") == 0);
  CHECK(count(output_of("0", {"--shard", "none"}), "were started") == 0);
}

TEST_CASE("what cannot be shared is refused before any work") {
  const SharedJob job(requests(2));
  const auto refused = [&](const std::vector<std::string>& options, const std::string& why) {
    const Outcome outcome = job.run(options);
    INFO(outcome.err);
    CHECK(outcome.code == 64);
    CHECK(mentions(outcome, why));
    CHECK(outcome.messages().size() == 1);
  };
  refused({"--shard", "2/2"}, "the shards of 2 are 0/2 to 1/2");
  refused({"--shard", "half"}, "must be i/n");
  refused({"--shard", "auto"}, "started neither by mpirun nor by srun");
  refused({"--shard", "mpi"}, "--shard mpi: ");
  Outcome stream = run({"batch", "-i", job.input.string(), "-o", "-", "--shard", "0/2"});
  CHECK(stream.code == 64);
  CHECK(mentions(stream, "need an --output that is a file"));
}

TEST_CASE("summaries and outputs of shards have the rank in their names") {
  const SharedJob job(requests(5));
  const std::filesystem::path summary = job.dir.path() / "summary.json";
  REQUIRE(job.run({"--shard", "1/3", "--summary", summary.string()}).code == 0);
  const json told = json::parse(TempDir::read(lockstep::batch::rank_file(summary, 1)));
  CHECK(told.at("rank") == 1);
  CHECK(told.at("ranks") == 3);
  CHECK(told.at("rows") == 2);
  CHECK(told.at("interrupted") == false);
  CHECK(std::filesystem::exists(job.part(1)));
  CHECK(std::filesystem::exists(job.part(1).string() + ".job"));
  CHECK_FALSE(std::filesystem::exists(job.output));
  // A shard's own output is not overwritten.
  CHECK(job.run({"--shard", "1/3"}).code == 73);
}
