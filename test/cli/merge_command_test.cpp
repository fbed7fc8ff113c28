// `lockstep merge` on the outputs of real jobs.
#include <string>
#include <vector>

#include "support/catch.h"
#include "test/cli/batch_jobs.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

// Two outputs of one job, that have the even and the odd lines.
struct Parts {
  BatchFolder job{requests(12) + "{}\n"};
  std::string merged = (job.dir.path() / "merged.jsonl").string();
  std::string whole;
  std::vector<std::string> names;

  Parts() {
    REQUIRE(job.run({"--slots", "1"}).code == 1);
    whole = job.rows();
    const std::string record = TempDir::read(job.output.string() + ".job");
    const std::vector<std::string> rows = lines_of(whole);
    for (const std::size_t first : {0u, 1u}) {
      std::string part;
      for (std::size_t i = first; i < rows.size(); i += 2) part.insert(0, rows[i] + "\n");
      const std::string name = "part" + std::to_string(first);
      names.push_back(job.dir.write(name, part).string());
      job.dir.write(name + ".job", record);
    }
  }
  Outcome merge(const std::vector<std::string>& parts,
                const std::vector<std::string>& options = {}) const {
    std::vector<std::string> all = {"merge", "-i", job.input.string(), "-o", merged};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), parts.begin(), parts.end());
    return run(all);
  }
};

}  // namespace

TEST_CASE("merged parts are the output of one run, in the order of the input") {
  const Parts parts;
  const Outcome outcome = parts.merge(parts.names);
  INFO(outcome.err);
  CHECK(outcome.code == 1);  // as the batch itself: there is an error row
  CHECK(mentions(outcome, "13 of 13 rows (1 error rows) of 2 parts"));
  CHECK(TempDir::read(parts.merged) == parts.whole);
  const Outcome again = parts.merge(parts.names);
  CHECK(again.code == 73);
  CHECK(parts.merge(parts.names, {"--force"}).code == 1);
}

TEST_CASE("missing rows are named; --partial writes the others, and a batch goes on from there") {
  const Parts parts;
  const Outcome outcome = parts.merge({parts.names[0]});
  CHECK(outcome.code == 65);
  CHECK(mentions(outcome, "6 of 13 lines have no row: 2, 4, 6, 8, 10, 12;"));
  CHECK_FALSE(std::filesystem::exists(parts.merged));
  const Outcome partial = parts.merge({parts.names[0]}, {"--partial"});
  CHECK(partial.code == 1);
  CHECK(mentions(partial, "warning: 6 lines have no row"));
  CHECK(lines_of(TempDir::read(parts.merged)).size() == 7);
  const Outcome rest =
      run({"batch", "-i", parts.job.input.string(), "-o", parts.merged, "--resume", "--sorted"});
  INFO(rest.err);
  CHECK(rest.code == 1);
  CHECK(TempDir::read(parts.merged) == parts.whole);
}

TEST_CASE("parts that do not belong together are refused") {
  const Parts parts;
  std::string other = TempDir::read(parts.names[1]);
  const std::string one = lines_of(TempDir::read(parts.names[0]))[0] + "\n";
  parts.job.dir.write("part1", other + one);
  const Outcome twice = parts.merge(parts.names);
  CHECK(twice.code == 1);
  CHECK(mentions(twice, "1 rows were there more than once"));
  std::filesystem::remove(parts.merged);

  std::string changed = one;
  changed.replace(changed.find("\"line\""), 6, "\"note\":1,\"line\"");
  parts.job.dir.write("part1", other + changed);
  const Outcome different = parts.merge(parts.names);
  CHECK(different.code == 65);
  CHECK(mentions(different, "part1: line 7: another row than the one in "));
  CHECK_FALSE(std::filesystem::exists(parts.merged));

  parts.job.dir.write("part1", other);
  json record = json::parse(TempDir::read(parts.names[1] + ".job"));
  record["options"]["temperature"] = 0.5;
  parts.job.dir.write("part1.job", record.dump());
  const Outcome options = parts.merge(parts.names);
  CHECK(options.code == 65);
  CHECK(mentions(options, "temperature is 0 in "));
  CHECK(mentions(options, " and 0.5 in "));
  CHECK_FALSE(std::filesystem::exists(parts.merged));
  CHECK(parts.merge({parts.names[0], "no-such-file"}).code == 66);
}
