// Importance matrices: how large the inputs of each weight matrix are, column by column, on a text.
// An encoder that knows them spends its precision where the products are large.
//
// The file is the public GGUF form (general.type = imatrix): for each matrix the sums of the
// squares of its input columns, NAME.in_sum2 [columns, matrices], and the number of tokens summed
// over, NAME.counts [1, matrices], where `matrices` is 1, or the number of experts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep::quantize {

struct ImportanceEntry {
  std::vector<float> sums;    // [matrices, columns]
  std::vector<float> counts;  // [matrices]

  std::size_t matrices() const noexcept { return counts.size(); }
  std::size_t columns() const noexcept { return sums.size() / counts.size(); }
  // [matrices, columns]: mean squares; 1 everywhere for a matrix that saw no token.
  std::vector<float> weights() const;
};

struct ImportanceMatrix {
  std::map<std::string, ImportanceEntry> entries;  // by the name of the weight tensor
  std::vector<std::string> datasets;
  std::uint32_t chunk_count = 0;
  std::uint32_t chunk_size = 0;  // tokens

  // Throws Error: no_input, or bad_input for a file of another kind, of the old binary form, or
  // with numbers that cannot be sums of squares.
  static ImportanceMatrix load(const std::filesystem::path& path);
  // Throws Error as GgufWriter::write does.
  void save(const std::filesystem::path& path) const;
};

}  // namespace lockstep::quantize
