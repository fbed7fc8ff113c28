// Any bytes as blocks of any format: see test/quant/block_fuzz.h for what must hold.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "test/quant/block_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string defect =
      lockstep::test::defect_of({data, size}, lockstep::quant::all_matmul_kernels());
  if (!defect.empty()) {
    std::fprintf(stderr, "%s\n", defect.c_str());
    std::abort();
  }
  return 0;
}
