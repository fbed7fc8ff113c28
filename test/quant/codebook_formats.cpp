// The codebook and ternary formats: the published grids, and blocks worked out by hand.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "quant/format.h"
#include "quant/formats/iq1_grid.h"
#include "quant/formats/iq2_grids.h"
#include "quant/formats/iq3_grids.h"
#include "support/catch.h"
#include "test/quant/blocks.h"

namespace quant = lockstep::quant;
using namespace lockstep::test;
using quant::Format;

namespace {

// FNV-1a of the first `bytes` bytes of every point.
std::uint64_t hash_of(std::span<const std::uint64_t> grid, unsigned bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint64_t point : grid) {
    for (unsigned i = 0; i < bytes; ++i) {
      hash = (hash ^ ((point >> (8 * i)) & 0xffu)) * 0x100000001b3u;
    }
  }
  return hash;
}

// The values that differ from `usual`, by index.
std::vector<std::pair<std::size_t, float>> unusual(const std::vector<float>& values, float usual) {
  std::vector<std::pair<std::size_t, float>> found;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != usual) found.emplace_back(i, values[i]);
  }
  return found;
}

using Expected = std::vector<std::pair<std::size_t, float>>;

}  // namespace

// The hashes are of the published tables, which have a byte for every value.
TEST_CASE("codebooks: the grids of IQ2 are the published ones") {
  CHECK(hash_of(quant::iq2::kGridXxs, 8) == 0xbb4ee025b5ac6e8eu);
  CHECK(hash_of(quant::iq2::kGridXs, 8) == 0xc9b1ee61e79909bdu);
  CHECK(hash_of(quant::iq2::kGridS, 8) == 0x123edd38a3b62b90u);
}

TEST_CASE("codebooks: the grids of IQ3 are the published ones") {
  CHECK(hash_of(quant::iq3::kGridXxs, 4) == 0xdfa5dc83d6a155d5u);
  CHECK(hash_of(quant::iq3::kGridS, 4) == 0xfa37020c25b44829u);
}

// The published table holds -1, 0 and 1, ours eight times that, an eighth up or down.
TEST_CASE("codebooks: the grid of IQ1 is the published one") {
  std::vector<std::uint64_t> points;
  std::size_t wrong = 0;
  for (std::size_t p = 0; p < quant::iq1::kPoints; ++p) {
    std::uint64_t point = 0;
    for (unsigned i = 0; i < 8; ++i) {
      const auto up = static_cast<std::int8_t>(quant::iq1::kGrid[p] >> (8 * i));
      const auto down =
          static_cast<std::int8_t>(quant::iq1::kGrid[quant::iq1::kPoints + p] >> (8 * i));
      if (up - down != 2 || (up - 1) % 8 != 0) ++wrong;
      point |= static_cast<std::uint64_t>(static_cast<std::uint8_t>((up - 1) / 8)) << (8 * i);
    }
    points.push_back(point);
  }
  CHECK(wrong == 0);
  CHECK(hash_of(points, 8) == 0x6703ed863501ae2eu);
}

TEST_CASE("codebooks: sign masks") {
  CHECK(quant::kSignMasks[0] == 0);
  CHECK(quant::kSignMasks[0x81] == 0xff000000000000ffu);
  CHECK(quant::kEvenSignMasks[0x01] == 0xff000000000000ffu);  // the eighth makes two of them
  CHECK(quant::kEvenSignMasks[0x03] == 0x000000000000ffffu);
  CHECK(quant::kEvenSignMasks[0x7f] == 0xffffffffffffffffu);
  CHECK(quant::with_signs(0x7f01020304050601u, quant::kSignMasks[0xc1]) == 0x81ff0203040506ffu);
}

