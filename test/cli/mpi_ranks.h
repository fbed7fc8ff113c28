// Running the command under a real mpirun.
#pragma once

#include <sys/types.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/catch.h"
#include "test/cli/batch_parts.h"

namespace lockstep::test {

// "4.1.4" if the command was built with Open MPI and mpirun is here, else "".
std::string open_mpi_version();

// mpirun with that many ranks, root and a container allowed. Nothing is bound, so that ranks divide
// the machine.
Invocation under_mpirun(unsigned ranks, const std::vector<std::string>& options = {});
// Two ranks with arguments of their own.
Invocation under_mpirun(const SharedJob& first, const SharedJob& second,
                        const std::vector<std::string>& options_of_second = {});

// The process of a rank that this mpirun started, or -1.
pid_t process_of_rank(pid_t mpirun, unsigned rank);

}  // namespace lockstep::test

// Ends the test case where there is no Open MPI. With LOCKSTEP_NO_SKIPS set that is a failure.
#define LOCKSTEP_NEEDS_MPI()                                                \
  if (lockstep::test::open_mpi_version().empty()) {                         \
    WARN("SKIPPED: no Open MPI (packages libopenmpi-dev and openmpi-bin)"); \
    CHECK(std::getenv("LOCKSTEP_NO_SKIPS") == nullptr);                     \
    return;                                                                 \
  }                                                                         \
  static_cast<void>(0)
