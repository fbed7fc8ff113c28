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

}  // namespace lockstep
