// Instruction sets: what was built, what runs here, and which one is taken. Knows the processor
// only through cpuid; on machines other than x86-64 scalar is what there is.
#include "quant/isa.h"

#include <stdexcept>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockstep::quant {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports("avx2") includes the check that the operating system saves the wide
// registers. Not every compiler knows the name "f16c" there, so that one bit is read here.
bool can_run_avx2() noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

std::string names_in(IsaSet set) {
  std::string names;
  for (const Isa isa : kAllIsas) {
    if (!set.has(isa)) continue;
    if (!names.empty()) names += ", ";
    names += name_of(isa);
  }
  return names;
}

}  // namespace

std::string_view name_of(Isa isa) noexcept {
  switch (isa) {
    case Isa::scalar:
      return "scalar";
    case Isa::avx2:
      return "avx2";
  }
  return "?";
}

IsaSet built_isas() noexcept {
  IsaSet set;
#if defined(LOCKSTEP_HAS_AVX2)
  set.add(Isa::avx2);
#endif
  return set;
}

IsaSet detect_isas() noexcept {
  IsaSet set;
#if defined(__x86_64__)
  if (can_run_avx2()) set.add(Isa::avx2);
#endif
  return set;
}

Isa choose_isa(IsaSet available, std::string_view forced) {
  Isa best = Isa::scalar;
  for (const Isa isa : kAllIsas) {
    if (!available.has(isa)) continue;
    if (name_of(isa) == forced) return isa;
    best = isa;
  }
  if (forced.empty()) return best;
  bool known = false;
  for (const Isa isa : kAllIsas) known = known || name_of(isa) == forced;
  throw std::invalid_argument("instruction set '" + std::string(forced) + "' is " +
                              (known ? "not available here" : "unknown") +
                              "; available: " + names_in(available));
}

}  // namespace lockstep::quant
