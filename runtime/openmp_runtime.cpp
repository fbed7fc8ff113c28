// Looks through the shared objects of the process.
#include "runtime/openmp_runtime.h"

#include <link.h>
#include <omp.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace lockstep {

std::vector<std::string> loaded_openmp_runtimes() {
  std::vector<std::string> found;
  const auto visit = [](dl_phdr_info* info, std::size_t, void* context) {
    auto& names = *static_cast<std::vector<std::string>*>(context);
    std::string_view path = info->dlpi_name ? info->dlpi_name : "";
    path.remove_prefix(path.find_last_of('/') == path.npos ? 0 : path.find_last_of('/') + 1);
    for (const char* name : {"libgomp", "libomp", "libiomp5"}) {
      const std::string_view library = name;
      // "libomp.so.5", "libomp-14.so.5", "libgomp.so.1"
      const bool match = path.substr(0, library.size()) == library &&
                         path.find_first_of(".-", library.size()) == library.size();
      if (match && std::find(names.begin(), names.end(), library) == names.end()) {
        names.emplace_back(library);
      }
    }
    return 0;
  };
  dl_iterate_phdr(visit, &found);
  return found;
}

std::string openmp_runtime_name() {
  std::string name;
  for (const std::string& runtime : loaded_openmp_runtimes()) {
    name += (name.empty() ? "" : "+") + runtime;
  }
  return (name.empty() ? "built in" : name) + " (OpenMP " + std::to_string(_OPENMP) + ")";
}

std::vector<unsigned> openmp_processors() {
  std::vector<unsigned> processors;
  if (omp_get_proc_bind() == omp_proc_bind_false) return processors;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    processors.insert(processors.end(), ids.begin(), ids.end());
  }
  std::ranges::sort(processors);
  processors.erase(std::unique(processors.begin(), processors.end()), processors.end());
  return processors;
}

std::string openmp_wait_policy() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  const std::string policy = lower(variable("OMP_WAIT_POLICY"));
  const std::vector<std::string> runtimes = loaded_openmp_runtimes();
  const bool gnu = !runtimes.empty() && runtimes.front() == "libgomp";
  const std::string own = lower(variable(gnu ? "GOMP_SPINCOUNT" : "KMP_BLOCKTIME"));
  if (own == "infinite" || own == "infinity") return "spins";
  if (!own.empty()) {
    const bool plain = own.find_first_not_of("0123456789") == own.npos;  // without a unit
    return "spins " + own + (gnu ? " rounds" : plain ? " ms" : "") + ", then sleeps";
  }
  if (policy == "active") return "spins";
  if (policy == "passive") return "sleeps";
  return gnu ? "spins 300000 rounds, then sleeps" : "spins 200 ms, then sleeps";
}

}  // namespace lockstep
