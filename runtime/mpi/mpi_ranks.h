// Ranks over MPI. The only code that knows MPI, a library of its own that the command alone links:
// lockstep's libraries need none. A build without MPI has no_mpi.cpp in its place.
#pragma once

#include <memory>
#include <string_view>

#include "runtime/batch/ranks.h"

namespace lockstep::mpi {

// "Open MPI 4.1.4": what this program was built with; "" if without MPI.
std::string_view library() noexcept;

// Starts MPI, for a process that an MPI launcher started: all processes of the launch must come
// here. To be used from the calling thread alone, once. Throws Error(no_resource) if MPI cannot be
// used beside threads, Error(usage) if this program was built without.
std::unique_ptr<batch::Ranks> start();

}  // namespace lockstep::mpi
