// Choosing an instruction set: by preference, by force, and refusing what is not there.
#include <stdexcept>
#include <string>

#include "quant/isa.h"
#include "quant/kernels.h"
#include "quant/peaks.h"
#include "support/catch.h"

namespace quant = lockstep::quant;
using quant::Isa;
using quant::IsaSet;

namespace {

IsaSet both() {
  IsaSet set;
  set.add(Isa::avx2);
  return set;
}

std::string refusal(IsaSet available, std::string_view forced) {
  try {
    quant::choose_isa(available, forced);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("isa: the best available one is chosen") {
  CHECK(quant::choose_isa(both(), "") == Isa::avx2);
  CHECK(quant::choose_isa(IsaSet{}, "") == Isa::scalar);
}

TEST_CASE("isa: a forced one is taken, or refused with the choices") {
  CHECK(quant::choose_isa(both(), "scalar") == Isa::scalar);
  CHECK(quant::choose_isa(both(), "avx2") == Isa::avx2);
  const std::string unavailable = refusal(IsaSet{}, "avx2");
  CHECK(contains(unavailable, "'avx2'"));
  CHECK(contains(unavailable, "not available"));
  CHECK(contains(unavailable, "available: scalar"));
  const std::string unknown = refusal(both(), "sse9");
  CHECK(contains(unknown, "'sse9'"));
  CHECK(contains(unknown, "unknown"));
  CHECK(contains(unknown, "scalar, avx2"));
  CHECK(contains(refusal(both(), "AVX2"), "unknown"));
}

TEST_CASE("isa: the forced one is the one that runs") {
  const IsaSet here = quant::built_isas() & quant::detect_isas();
  for (const Isa isa : quant::kAllIsas) {
    if (!here.has(isa)) continue;
    const Isa forced = quant::choose_isa(here, quant::name_of(isa));
    CHECK(forced == isa);
    const quant::MatmulKernel* kernel = quant::find_matmul(quant::Format::q4_0, forced);
    REQUIRE(kernel != nullptr);
    CHECK(kernel->isa == isa);
    CHECK(kernel->name.find(quant::name_of(isa)) != std::string_view::npos);
  }
  if (here.has(Isa::avx2)) {
    CHECK(quant::row_kernels(Isa::avx2).exp != quant::row_kernels(Isa::scalar).exp);
    CHECK(quant::find_matmul(quant::Format::q4_0, Isa::avx2)->run !=
          quant::find_matmul(quant::Format::q4_0, Isa::scalar)->run);
  }
}

TEST_CASE("isa: scalar is always built and always runs") {
  CHECK(quant::built_isas().has(Isa::scalar));
  CHECK(quant::detect_isas().has(Isa::scalar));
  CHECK((quant::built_isas() & IsaSet{}) == IsaSet{});
}

TEST_CASE("isa: peak loops tell how much they did, on every set that runs here") {
  const IsaSet here = quant::built_isas() & quant::detect_isas();
  for (const Isa isa : quant::kAllIsas) {
    if (!here.has(isa)) continue;
    CAPTURE(quant::name_of(isa));
    const quant::PeakLoops loops = quant::peak_loops(isa);
    REQUIRE(loops.int8 != nullptr);
    REQUIRE(loops.f32 != nullptr);
    CHECK(loops.int8(2) > 0);
    CHECK(loops.int8(6) == 3 * loops.int8(2));
    CHECK(loops.f32(6) == 3 * loops.f32(2));
    // A vector set does more in one round than the plain loop.
    if (isa != Isa::scalar) {
      CHECK(loops.int8(1) > quant::peak_loops(Isa::scalar).int8(1));
      CHECK(loops.f32(1) > quant::peak_loops(Isa::scalar).f32(1));
    }
  }
}
