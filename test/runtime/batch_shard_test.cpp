// The text of --shard, Slurm's variables behind it, and the names of the ranks' files.
#include "runtime/batch/shard.h"

#include <map>
#include <string>

#include "lockstep/error.h"
#include "runtime/batch/rank_files.h"
#include "support/catch.h"
#include "support/temp_dir.h"

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::TempDir;

namespace {

using Environment = std::map<std::string, std::string>;

ShardChoice choice(const std::string& text, const Environment& environment = {}) {
  return parse_shard(text, [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const std::string& text, const Environment& environment = {}) {
  try {
    choice(text, environment);
  } catch (const Error& error) {
    return error.code() == ErrorCode::usage ? error.what() : "another code";
  }
  return "accepted";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Task 6 of --array=3-9:3.
const Environment kArray = {{"SLURM_ARRAY_TASK_ID", "6"},    {"SLURM_ARRAY_TASK_MIN", "3"},
                            {"SLURM_ARRAY_TASK_MAX", "9"},   {"SLURM_ARRAY_TASK_STEP", "3"},
                            {"SLURM_ARRAY_TASK_COUNT", "3"}, {"SLURM_PROCID", "0"}};
// Task 1 of a step of 4.
const Environment kStep = {
    {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "1"}};

Environment with(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}
Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}
Environment both(Environment a, const Environment& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

}  // namespace

TEST_CASE("words of --shard are understood") {
  CHECK(choice("").sharing == Sharing::automatic);
  CHECK(choice("none").sharing == Sharing::none);
  CHECK(choice("mpi").sharing == Sharing::mpi);
  const ShardChoice third = choice("2/4");
  CHECK(third.sharing == Sharing::fixed);
  CHECK(third.shard == Shard{2, 4});
  CHECK(choice("0/1").shard == Shard{0, 1});
}

TEST_CASE("what is no shard is refused with what would be one") {
  CHECK(has(refusal("4/4"), "the shards of 4 are 0/4 to 3/4"));
  CHECK(has(refusal("0/0"), "no shard of 0"));
  for (const char* const wrong : {"1", "/", "1/", "/2", "a/b", "-1/2", "1/2/3", "1 /2", "all"}) {
    CAPTURE(wrong);
    CHECK(has(refusal(wrong), "must be i/n such as 0/4, or slurm, mpi, auto or none"));
  }
}

TEST_CASE("tasks of a Slurm array, of srun, and of both are counted through") {
  CHECK(choice("slurm", kArray).shard == Shard{1, 3});
  CHECK(choice("slurm", kStep).shard == Shard{1, 4});
  CHECK(choice("slurm", both(kArray, kStep)).shard == Shard{5, 12});
  CHECK(choice("auto", kArray).shard == Shard{1, 3});
  CHECK(choice("auto", kStep).shard == Shard{1, 4});
  // All numbers of such arrays are different.
  std::vector<unsigned> indices;
  for (const char* const id : {"3", "6", "9"}) {
    for (const char* const task : {"0", "1", "2", "3"}) {
      indices.push_back(choice("slurm", with(with(both(kArray, kStep), "SLURM_ARRAY_TASK_ID", id),
                                             "SLURM_PROCID", task))
                            .shard.index);
    }
  }
  CHECK(indices == std::vector<unsigned>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  // A step without a count of its own has the job's.
  CHECK(choice("slurm", with(without(kStep, "SLURM_STEP_NUM_TASKS"), "SLURM_NTASKS", "2")).shard ==
        Shard{1, 2});
}

TEST_CASE("a variable that Slurm did not set is named") {
  CHECK(has(refusal("slurm"), "neither SLURM_ARRAY_TASK_ID nor SLURM_STEP_ID is set"));
  for (const char* const name : {"SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX",
                                 "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT"}) {
    CHECK(has(refusal("slurm", without(kArray, name)), std::string(name) + " is not set"));
  }
  CHECK(has(refusal("slurm", without(kStep, "SLURM_PROCID")), "SLURM_PROCID is not set"));
  CHECK(has(refusal("slurm", without(kStep, "SLURM_STEP_NUM_TASKS")), "SLURM_NTASKS is not set"));
  CHECK(has(refusal("slurm", with(kStep, "SLURM_PROCID", "x")), "SLURM_PROCID=\"x\""));
  CHECK(has(refusal("slurm", with(kStep, "SLURM_PROCID", "4")), "SLURM_STEP_NUM_TASKS=4"));
  CHECK(has(refusal("auto"), "neither by mpirun nor by srun"));
}

TEST_CASE("a batch script with several tasks is told to use srun") {
  CHECK(has(refusal("slurm", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}),
            "this is the batch script, not one of its 2 tasks: put srun before the command"));
}

TEST_CASE("an array with holes is refused") {
  // --array=1,5,7, as Slurm describes it.
  const Environment holes = {{"SLURM_ARRAY_TASK_ID", "5"},
                             {"SLURM_ARRAY_TASK_MIN", "1"},
                             {"SLURM_ARRAY_TASK_MAX", "7"},
                             {"SLURM_ARRAY_TASK_STEP", "1"},
                             {"SLURM_ARRAY_TASK_COUNT", "3"}};
  CHECK(has(refusal("slurm", holes), "the array has holes"));
  CHECK(has(refusal("slurm", holes), "such as 0-2"));
  CHECK(has(refusal("slurm", with(kArray, "SLURM_ARRAY_TASK_STEP", "0")), "has holes"));
}

TEST_CASE("ranks of MPI launchers are counted without MPI, too") {
  CHECK(choice("auto", {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).shard ==
        Shard{1, 2});
  CHECK(choice("auto", {{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}).shard == Shard{0, 3});
}

TEST_CASE("ranks have files of their own, which are found whatever their number was") {
  CHECK(rank_file("/a/out.jsonl", 3) == "/a/out.rank-3.jsonl");
  CHECK(rank_file("out", 0) == "out.rank-0");
  CHECK(rank_file("a.b/out.x.jsonl", 12) == "a.b/out.x.rank-12.jsonl");
  const TempDir dir;
  for (const char* const name :
       {"out.rank-10.jsonl", "out.rank-2.jsonl", "out.rank-0.jsonl", "out.jsonl", "out.rank-.jsonl",
        "out.rank-1.jsonl.job", "out.rank-x.jsonl", "out.rank-01.jsonl", "other.rank-1.jsonl",
        "out.rank-1", "out.rank-1.json"}) {
    dir.write(name, "");
  }
  const std::filesystem::path out = dir.path() / "out.jsonl";
  CHECK(find_rank_files(out) == std::vector<std::filesystem::path>{
                                    rank_file(out, 0), rank_file(out, 2), rank_file(out, 10)});
  CHECK(find_rank_files(dir.path() / "out") ==
        std::vector<std::filesystem::path>{dir.path() / "out.rank-1"});
  CHECK(find_rank_files(dir.path() / "no folder" / "out.jsonl").empty());
}
