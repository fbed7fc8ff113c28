// A build without MPI.
#include "lockstep/error.h"
#include "runtime/mpi/mpi_ranks.h"

namespace lockstep::mpi {

std::string_view library() noexcept { return ""; }

std::unique_ptr<batch::Ranks> start() {
  throw Error(ErrorCode::usage, "this lockstep was built without MPI (-DLOCKSTEP_MPI=ON)");
}

}  // namespace lockstep::mpi
