// Claims on cores, between processes.
#include "topology/core_claims.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.h"
#include "support/scoped_variable.h"

using namespace lockstep::topology;
using lockstep::test::ScopedVariable;

namespace {

// Numbers that no machine has, so that tests that run at the same time do not meet.
std::vector<unsigned> processors() {
  const auto base = 1000000u + 8u * static_cast<unsigned>(getpid());
  return {base, base + 1, base + 2};
}

}  // namespace

TEST_CASE("engines of one process share their claims") {
  const std::vector<unsigned> mine = processors();
  const CoreClaims first(mine);
  CHECK(first.taken().empty());
  const CoreClaims second(mine);
  CHECK(second.taken().empty());
}

TEST_CASE("a claim of another process is seen, and gone with it") {
  const std::vector<unsigned> list = processors();
  int ready[2], done[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(done) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const CoreClaims theirs({list[0], list[2]});
    char byte = theirs.taken().empty() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    close(done[1]);
    if (read(done[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK(byte == 'y');
  {
    const CoreClaims ours(list);
    CHECK(ours.taken() == std::vector<unsigned>{list[0], list[2]});
  }
  close(done[1]);  // the child ends without giving anything back
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(CoreClaims(list).taken().empty());
  for (const int end : {ready[0], ready[1], done[0]}) close(end);
}

TEST_CASE("launchers tell of several local ranks") {
  const ScopedVariable local("SLURM_LOCALID", nullptr), tasks("SLURM_NTASKS", nullptr);
  const ScopedVariable mpich("MPI_LOCALNRANKS", nullptr);
  const ScopedVariable open("OMPI_COMM_WORLD_LOCAL_SIZE", nullptr);
  CHECK_FALSE(is_one_of_several_ranks());
  {
    const ScopedVariable two("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
    CHECK(is_one_of_several_ranks());
  }
  {
    const ScopedVariable one("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
    CHECK_FALSE(is_one_of_several_ranks());
  }
  {
    const ScopedVariable id("SLURM_LOCALID", "0"), many("SLURM_NTASKS", "4");
    CHECK(is_one_of_several_ranks());
  }
}