TEST_CASE("codebooks: an IQ2_XXS block by hand") {
  Block block(66);
  set_half(block, 0, 8.0f);  // with scale code 0: the levels themselves
  set(block, 2 + 8 + 2, 1);  // group 1, point 2: 43 and seven times 8
  // Point 0: value 6 is negative, so value 7 is too. Point 2: values 0 and 1. Scale 2 * 5 + 1.
  set_word(block, 2 + 8 + 4, 5u << 28 | 3u << 14 | 0x40u);
  const std::vector<float> values = decode(Format::iq2_xxs, block);
  std::vector<float> expected(256, 8.0f);
  for (std::size_t i = 32; i < 64; ++i) expected[i] = 88;
  expected[38] = expected[39] = -88;
  expected[48] = -43 * 11;
  expected[49] = -88;
  CHECK(values == expected);
  set(block, 2 + 56, 255);  // group 7, point 0: 0x2b2b2b1908081908, read from the right
  CHECK(unusual(decode(Format::iq2_xxs, block), 8.0f).size() == 32 + 5);
  CHECK(decode(Format::iq2_xxs, block)[224 + 1] == 25);
  CHECK(decode(Format::iq2_xxs, block)[224 + 7] == 43);
}

TEST_CASE("codebooks: an IQ2_XS block by hand") {
  Block block(74);
  set_half(block, 0, -8.0f);
  set(block, 2 + 2 * 31, 0xff);          // the last point: index 511, all 43, and
  set(block, 2 + 2 * 31 + 1, 0x02 | 1);  // sign bit 0, hence 7 as well
  set(block, 66 + 7, 0x70);              // group 15: scale 2 * 7 + 1
  set(block, 66 + 0, 0x01);              // group 0: 3
  std::vector<float> expected(256, -8.0f);
  for (std::size_t i = 0; i < 16; ++i) expected[i] = -24;
  for (std::size_t i = 240; i < 248; ++i) expected[i] = -8 * 15;
  for (std::size_t i = 248; i < 256; ++i) expected[i] = -43 * 15;
  expected[248] = expected[255] = 43 * 15;
  CHECK(decode(Format::iq2_xs, block) == expected);
}

TEST_CASE("codebooks: an IQ2_S block by hand") {
  Block block(82);
  set_half(block, 0, 8.0f);
  set(block, 2 + 5, 0xa5);     // point 5: the low bits of 677, 0x1919081908192b08,
  set(block, 66 + 1, 2 << 2);  // and the high ones, at the second place of byte 1
  set(block, 34 + 5, 0x80);    // value 7 of point 5 alone is negative
  set(block, 74 + 1, 0x21);    // groups 2 (points 4, 5) and 3: scales 3 and 5
  std::vector<float> expected(256, 8.0f);
  for (std::size_t i = 32; i < 48; ++i) expected[i] = 24;
  for (std::size_t i = 48; i < 64; ++i) expected[i] = 40;
  const float point[] = {8, 43, 25, 8, 25, 8, 25, -25};
  for (std::size_t i = 0; i < 8; ++i) expected[40 + i] = 3 * point[i];
  CHECK(decode(Format::iq2_s, block) == expected);
}

TEST_CASE("codebooks: an IQ3_XXS block by hand") {
  Block block(98);
  set_half(block, 0, 4.0f);
  set(block, 2 + 8 + 3, 255);  // group 1, point 3 (values 12 to 15): 0x3e341c04
  // Points 2 and 3 share the second seven signs: values 0 and 5 of these eight. Scale 2 * 15 + 1.
  set_word(block, 66 + 4, 15u << 28 | 0x21u << 7);
  std::vector<float> expected(256, 4.0f);
  for (std::size_t i = 32; i < 64; ++i) expected[i] = 4 * 31;
  expected[32 + 8] = -4 * 31;
  expected[32 + 12] = 4 * 31;
  expected[32 + 13] = -28 * 31;
  expected[32 + 14] = 52 * 31;
  expected[32 + 15] = 62 * 31;
  CHECK(decode(Format::iq3_xxs, block) == expected);
}

TEST_CASE("codebooks: an IQ3_S block by hand") {
  Block block(110);
  set_half(block, 0, 2.0f);
  set(block, 2 + 63, 0xff);   // the last point: 511, 0x0f0f0101
  set(block, 66 + 7, 0x80);   // its ninth bit
  set(block, 74 + 31, 0xc0);  // its upper two values are negative
  set(block, 74 + 0, 0x10);   // and so is value 4
  set(block, 106 + 3, 0x10);  // group 7: scale 3
  set(block, 106 + 0, 0x02);  // group 0: scale 5
  std::vector<float> expected(256, 2.0f);
  for (std::size_t i = 0; i < 32; ++i) expected[i] = 10;
  expected[4] = -10;
  for (std::size_t i = 224; i < 254; ++i) expected[i] = 6;
  expected[254] = expected[255] = -90;
  CHECK(decode(Format::iq3_s, block) == expected);
}

