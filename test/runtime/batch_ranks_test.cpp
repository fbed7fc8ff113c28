// Ranks that share a job: every line goes to one of them, and they agree before and after.
#include <algorithm>
#include <functional>
#include <memory>
#include <random>

#include "lockstep/error.h"
#include "runtime/batch/agreement.h"
#include "runtime/batch/chunk_claims.h"
#include "runtime/batch/line_set.h"
#include "runtime/batch/shard.h"
#include "support/catch.h"
#include "test/runtime/thread_ranks.h"

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::ThreadRanks;

namespace {

using Lines = std::vector<std::size_t>;

// Ranks in one thread that ask in an order drawn by lot: `weights` says how often each has its
// turn; with 0 it never begins. Returns the lines of each, of those that are in `asked`.
std::vector<Lines> share(std::size_t lines, const std::vector<double>& weights, unsigned seed,
                         const std::function<bool(std::size_t)>& asked) {
  const auto ranks = static_cast<unsigned>(weights.size());
  std::uint64_t counter = ranks;
  std::vector<std::unique_ptr<ChunkClaims>> claims;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    claims.push_back(std::make_unique<ChunkClaims>(
        lines, rank, ranks, [&counter] { return counter++; }, [] {}));
  }
  std::vector<Lines> taken(ranks);
  std::vector<std::size_t> next(ranks, 0);
  for (unsigned rank = 0; rank < ranks; ++rank) next[rank] = weights[rank] > 0 ? 0 : lines;
  std::mt19937 generator(seed);
  std::discrete_distribution<std::size_t> turn(weights.begin(), weights.end());
  while (*std::ranges::min_element(next) < lines) {
    const std::size_t rank = turn(generator);
    // Until a line of its own: that is what a free slot waits for.
    while (next[rank] < lines) {
      const std::size_t line = next[rank]++;
      if (!asked(line) || !claims[rank]->mine(line)) continue;
      taken[rank].push_back(line);
      break;
    }
  }
  return taken;
}

Lines joined(const std::vector<Lines>& parts) {
  Lines all;
  for (const Lines& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all);
  return all;
}

Lines counted(std::size_t lines, const std::function<bool(std::size_t)>& asked) {
  Lines all;
  for (std::size_t i = 0; i < lines; ++i) {
    if (asked(i)) all.push_back(i);
  }
  return all;
}

bool always(std::size_t) { return true; }

}  // namespace

TEST_CASE("ranks that take chunks answer every line exactly once") {
  for (const std::size_t lines : {0, 1, 2, 3, 7, 64, 65, 1000, 20011}) {
    for (const unsigned ranks : {1u, 2u, 3u, 7u, 64u}) {
      CAPTURE(lines, ranks);
      const std::vector<double> even(ranks, 1.0);
      CHECK(joined(share(lines, even, 1, always)) == counted(lines, always));
    }
  }
}

TEST_CASE("lines that have their rows already are passed over") {
  const auto every_third = [](std::size_t line) { return line % 3 == 1; };
  const auto tail = [](std::size_t line) { return line > 900; };
  const auto none = [](std::size_t) { return false; };
  for (unsigned seed = 0; seed < 20; ++seed) {
    CHECK(joined(share(1000, {1, 5, 2}, seed, every_third)) == counted(1000, every_third));
    CHECK(joined(share(1000, {1, 5, 2}, seed, tail)) == counted(1000, tail));
    CHECK(joined(share(1000, {1, 5, 2}, seed, none)).empty());
  }
}

TEST_CASE(
    "a slow rank takes fewer lines, and a rank that comes late leaves its first chunk alone") {
  const std::vector<Lines> parts = share(10000, {1, 9}, 3, always);
  CHECK(parts[0].size() > 700);
  CHECK(parts[0].size() < 1400);
  // Lines of one rank are in order.
  for (const Lines& part : parts) CHECK(std::ranges::is_sorted(part));
  const std::vector<Lines> late = share(1000, {1, 0}, 1, always);
  CHECK(late[0].size() == 1000 - 1000 / 32 + 1);
}

