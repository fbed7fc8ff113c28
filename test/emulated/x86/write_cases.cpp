// write_cases FILE: random and extreme weights of every format with an AVX-512 kernel, packed, and
// the results of the scalar kernel.
#include <cstdio>
#include <vector>

#include "quant/kernels.h"
#include "support/side_data.h"
#include "test/emulated/x86/cases.h"
#include "test/quant/fixtures.h"

namespace quant = lockstep::quant;
using namespace lockstep::test;

namespace {

class CaseFile {
 public:
  explicit CaseFile(const char* path) : file_(std::fopen(path, "wb")) {}
  ~CaseFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  bool good() const { return file_ != nullptr && !failed_; }

  void add(const void* data, std::size_t bytes) {
    static constexpr char kZeros[kCaseAlign] = {};
    if (file_ == nullptr) return;
    failed_ = failed_ || std::fwrite(data, 1, bytes, file_) != bytes;
    const std::size_t rest = case_padded(bytes) - bytes;
    failed_ = failed_ || std::fwrite(kZeros, 1, rest, file_) != rest;
  }

 private:
  std::FILE* file_;
  bool failed_ = false;
};

void add_case(CaseFile& file, const quant::MatmulKernel& kernel, std::size_t rows,
              std::size_t tokens, Weights kind, Values values) {
  const quant::FormatTraits& format = quant::traits(kernel.format);
  const std::size_t k = format.block_values == 256 ? 512 : 192;
  const quant::MatmulKernel& scalar = *quant::find_matmul(kernel.format, quant::Isa::scalar);
  const auto blocks = make_weights(format, rows * k / format.block_values, kind, 11);
  const auto panels = pack_rows(kernel, blocks, rows, k);
  Activations activations = make_activations(format, k, tokens, values, 12);
  const std::size_t stride = rows + kCaseYGap;
  std::vector<float> y(tokens * stride, kCaseUntouched);
  scalar.run({.panels = blocks.data(),
              .rows = rows,
              .k = k,
              .activations = activations.base(),
              .activation_stride = activations.layout.bytes,
              .tokens = tokens,
              .y = y.data(),
              .y_stride = stride,
              .side = side_data(format)});
  const CaseHeader header{static_cast<std::uint64_t>(kernel.format),
                          rows,
                          k,
                          tokens,
                          panels.size(),
                          format.side_bytes(),
                          activations.layout.bytes,
                          y.size() * sizeof(float)};
  file.add(&header, sizeof header);
  file.add(panels.data(), panels.size());
  if (format.side != nullptr) file.add(side_data(format), format.side_bytes());
  file.add(activations.base(), tokens * activations.layout.bytes);
  file.add(y.data(), y.size() * sizeof(float));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  CaseFile file(argv[1]);
  // 27 rows are three panels and a part of one, 15 tokens are a tile of every width.
  for (const quant::MatmulKernel& kernel : quant::all_matmul_kernels()) {
    if (kernel.isa != quant::Isa::avx512) continue;
    for (const std::size_t tokens : {std::size_t{1}, std::size_t{15}}) {
      add_case(file, kernel, 27, tokens, Weights::random, Values::random);
      add_case(file, kernel, 16, tokens, Weights::all_ones, Values::all_negative);
    }
  }
  return file.good() ? 0 : 1;
}
