// Instruction sets: what was built, what runs here, and which one is taken. Knows the processor
// only through cpuid and, on ARM, through what the kernel says of it.
#include "quant/isa.h"

#include <stdexcept>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
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

// On top of AVX2. The bit is EAX[4] of leaf 7, subleaf 1; the state it needs is that of AVX2.
bool can_run_avxvnni() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}

bool can_run_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}
#elif defined(__aarch64__)
// Bits of the auxiliary vector, from the Linux ABI: HWCAP_ASIMDDP and HWCAP2_I8MM.
bool can_run_dotprod() noexcept { return (getauxval(AT_HWCAP) & 1ul << 20) != 0; }
bool can_run_i8mm() noexcept { return (getauxval(AT_HWCAP2) & 1ul << 13) != 0; }
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
    case Isa::avxvnni:
      return "avxvnni";
    case Isa::avx512:
      return "avx512";
    case Isa::neon:
      return "neon";
    case Isa::dotprod:
      return "dotprod";
    case Isa::i8mm:
      return "i8mm";
  }
  return "?";
}

IsaSet built_isas() noexcept {
  IsaSet set;
#if defined(LOCKSTEP_HAS_AVX2)
  set.add(Isa::avx2);
#endif
#if defined(LOCKSTEP_HAS_AVXVNNI)
  set.add(Isa::avxvnni);
#endif
#if defined(LOCKSTEP_HAS_AVX512)
  set.add(Isa::avx512);
#endif
#if defined(LOCKSTEP_HAS_NEON)
  set.add(Isa::neon);
#endif
#if defined(LOCKSTEP_HAS_DOTPROD)
  set.add(Isa::dotprod);
#endif
#if defined(LOCKSTEP_HAS_I8MM)
  set.add(Isa::i8mm);
#endif
  return set;
}

IsaSet detect_isas() noexcept {
  IsaSet set;
#if defined(__x86_64__)
  if (can_run_avx2()) {
    set.add(Isa::avx2);
    if (can_run_avxvnni()) set.add(Isa::avxvnni);
    if (can_run_avx512()) set.add(Isa::avx512);
  }
#elif defined(__aarch64__)
  set.add(Isa::neon);
  if (can_run_dotprod()) {
    set.add(Isa::dotprod);
    if (can_run_i8mm()) set.add(Isa::i8mm);
  }
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