TEST_CASE("codebooks: an IQ1_S block by hand") {
  Block block(50);  // every index 0: -1 plus an eighth
  set_half(block, 0, 8.0f);
  set(block, 2 + 4 * 7 + 3, 1);  // group 7, point 3: the low bits of 769, 0x00ff0001ff010100
  set(block, 34 + 14, 0);        // whose high bits, 3, are bits 9 to 11 of the word
  set(block, 34 + 15, 0x80 | 0x20 | 0x06);  // scale 2 * 2 + 1, down by an eighth
  std::vector<float> expected(256, -7.0f);
  for (std::size_t i = 224; i < 248; ++i) expected[i] = -9 * 5;
  const float point[] = {-1, 7, 7, -9, 7, -1, -9, -1};
  for (std::size_t i = 0; i < 8; ++i) expected[248 + i] = 5 * point[i];
  CHECK(decode(Format::iq1_s, block) == expected);
}

TEST_CASE("codebooks: an IQ1_M block by hand") {
  Block block(56);
  // d = 1.5 = 0x3e00: its nibbles, the lowest first, are the upper ones of the four words.
  set(block, 49, 0x00);
  set(block, 51, 0x00);
  set(block, 53, 0xe0 | 0x0e);  // groups 8 to 11: of 0x0e00 the scale codes are 0, 0, 0, 7
  set(block, 55, 0x30);
  set(block, 16 * 2 + 15, 0xf0);  // point 31: index 0x700, down
  set(block, 32 + 11, 0x08);      // point 22, the first of group 11: down
  std::vector<float> expected(256, 1.5f * -0.875f);
  for (std::size_t i = 176; i < 184; ++i) expected[i] = 1.5f * 15 * -1.125f;
  for (std::size_t i = 184; i < 192; ++i) expected[i] = 1.5f * 15 * -0.875f;
  const float point[] = {1, -1, 0, 1, 1, 0, 0, 1};  // 0x010000010100ff01, read from the right
  for (std::size_t i = 0; i < 8; ++i) expected[248 + i] = 1.5f * (point[i] - 0.125f);
  CHECK(decode(Format::iq1_m, block) == expected);
  const quant::FormatTraits& format = quant::traits(Format::iq1_m);
  CHECK(format.first_bad_scale(block.data(), 1) == 1);
  set(block, 53, 0xc0);  // 0x7c00: infinity, but only with both nibbles
  CHECK(format.first_bad_scale(block.data(), 1) == 1);
  set(block, 55, 0x70);
  CHECK(format.first_bad_scale(block.data(), 1) == 0);
  set(block, 53, 0xb0);
  CHECK(format.first_bad_scale(block.data(), 1) == 1);
}

TEST_CASE("ternary: a TQ1_0 block by hand") {
  Block block(54);  // every digit 0: -1
  set_half(block, 52, 3.0f);
  set(block, 5, 183);        // 256 * 173 / 243 rounded up, 173 = 20102 in base 3
  set(block, 32 + 15, 255);  // 22222
  set(block, 48 + 3, 108);   // 10210, the last digit for nothing
  std::vector<float> expected(256, -3.0f);
  expected[5] = expected[5 + 128] = 3;
  expected[5 + 64] = 0;
  for (std::size_t n = 0; n < 5; ++n) expected[160 + 16 * n + 15] = 3;
  expected[243] = expected[243 + 12] = 0;
  expected[243 + 8] = 3;
  CHECK(decode(Format::tq1_0, block) == expected);
}

TEST_CASE("ternary: a TQ2_0 block by hand") {
  Block block(66);  // every value 0 - 1
  set_half(block, 64, 3.0f);
  set(block, 1, 0x24);        // values 1, 33, 65, 97: 0, 1, 2, 0 before 1 is taken off
  set(block, 32 + 31, 0xc0);  // value 255: 3, which no encoder writes
  std::vector<float> expected(256, -3.0f);
  expected[33] = 0;
  expected[65] = 3;
  expected[255] = 6;
  CHECK(decode(Format::tq2_0, block) == expected);
}
