// Random and monotonous bytes as blocks of every format, with hostile scales and activations: see
// block_fuzz.h. The same inputs on every run; the libFuzzer target quant_fuzz looks further.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "quant/kernels.h"
#include "support/catch.h"
#include "support/random.h"
#include "test/quant/block_fuzz.h"

namespace quant = lockstep::quant;
using namespace lockstep::test;
using quant::MatmulKernel;

namespace {

// An input for the format at `place` among those that decode.
std::vector<std::uint8_t> input_for(std::size_t place, Random& random) {
  std::vector<std::uint8_t> input(kFuzzHeader + 1 + random.below(2000));
  const std::size_t kind = random.below(8);
  const auto constant = static_cast<std::uint8_t>(random.bits());
  for (std::uint8_t& byte : input) {
    const std::uint32_t bits = random.bits();
    // Noise; noise of few bits; one byte over and over, now and then another.
    byte = static_cast<std::uint8_t>(kind < 5    ? bits
                                     : kind == 5 ? bits & bits >> 8 & bits >> 16
                                                 : 0);
    if (kind > 5) byte = bits % 61 == 0 ? static_cast<std::uint8_t>(bits >> 8) : constant;
  }
  for (std::size_t i = 1; i < kFuzzHeader; ++i) input[i] = static_cast<std::uint8_t>(random.bits());
  input[0] = static_cast<std::uint8_t>(place);
  return input;
}

std::size_t decodable_formats() {
  const auto all = quant::all_formats();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const auto& f) { return f.can_decode(); }));
}

// Scalar dot products with one bit of one result changed.
void run_wrongly(const quant::MatmulCall& call) noexcept {
  quant::find_matmul(quant::Format::q4_0, quant::Isa::scalar)->run(call);
  float& last = call.y[(call.tokens - 1) * call.y_stride + call.rows - 1];
  last = std::bit_cast<float>(std::bit_cast<std::uint32_t>(last) ^ 1u);
}

}  // namespace

TEST_CASE("fuzz: any bytes decode, and every kernel gives the bits of vec_dot") {
  constexpr int kInputs = 150;
  Random random(71);
  std::vector<std::string_view> seen;
  for (std::size_t place = 0; place < decodable_formats(); ++place) {
    for (int i = 0; i < kInputs; ++i) {
      const auto input = input_for(place, random);
      const std::string defect = defect_of(input, quant::all_matmul_kernels(), &seen);
      CAPTURE(place, i);
      REQUIRE(defect == "");
    }
  }
  std::size_t here = 0;
  for (const MatmulKernel& kernel : quant::all_matmul_kernels()) {
    here += (quant::built_isas() & quant::detect_isas()).has(kernel.isa);
  }
  CHECK(std::set<std::string_view>(seen.begin(), seen.end()).size() == here);
  CHECK(seen.size() == here * kInputs);
}

TEST_CASE("fuzz: short and empty inputs are inputs too") {
  for (std::size_t length = 0; length < 9; ++length) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::vector<std::uint8_t> input(length, static_cast<std::uint8_t>(byte));
      REQUIRE(defect_of(input, quant::all_matmul_kernels()) == "");
    }
  }
}

TEST_CASE("fuzz: one wrong bit is found") {
  MatmulKernel wrong = *quant::find_matmul(quant::Format::q4_0, quant::Isa::scalar);
  wrong.name = "q4_0/wrong/r1";
  wrong.run = run_wrongly;
  const std::size_t q4_0 = 2;  // after F32 and F16
  Random random(72);
  int found = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string defect = defect_of(input_for(q4_0, random), {&wrong, 1});
    if (defect.find("Q4_0: q4_0/wrong/r1 differs from vec_dot at row ") == 0) ++found;
  }
  CHECK(found >= 20);  // the rest ends in a NaN, which may be any
}
