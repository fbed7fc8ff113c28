// Which OpenMP runtime the process really has: waiting costs differ by 50 x between them, and two
// at once fight over the cores, so reports name it.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// The distinct OpenMP libraries loaded into this process: "libgomp", "libomp", "libiomp5".
std::vector<std::string> loaded_openmp_runtimes();

// "libgomp (OpenMP 201511)"; several are joined by "+"; "built in" if it was linked statically.
std::string openmp_runtime_name();

// The processors of all places that OpenMP binds threads to, ascending; empty if it binds none. A
// runtime that binds has narrowed the first thread to one place before main().
std::vector<unsigned> openmp_processors();

// How threads of this runtime wait for each other, by its default and what OMP_WAIT_POLICY and its
// own variable (GOMP_SPINCOUNT, KMP_BLOCKTIME) say: "spins 200 ms, then sleeps".
std::string openmp_wait_policy();

}  // namespace lockstep
