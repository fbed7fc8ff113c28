// Rows of weights in any format, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "quant/format.h"
#include "support/random.h"
#include "support/side_data.h"

namespace lockstep::test {

// Whether the values of a block leave room to sum them up in f32: a scale that is an exponent alone
// reaches 2^127.
inline bool is_moderate(const quant::FormatTraits& format, const std::byte* block) {
  std::vector<float> values(format.block_values);
  quant::decode_values(format, side_data(format), block, values.data(), values.size());
  return std::all_of(values.begin(), values.end(), [](float v) { return std::fabs(v) < 1e20f; });
}

// `rows` rows of blocks: encoded values where the format has an encoder, else any bytes with good
// scales.
inline std::vector<std::byte> random_rows(const quant::FormatTraits& format, std::size_t rows,
                                          std::size_t columns, Random& random) {
  std::vector<std::byte> bytes(rows * quant::bytes_of(format.format, columns));
  if (format.encode != nullptr) {
    const auto values = random.values(rows * columns);
    format.encode(values.data(), nullptr, bytes.data(), values.size());
    return bytes;
  }
  for (std::size_t at = 0; at < bytes.size(); at += format.block_bytes) {
    do {
      for (std::size_t i = 0; i < format.block_bytes; ++i) {
        bytes[at + i] = static_cast<std::byte>(random.bits());
      }
    } while ((format.first_bad_scale != nullptr && format.first_bad_scale(&bytes[at], 1) == 0) ||
             !is_moderate(format, &bytes[at]));
  }
  return bytes;
}

}  // namespace lockstep::test