TEST_CASE("chunks cover the lines, sixteen or more for each rank, and end small") {
  for (const std::size_t lines : {1, 5, 100, 5000, 1000000}) {
    for (const unsigned ranks : {1u, 2u, 16u, 1000u}) {
      CAPTURE(lines, ranks);
      ChunkSchedule schedule(lines, ranks);
      std::size_t end = 0;
      std::uint64_t number = 0;
      for (; end < lines; ++number) {
        const ChunkSchedule::Chunk chunk = schedule.chunk(number);
        REQUIRE(chunk.begin == end);
        const std::size_t size = chunk.end - chunk.begin;
        REQUIRE(size >= 1);
        REQUIRE(size <= 64);
        const bool is_fair = size == 1 || size * 16 * ranks <= lines - chunk.begin;
        REQUIRE(is_fair);
        end = chunk.end;
      }
      CHECK(end == lines);
      CHECK(number >= std::min<std::size_t>(lines, std::size_t{16} * ranks));
      CHECK(schedule.chunk(number).begin == lines);
      CHECK(schedule.chunk(number + 7).end > lines);
    }
  }
}

TEST_CASE("what all ranks have taken is known to whoever took last") {
  std::uint64_t counter = 1;
  ChunkClaims claims(
      100, 0, 1, [&] { return counter++; }, [] {});
  CHECK(claims.taken() == 0);
  claims.mine(0);
  CHECK(claims.taken() == 6);
  claims.mine(99);
  CHECK(claims.taken() == 100);
}

TEST_CASE("sets of finished lines are joined") {
  LineSet all, others;
  for (const std::size_t line : {1, 64, 200}) all.add(line);
  for (const std::size_t line : {2, 64, 1000}) others.add(line);
  CHECK(all.add_all(others) == 2);
  CHECK(all.add_all(others) == 0);
  CHECK(all.add_all(LineSet()) == 0);
  for (const std::size_t line : {1, 2, 64, 200, 1000}) CHECK(all.contains(line));
  CHECK_FALSE(all.contains(3));
  CHECK(all.words().size() == 1000 / 64 + 1);
  CHECK(all.words()[1] == 1);
}

TEST_CASE("shards by number answer every line exactly once") {
  for (const unsigned count : {1u, 2u, 5u}) {
    for (std::size_t line = 0; line < 23; ++line) {
      unsigned answered = 0;
      for (unsigned index = 0; index < count; ++index) {
        answered += StaticShard({index, count}).mine(line) ? 1 : 0;
      }
      CHECK(answered == 1);
    }
  }
  LineClaims all;
  CHECK(all.mine(17));
}

TEST_CASE("threads in the place of ranks count up and share a job") {
  constexpr std::size_t kLines = 5000;
  ThreadRanks ranks(4);
  std::vector<Lines> parts(4);
  ranks.run([&](Ranks& one) {
    ChunkClaims claims(
        kLines, one.rank(), one.ranks(), [&] { return one.ranks() + one.count_up(); },
        [&] { one.progress(); });
    for (std::size_t line = 0; line < kLines; ++line) {
      if (claims.mine(line)) parts[one.rank()].push_back(line);
      claims.progress();
    }
    one.finish();
  });
  CHECK(joined(parts) == counted(kLines, always));
  for (const Lines& part : parts) CHECK_FALSE(part.empty());
}

namespace {

// What have_one_job() says on every rank: "1", "0", or the error.
std::vector<std::string> verdicts(const std::vector<JobIdentity>& jobs) {
  ThreadRanks ranks(static_cast<unsigned>(jobs.size()));
  std::vector<std::string> said(jobs.size());
  ranks.run([&](Ranks& one) {
    try {
      said[one.rank()] = have_one_job(one, jobs[one.rank()]) ? "1" : "0";
    } catch (const Error& error) {
      said[one.rank()] = error.code() == ErrorCode::usage ? error.what() : "another code";
    }
  });
  return said;
}

const JobIdentity kJob = {
    "/data/in.jsonl", 1000, "/data/out.jsonl", {{"seed", "1"}, {"top_k", "0"}}};

}  // namespace

