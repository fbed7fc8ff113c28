// The program of the bare-metal image: runs the AVX-512 kernels on the cases that are part of the
// image and compares the bits of the results. There is no operating system and no library; it
// speaks through the first serial port, ends with a line "RC <status>" (0 right, 1 wrong, 77 the
// processor has no AVX-512 VNNI) and switches the machine off by the port of Bochs for that.
#include <cpuid.h>

#include "quant/avx512/kernels.h"
#include "test/emulated/x86/cases.h"

using namespace lockstep::quant;
using namespace lockstep::test;

extern "C" {
extern const std::byte cases_begin[];
extern const std::byte cases_end[];

void* memcpy(void* to, const void* from, std::size_t n) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
  return to;
}
void* memset(void* to, int value, std::size_t n) {
  void* at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(value) : "memory");
  return to;
}
}

namespace {

constexpr unsigned short kSerial = 0x3f8;

void write_port(unsigned short port, unsigned char value) {
  asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}
unsigned char read_port(unsigned short port) {
  unsigned char value;
  asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}
void wait_for(unsigned char status) {
  while ((read_port(kSerial + 5) & status) == 0) {
  }
}

// 115200 baud, 8 bits, no parity, one stop bit.
void open_serial() {
  write_port(kSerial + 3, 0x83);
  write_port(kSerial, 1);
  write_port(kSerial + 1, 0);
  write_port(kSerial + 3, 3);
}
void say(const char* text) {
  for (; *text != 0; ++text) {
    wait_for(0x20);
    write_port(kSerial, static_cast<unsigned char>(*text));
  }
}
void say(std::uint64_t number) {
  char digits[21];
  char* at = digits + 20;
  *at = 0;
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  say(at);
}

bool has_avx512_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kFoundation = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
  constexpr unsigned kNeeded = kFoundation | kDq | kBw | kVl;
  return (b & kNeeded) == kNeeded && (c & 1u << 11) != 0;
}

struct FormatRun {
  Format format;
  MatmulRun* PanelRuns::*run;
};
constexpr FormatRun kRuns[] = {
    {Format::q4_0, &PanelRuns::q4_0},     {Format::q4_1, &PanelRuns::q4_1},
    {Format::q5_0, &PanelRuns::q5_0},     {Format::q5_1, &PanelRuns::q5_1},
    {Format::q8_0, &PanelRuns::q8_0},     {Format::q2_k, &PanelRuns::q2_k},
    {Format::q3_k, &PanelRuns::q3_k},     {Format::q4_k, &PanelRuns::q4_k},
    {Format::q5_k, &PanelRuns::q5_k},     {Format::q6_k, &PanelRuns::q6_k},
    {Format::iq4_nl, &PanelRuns::iq4_nl}, {Format::iq4_xs, &PanelRuns::iq4_xs},
    {Format::mxfp4, &PanelRuns::mxfp4},   {Format::nvfp4, &PanelRuns::nvfp4},
    {Format::q4x, &PanelRuns::q4x},
};

MatmulRun* run_of(Format format) {
  for (const FormatRun& known : kRuns) {
    if (known.format != format) continue;
    MatmulRun* const run = avx512::kBlockRuns.*known.run;
    return run != nullptr ? run : avx512::kKBlockRuns.*known.run;
  }
  return nullptr;
}

bool is_nan(std::uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

alignas(kCaseAlign) std::uint32_t results[1u << 16];

// Runs the case at `at`; moves `at` behind it.
std::uint64_t wrong_results(const std::byte*& at) {
  const auto& header = *reinterpret_cast<const CaseHeader*>(at);
  const auto part = [&](std::uint64_t bytes) {
    const std::byte* const begin = at;
    at += case_padded(bytes);
    return begin;
  };
  part(sizeof header);
  const std::byte* const panels = part(header.panel_bytes);
  const std::byte* const side = part(header.side_bytes);
  const std::byte* const activations = part(header.activation_stride * header.tokens);
  const auto* expected = reinterpret_cast<const std::uint32_t*>(part(header.result_bytes));
  const std::size_t count = header.result_bytes / sizeof(float);
  std::uint32_t untouched;
  __builtin_memcpy(&untouched, &kCaseUntouched, sizeof untouched);
  for (std::size_t i = 0; i < count; ++i) results[i] = untouched;
  run_of(static_cast<Format>(header.format))({.panels = panels,
                                              .rows = header.rows,
                                              .k = header.k,
                                              .activations = activations,
                                              .activation_stride = header.activation_stride,
                                              .tokens = header.tokens,
                                              .y = reinterpret_cast<float*>(results),
                                              .y_stride = header.rows + kCaseYGap,
                                              .side = side});
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool both_nan = is_nan(results[i]) && is_nan(expected[i]);
    if (results[i] != expected[i] && !both_nan) ++wrong;
  }
  say("format ");
  say(header.format);
  say(", ");
  say(header.tokens);
  say(" tokens: ");
  say(wrong);
  say(" wrong of ");
  say(count);
  say("\n");
  return wrong;
}

int check_all() {
  if (!has_avx512_vnni()) return 77;
  std::uint64_t wrong = 0;
  std::uint64_t cases = 0;
  for (const std::byte* at = cases_begin; at < cases_end; ++cases) wrong += wrong_results(at);
  say(cases);
  say(" cases\n");
  return wrong == 0 && cases > 0 ? 0 : 1;
}

}  // namespace

extern "C" [[noreturn]] void run_cases() {
  open_serial();
  const int status = check_all();
  say("RC ");
  say(static_cast<std::uint64_t>(status));
  say("\n");
  wait_for(0x40);
  for (const char* word = "Shutdown"; *word != 0; ++word) {
    write_port(0x8900, static_cast<unsigned char>(*word));
  }
  for (;;) asm volatile("hlt");
}
