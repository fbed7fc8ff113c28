// The test cases of the bare-metal image: made where there is a library (write_cases.cpp), checked
// where there is none (check_cases.cpp). A file is a number of cases, each a header and then its
// panels, side data, activations and expected results, all parts padded to 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::test {

constexpr std::size_t kCaseAlign = 64;
constexpr std::size_t kCaseYGap = 3;  // floats between the results of two tokens
constexpr float kCaseUntouched = -12345.5f;

constexpr std::uint64_t case_padded(std::uint64_t bytes) {
  return (bytes + kCaseAlign - 1) / kCaseAlign * kCaseAlign;
}

struct alignas(kCaseAlign) CaseHeader {
  std::uint64_t format;  // its GGUF id
  std::uint64_t rows, k, tokens;
  std::uint64_t panel_bytes, side_bytes, activation_stride, result_bytes;
};

}  // namespace lockstep::test