TEST_CASE("ranks with the same job share it, ranks with outputs of their own do not") {
  CHECK(verdicts({kJob, kJob, kJob}) == std::vector<std::string>{"1", "1", "1"});
  JobIdentity other = kJob;
  other.output = "/data/other.jsonl";
  CHECK(verdicts({kJob, other}) == std::vector<std::string>{"0", "0"});
  other.input = "/data/other-in.jsonl";
  other.options["seed"] = "2";
  CHECK(verdicts({kJob, other}) == std::vector<std::string>{"0", "0"});
  // A rank that cannot read the input says so when it opens it.
  JobIdentity blind = kJob;
  blind.input_bytes.reset();
  CHECK(verdicts({kJob, blind}) == std::vector<std::string>{"1", "1"});
}

TEST_CASE("one output for two jobs is refused by all ranks, naming two of them") {
  const auto refusal = [](JobIdentity changed) {
    const std::vector<std::string> said = verdicts({kJob, kJob, changed});
    CHECK(said[0] == said[1]);
    CHECK(said[0] == said[2]);
    CHECK(said[0].starts_with("/data/out.jsonl: ranks 0 and 2 have this output and "));
    return said[0];
  };
  JobIdentity changed = kJob;
  changed.options["seed"] = "2";
  CHECK(refusal(changed).find("different options (seed: 1 and 2)") != std::string::npos);
  changed.input_bytes = 999;
  CHECK(refusal(changed).find("different sizes") != std::string::npos);
  changed.input = "/data/in2.jsonl";
  CHECK(refusal(changed).find("different inputs") != std::string::npos);
  JobIdentity other = kJob;
  other.output = "/data/other.jsonl";
  CHECK(verdicts({kJob, other, kJob})[1].starts_with("3 ranks write 2 outputs"));
}

TEST_CASE("the first failure is known to all ranks") {
  ThreadRanks ranks(3);
  std::vector<std::optional<Failure>> none(3), some(3);
  const std::vector<int> codes = {0, 69, 66};
  ranks.run([&](Ranks& one) {
    none[one.rank()] = first_failure(one, 0);
    some[one.rank()] = first_failure(one, codes[one.rank()]);
  });
  for (unsigned rank = 0; rank < 3; ++rank) {
    CHECK_FALSE(none[rank]);
    REQUIRE(some[rank]);
    CHECK(some[rank]->rank == 1);
    CHECK(some[rank]->code == 69);
  }
}

TEST_CASE("a rank that sees something else than rank 0 is found by all") {
  ThreadRanks ranks(3);
  std::vector<std::optional<unsigned>> same(3), other(3);
  ranks.run([&](Ranks& one) {
    same[one.rank()] = first_other(one, "100 lines");
    other[one.rank()] = first_other(one, one.rank() == 2 ? "99 lines" : "100 lines");
  });
  for (unsigned rank = 0; rank < 3; ++rank) {
    CHECK_FALSE(same[rank]);
    CHECK(other[rank] == 2u);
  }
}

TEST_CASE("the end of a job is the worst of all ends, and rows are summed up") {
  CHECK(worse_code(0, 1) == 1);
  CHECK(worse_code(75, 1) == 75);
  CHECK(worse_code(75, 64) == 64);
  CHECK(worse_code(70, 74) == 74);
  CHECK(worse_code(0, 0) == 0);
  ThreadRanks ranks(3);
  std::vector<JobEnd> ends(3);
  ranks.run([&](Ranks& one) {
    const unsigned rank = one.rank();
    ends[rank] = end_of_all(one, {rank == 1 ? 74 : rank == 2 ? 75 : 1, 10 + rank, rank});
  });
  for (const JobEnd& end : ends) {
    CHECK(end.code == 74);
    CHECK(end.rows == 33);
    CHECK(end.errors == 3);
  }
}
