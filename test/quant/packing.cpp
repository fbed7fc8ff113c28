// Packed panels: no bytes added, missing rows are zero weights, nothing written outside the panel.
#include <algorithm>
#include <vector>

#include "quant/kernels.h"
#include "support/catch.h"
#include "test/quant/fixtures.h"

namespace quant = lockstep::quant;
using namespace lockstep::test;
using quant::FormatTraits;
using quant::MatmulKernel;

TEST_CASE("packing: a panel is as large as its rows in the file") {
  for (const MatmulKernel& kernel : quant::all_matmul_kernels()) {
    CAPTURE(kernel.name);
    const std::size_t block = quant::traits(kernel.format).block_values;
    for (const std::size_t k : {block, 3 * block, 32 * block}) {
      CHECK(kernel.panel_bytes(k) == kernel.panel_rows * quant::bytes_of(kernel.format, k));
    }
    CHECK(kernel.panel_bytes(0) == 0);
  }
}

TEST_CASE("packing: a full panel holds every bit of its rows, moved") {
  for (const MatmulKernel& kernel : quant::all_matmul_kernels()) {
    CAPTURE(kernel.name);
    const FormatTraits& format = quant::traits(kernel.format);
    const std::size_t rows = kernel.panel_rows;
    const std::size_t row_bytes = 2 * format.block_bytes;
    const std::size_t k = 2 * format.block_values;
    // Setting one bit of the file sets one bit of the panel, a different one each time.
    std::vector<std::byte> file(rows * row_bytes);
    std::vector<std::byte> panel(kernel.panel_bytes(k), std::byte{0x55});
    std::vector<bool> taken(panel.size() * 8);
    std::size_t moved = 0;
    for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
      std::fill(file.begin(), file.end(), std::byte{0});
      file[bit / 8] = static_cast<std::byte>(1u << (bit % 8));
      kernel.pack(file.data(), rows, k, panel.data());
      std::size_t set = 0;
      for (std::size_t i = 0; i < panel.size(); ++i) {
        if (panel[i] == std::byte{0}) continue;
        for (std::size_t j = 0; j < 8; ++j) {
          if ((panel[i] & static_cast<std::byte>(1u << j)) == std::byte{0}) continue;
          ++set;
          if (!taken[i * 8 + j]) ++moved;
          taken[i * 8 + j] = true;
        }
      }
      if (set != 1) FAIL_CHECK("file bit " << bit << " set " << set << " bits of the panel");
    }
    CHECK(moved == file.size() * 8);
  }
}

TEST_CASE("packing: missing rows of the last panel are zeros") {
  for (const MatmulKernel& kernel : quant::all_matmul_kernels()) {
    CAPTURE(kernel.name);
    const FormatTraits& format = quant::traits(kernel.format);
    const std::size_t blocks = 3;
    const std::size_t k = blocks * format.block_values;
    const auto rows = make_weights(format, kernel.panel_rows * blocks, Weights::random, 51);
    for (std::size_t present = 1; present <= kernel.panel_rows; ++present) {
      auto zeroed = rows;
      std::fill(zeroed.begin() + static_cast<std::ptrdiff_t>(present * blocks * format.block_bytes),
                zeroed.end(), std::byte{0});
      std::vector<std::byte> expected(kernel.panel_bytes(k));
      kernel.pack(zeroed.data(), kernel.panel_rows, k, expected.data());
      // Only the rows that exist may be read, and old contents of the panel must be gone.
      const std::vector<std::byte> exact(
          rows.begin(),
          rows.begin() + static_cast<std::ptrdiff_t>(present * blocks * format.block_bytes));
      std::vector<std::byte> panel(kernel.panel_bytes(k) + 1, std::byte{0xaa});
      kernel.pack(exact.data(), present, k, panel.data());
      CHECK(std::equal(expected.begin(), expected.end(), panel.begin()));
      CHECK(panel.back() == std::byte{0xaa});
    }
  }
}
