// The version number comes from the build (LOCKSTEP_VERSION), everything else from the compiler and
// the process.
#include "runtime/cli/version.h"

#include <fmt/format.h>

#include "quant/isa.h"
#include "runtime/mpi/mpi_ranks.h"
#include "runtime/openmp_runtime.h"

namespace lockstep::cli {

namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

std::string version_text() {
  std::string isas;
  const quant::IsaSet built = quant::built_isas();
  for (const quant::Isa isa : quant::kAllIsas) {
    if (built.has(isa)) isas += fmt::format("{}{}", isas.empty() ? "" : ", ", quant::name_of(isa));
  }
  const std::string_view mpi = mpi::library();
  return fmt::format(
      "lockstep {}\ncompiler: {}\nOpenMP runtime: {}\nMPI: {}\ninstruction sets built: {}",
      LOCKSTEP_VERSION, compiler(), openmp_runtime_name(), mpi.empty() ? "none" : mpi, isas);
}

}  // namespace lockstep::cli
