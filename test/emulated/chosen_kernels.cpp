// Prints the instruction set that is chosen on this machine, then the kernel of every format: what
// an emulated machine is asked, to prove that the tests there ran the kernels they were meant for.
#include <cstdio>
#include <string>

#include "quant/kernels.h"

namespace quant = lockstep::quant;

int main() {
  const quant::Isa chosen = quant::choose_isa(quant::built_isas() & quant::detect_isas(), "");
  std::puts(std::string(quant::name_of(chosen)).c_str());
  for (const quant::FormatTraits& format : quant::all_formats()) {
    const quant::MatmulKernel* kernel = quant::find_matmul(format.format, chosen);
    if (kernel != nullptr) std::puts(std::string(kernel->name).c_str());
  }
}
