// The format table and the block formats on blocks worked out by hand, so that the meaning of every
// field is pinned without any reference file.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quant/format.h"
#include "quant/half.h"
#include "support/catch.h"
#include "test/quant/blocks.h"

namespace quant = lockstep::quant;
using namespace lockstep::test;
using quant::Format;
using quant::FormatTraits;

namespace {

Block encode(Format format, const std::vector<float>& values) {
  Block block(quant::bytes_of(format, values.size()));
  quant::traits(format).encode(values.data(), nullptr, block.data(), values.size());
  return block;
}

}  // namespace

TEST_CASE("formats: ids, names, blocks and bytes are the public ones, and one of our own") {
  struct Row {
    std::uint32_t id;
    const char* name;
    std::uint32_t values, bytes;
  };
  constexpr Row kPublic[] = {
      {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
      {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
      {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
      {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
      {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
      {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
      {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
      {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
      {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
      {1000, "Q4X", 256, 137},
  };
  REQUIRE(quant::all_formats().size() == std::size(kPublic));
  for (std::size_t i = 0; i < std::size(kPublic); ++i) {
    const FormatTraits& format = quant::all_formats()[i];
    const Row& row = kPublic[i];
    CAPTURE(row.name);
    CHECK(static_cast<std::uint32_t>(format.format) == row.id);
    CHECK(format.name == row.name);
    CHECK(format.block_values == row.values);
    CHECK(format.block_bytes == row.bytes);
    CHECK(quant::find_format(row.id) == &format);
    CHECK(quant::find_format(std::string_view(row.name)) == &format);
    CHECK(&quant::traits(format.format) == &format);
    CHECK(quant::bytes_of(format.format, 3 * row.values) == 3 * row.bytes);
  }
}

TEST_CASE("formats: what is no format is not found") {
  std::set<std::uint32_t> known;
  for (const FormatTraits& format : quant::all_formats()) {
    known.insert(static_cast<std::uint32_t>(format.format));
  }
  for (std::uint32_t id = 0; id < 1300; ++id) {
    CHECK((quant::find_format(id) != nullptr) == (known.count(id) == 1));
  }
  CHECK(quant::find_format(0xffffffffu) == nullptr);
  CHECK(quant::find_format(0x80000000u) == nullptr);
  for (const char* name : {"", "Q4", "Q4_0 ", "Q4_00", "q4-0", "unknown"}) {
    CHECK(quant::find_format(std::string_view(name)) == nullptr);
  }
  CHECK(quant::find_format(std::string_view("q4_k"))->format == Format::q4_k);
  CHECK(quant::find_format(std::string_view("Iq4_Nl"))->format == Format::iq4_nl);
}

TEST_CASE("formats: rows of the table are consistent") {
  for (const FormatTraits& format : quant::all_formats()) {
    CAPTURE(format.name);
    if (format.vec_dot != nullptr || format.encode != nullptr) CHECK(format.decode != nullptr);
    if (format.side != nullptr) {
      CHECK(format.decode == nullptr);
      CHECK(format.vec_dot == nullptr);
      CHECK(format.encode == nullptr);
      CHECK(format.side_bytes() > 0);
    }
    if (format.can_dot()) {
      CHECK(format.first_bad_scale != nullptr);
      const FormatTraits& partner = quant::traits(format.activation);
      CHECK((partner.format == Format::q8_0 || partner.format == Format::q8_k));
      CHECK(format.block_values % partner.block_values == 0);
    }
  }
  for (const Format format : {Format::f32, Format::f16, Format::bf16}) {
    CHECK(quant::traits(format).activation == Format::f32);
    CHECK(quant::traits(format).encode != nullptr);
  }
}

TEST_CASE("formats: dense values survive unaligned and empty") {
  const std::vector<float> values = {0.0f, -1.5f, 65504.0f, 6.103515625e-05f, -0.25f};
  for (const Format format : {Format::f32, Format::f16, Format::bf16}) {
    const Block block = encode(format, values);
    Block shifted(block.size() + 1);
    std::copy(block.begin(), block.end(), shifted.begin() + 1);
    std::vector<float> back(values.size());
    quant::traits(format).decode(shifted.data() + 1, back.data(), back.size());
    if (format == Format::bf16) back[2] = 65504.0f;  // eight bits of mantissa do not hold it
    CHECK(back == values);
    quant::traits(format).decode(nullptr, nullptr, 0);
    quant::traits(format).encode(nullptr, nullptr, nullptr, 0);
  }
}

TEST_CASE("formats: a Q4_0 block by hand") {
  Block block(18, std::byte{0x88});  // all zero
  set_half(block, 0, 0.5f);
  set(block, 2, 0xf8);   // value 16: 15 - 8 = 7
  set(block, 17, 0x80);  // value 15: 0 - 8; value 31: 0
  CHECK(nonzero(decode(Format::q4_0, block)) == "15=-4 16=3 ");
  CHECK(decode(Format::q4_0, block)[16] == 3.5f);
}

TEST_CASE("formats: a Q4_1 block by hand") {
  Block block(20);  // all zero
  set_half(block, 0, 0.5f);
  set_half(block, 2, -3.0f);
  set(block, 4, 0xf1);   // value 0: 1, value 16: 15
  set(block, 19, 0x80);  // value 15: 0; value 31: 8
  const std::vector<float> values = decode(Format::q4_1, block);
  CHECK(values[0] == 0.5f * 1 - 3);
  CHECK(values[16] == 0.5f * 15 - 3);
  CHECK(values[31] == 0.5f * 8 - 3);
  CHECK(std::count(values.begin(), values.end(), -3.0f) == 29);
}

TEST_CASE("formats: a Q5_0 block by hand") {
  Block block(22);
  set_half(block, 0, -2.0f);
  for (std::size_t i = 2; i < 6; ++i) set(block, i, 0xff);  // with no other bit: 16 - 16 = 0
  set(block, 2, 0xfe);                                      // value 0 loses its fifth bit
  set(block, 4, 0xfd);                                      // and so does value 17
  set(block, 6, 0x53);   // value 0: 3 - 16, value 16: 16 + 5 - 16
  set(block, 7, 0xf0);   // value 17: 15 - 16
  set(block, 21, 0xf1);  // value 15: 1, value 31: 15
  CHECK(nonzero(decode(Format::q5_0, block)) == "0=26 15=-2 16=-10 17=2 31=-30 ");
}

TEST_CASE("formats: a Q5_1 block by hand") {
  Block block(24);
  set_half(block, 0, 2.0f);
  set_half(block, 2, 0.0f);
  set(block, 4, 0x01);   // fifth bit of value 0
  set(block, 7, 0x80);   // and of value 31
  set(block, 8, 0x53);   // value 0: 16 + 3, value 16: 5
  set(block, 23, 0xf1);  // value 15: 1, value 31: 16 + 15
  CHECK(nonzero(decode(Format::q5_1, block)) == "0=38 15=2 16=10 31=62 ");
  set_half(block, 2, -10.0f);
  const std::vector<float> values = decode(Format::q5_1, block);
  CHECK(values[16] == 0.0f);
  CHECK(values[31] == 52.0f);
  CHECK(std::count(values.begin(), values.end(), -10.0f) == 28);
}

TEST_CASE("formats: a Q8_0 block by hand") {
  Block block(34);
  set_half(block, 0, 2.0f);
  set(block, 2, 0x80);
  set(block, 3, 0x7f);
  set(block, 33, 0xff);
  CHECK(nonzero(decode(Format::q8_0, block)) == "0=-256 1=254 31=-2 ");
}

TEST_CASE("formats: a Q2_K block by hand") {
  Block block(84);
  set_half(block, 80, 2.0f);
  set_half(block, 82, 0.5f);
  set(block, 0, 0x43);             // group 0: scale 3, minimum 4
  set(block, 3, 0x0f);             // group 3: scale 15
  set(block, 15, 0xf1);            // group 15: scale 1, minimum 15
  set(block, 16, 0x02);            // value 0: 2
  set(block, 16 + 31, 0x0c);       // value 32 + 31: 3, the last of group 3
  set(block, 16 + 32, 0xc0);       // value 128 + 96: 3, in group 14, whose scale is 0
  set(block, 16 + 32 + 16, 0x40);  // value 128 + 96 + 16: 1, the first of group 15
  const std::vector<float> values = decode(Format::q2_k, block);
  CHECK(values[0] == 2.0f * 3 * 2 - 0.5f * 4);
  CHECK(values[1] == -2.0f);
  CHECK(values[63] == 2.0f * 15 * 3);
  CHECK(values[240] == 2.0f * 1 * 1 - 0.5f * 15);
  CHECK(values[241] == -7.5f);
  CHECK(std::count(values.begin(), values.end(), 0.0f) == 256 - 16 - 1 - 16);
}

TEST_CASE("formats: a Q3_K block by hand") {
  Block block(110);
  for (std::size_t i = 0; i < 32; ++i) set(block, i, 0xff);  // third bits: 4 + 0 - 4 = 0
  set_half(block, 108, 2.0f);
  set(block, 96 + 0, 0x01);   // scale 0: low 1; scale 8: low 0
  set(block, 96 + 8, 0x03);   // scale 0: high 3, so 49 - 32 = 17; scales 4, 8, 12: -32
  set(block, 96 + 7, 0xa5);   // scale 7: low 5; scale 15: low 10
  set(block, 96 + 11, 0xc4);  // scale 3: 0 - 32; 7: 1; 11: 0; 15: 3
  set(block, 0, 0xde);        // values 0 and 128 + 32 lose their third bit
  set(block, 31, 0x7f);       // value 255 too
  set(block, 32, 0x01);       // value 0: 1 - 4
  set(block, 64, 0x08);       // value 128 + 32: 2 - 4, in group 10
  set(block, 32 + 31, 0xc0);  // value 127: 3, in group 7
  const std::vector<float> values = decode(Format::q3_k, block);
  CHECK(values[0] == 2.0f * 17 * -3);
  CHECK(values[160] == 2.0f * -32 * -2);
  CHECK(values[127] == 2.0f * (5 + 16 - 32) * 3);
  CHECK(values[255] == 2.0f * (10 + 48 - 32) * -4);
  CHECK(std::count(values.begin(), values.end(), 0.0f) == 256 - 4);
}

TEST_CASE("formats: a Q4_K block by hand") {
  Block block(144);
  set_half(block, 0, 1.0f);
  set_half(block, 2, 0.5f);
  set(block, 4 + 1, 0x80 | 3);      // scale 1 = 3; upper bits of scale 5: 2
  set(block, 4 + 4 + 1, 0x40 | 4);  // min 1 = 4; upper bits of min 5: 1
  set(block, 4 + 8 + 1, 0x21);      // scale 5 = 1 + 2 * 16 = 33, min 5 = 2 + 1 * 16 = 18
  set(block, 16 + 7, 0x5a);         // group 0 value 7 = 10, group 1 value 7 = 5
  set(block, 16 + 2 * 32, 0xb0);    // group 5 value 0 = 11
  const std::vector<float> values = decode(Format::q4_k, block);
  CHECK(values[7] == 0.0f);  // scale 0 = 0, min 0 = 0
  CHECK(values[32 + 7] == 3 * 5 - 0.5f * 4);
  CHECK(values[32 + 8] == -2.0f);
  CHECK(values[160] == 33 * 11 - 0.5f * 18);
  CHECK(values[161] == -9.0f);
  CHECK(std::count(values.begin(), values.end(), 0.0f) == 256 - 64);
}

TEST_CASE("formats: a Q5_K block by hand") {
  Block block(176);
  set_half(block, 0, 1.0f);
  set_half(block, 2, 0.5f);
  set(block, 4 + 1, 0x80 | 3);      // scale 1 = 3; upper bits of scale 5: 2
  set(block, 4 + 4 + 1, 0x40 | 4);  // minimum 1 = 4; upper bits of minimum 5: 1
  set(block, 4 + 8 + 1, 0x21);      // scale 5 = 1 + 2 * 16 = 33, minimum 5 = 2 + 1 * 16 = 18
  set(block, 16 + 7, 0x02);         // fifth bit of value 7 of group 1
  set(block, 16 + 31, 0x20);        // and of value 31 of group 5
  set(block, 48 + 7, 0x5a);         // group 0 value 7 = 10, group 1 value 7 = 16 + 5
  set(block, 48 + 2 * 32, 0xb0);    // group 5 value 0 = 11
  const std::vector<float> values = decode(Format::q5_k, block);
  CHECK(values[7] == 0.0f);  // scale 0 = 0, minimum 0 = 0
  CHECK(values[32 + 7] == 3 * 21 - 0.5f * 4);
  CHECK(values[32 + 8] == -2.0f);
  CHECK(values[160] == 33 * 11 - 0.5f * 18);
  CHECK(values[161] == -9.0f);
  CHECK(values[191] == 33 * 16 - 0.5f * 18);
  CHECK(std::count(values.begin(), values.end(), 0.0f) == 256 - 64);
}

TEST_CASE("formats: a Q6_K block by hand") {
  Block block(210);
  set_half(block, 208, 1.0f);
  for (std::size_t j = 0; j < 16; ++j)
    set(block, 192 + j, static_cast<unsigned>(j) + 1);  // scale of group j
  set(block, 192 + 15, 0x80);                           // -128
  // Everything is 0 - 32 times its scale; four values of half 0, l = 1, one in each quarter:
  set(block, 1, 0x21);        // low bits of values 1 (1) and 65 (2)
  set(block, 32 + 1, 0x43);   // of values 33 (3) and 97 (4)
  set(block, 128 + 1, 0xe4);  // upper bits 0, 1, 2, 3
  set(block, 64 + 63, 0xf0);  // half 1: value 128 + 127 low bits 15
  const std::vector<float> values = decode(Format::q6_k, block);
  CHECK(values[0] == -32.0f * 1);
  CHECK(values[1] == (1 - 32.0f) * 1);
  CHECK(values[33] == (3 + 16 - 32.0f) * 3);
  CHECK(values[65] == (2 + 32 - 32.0f) * 5);
  CHECK(values[97] == (4 + 48 - 32.0f) * 7);
  CHECK(values[255] == (15 - 32.0f) * -128);
  CHECK(values[254] == -32.0f * -128);
}

TEST_CASE("formats: the levels of IQ4_NL and an IQ4_XS block by hand") {
  Block small(18);
  set_half(small, 0, 2.0f);
  for (unsigned i = 0; i < 16; ++i) set(small, 2 + i, i | ((15 - i) << 4));
  const std::vector<float> levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
  const std::vector<float> values = decode(Format::iq4_nl, small);
  for (std::size_t i = 0; i < 16; ++i) {
    CHECK(values[i] == 2 * levels[i]);
    CHECK(values[31 - i] == 2 * levels[i]);
  }
  Block block(136);  // every index 0: level -127
  set_half(block, 0, 0.5f);
  set(block, 2, 0xaa);                // high bits of scales 0 to 3: 2, so all 32 - 32 = 0
  set(block, 3, 0x6a);                // of scales 4 to 7: 2, 2, 2, 1
  set(block, 4, 0x30);                // scale 1: 3
  set(block, 7, 0xf0);                // scale 7: 15 + 16 - 32
  set(block, 8 + 16, 0xf8);           // group 1: value 0 level 1, value 16 level 113
  set(block, 8 + 7 * 16 + 15, 0x9f);  // group 7: value 15 level 113, value 31 level 13
  const std::vector<float> wide = decode(Format::iq4_xs, block);
  CHECK(wide[32] == 0.5f * 3 * 1);
  CHECK(wide[33] == 0.5f * 3 * -127);
  CHECK(wide[48] == 0.5f * 3 * 113);
  CHECK(wide[224 + 15] == 0.5f * -1 * 113);
  CHECK(wide[224 + 31] == 0.5f * -1 * 13);
  CHECK(wide[224] == 0.5f * 127);
  CHECK(std::count(wide.begin(), wide.end(), 0.0f) == 6 * 32);
}

TEST_CASE("formats: 4-bit floats with power-of-two and with small float scales by hand") {
  const std::vector<float> codes = {0, 0.5f,  1,  1.5f,  2,  3,  4,  6,
                                    0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  Block block(17);
  for (unsigned i = 0; i < 16; ++i) set(block, 1 + i, i | ((15 - i) << 4));
  const std::pair<unsigned, float> powers[] = {{0, 0x1p-127f}, {1, 0x1p-126f}, {2, 0x1p-125f},
                                               {127, 1.0f},    {128, 2.0f},    {251, 0x1p124f}};
  for (const auto& [code, scale] : powers) {
    CAPTURE(code);
    set(block, 0, code);
    const std::vector<float> values = decode(Format::mxfp4, block);
    for (std::size_t i = 0; i < 16; ++i) {
      CHECK(values[i] == scale * codes[i]);
      CHECK(values[31 - i] == scale * codes[i]);
    }
    CHECK(quant::traits(Format::mxfp4).first_bad_scale(block.data(), 1) == 1);
  }
  set(block, 0, 255);  // the one NaN
  CHECK(quant::traits(Format::mxfp4).first_bad_scale(block.data(), 1) == 0);
  CHECK(std::isnan(decode(Format::mxfp4, block)[7]));

  Block groups(36);
  set(groups, 0, 0x01);       // the smallest: 2^-9
  set(groups, 1, 0x38);       // 1
  set(groups, 2, 0x7e);       // the largest: 448
  set(groups, 3, 0x0b);       // 2^-6 * (1 + 3/8)
  set(groups, 4, 0x07);       // group 0: value 0 = 6
  set(groups, 12 + 7, 0xb2);  // group 1: value 7 = 1, value 15 = -1.5
  set(groups, 20 + 1, 0x70);  // group 2: value 9 = 6
  set(groups, 28, 0x0a);      // group 3: value 0 = -1
  std::vector<float> expected(64);
  expected[0] = 6.0f / 512;
  expected[16 + 7] = 1;
  expected[16 + 15] = -1.5f;
  expected[32 + 9] = 6 * 448;
  expected[48] = -11.0f / 512;
  CHECK(decode(Format::nvfp4, groups) == expected);
  CHECK(quant::traits(Format::nvfp4).first_bad_scale(groups.data(), 1) == 1);
  set(groups, 3, 0x7f);
  CHECK(quant::traits(Format::nvfp4).first_bad_scale(groups.data(), 1) == 0);
  CHECK(std::isnan(decode(Format::nvfp4, groups)[48]));
  CHECK(decode(Format::nvfp4, groups)[47] == 0.0f);
}

TEST_CASE("formats: a Q8_K block by hand") {
  std::vector<float> values(256, 0.0f);
  values[3] = -254.0f;  // the extreme: becomes -127 with scale 2
  values[4] = 254.0f;
  values[255] = 5.0f;  // 2.5 rounds to even
  const Block block = encode(Format::q8_k, values);
  REQUIRE(block.size() == 292);
  float d = 0;
  std::memcpy(&d, block.data(), 4);
  CHECK(d == 2.0f);
  std::array<std::int8_t, 256> q{};
  std::memcpy(q.data(), &block[4], q.size());
  CHECK(static_cast<int>(q[3]) == -127);
  CHECK(static_cast<int>(q[4]) == 127);
  CHECK(static_cast<int>(q[255]) == 2);
  std::array<std::int16_t, 16> sums{};
  std::memcpy(sums.data(), &block[260], 32);
  CHECK(sums[0] == 0);
  CHECK(sums[15] == 2);
  CHECK(nonzero(decode(Format::q8_k, block)) == "3=-254 4=254 255=4 ");
}

TEST_CASE("formats: encoding by hand") {
  std::vector<float> values(32, 0.0f);
  values[1] = 4.0f;
  values[2] = -8.0f;  // extreme: q = 0, scale 1
  values[16] = 7.0f;
  CHECK(nonzero(decode(Format::q4_0, encode(Format::q4_0, values))) == "1=4 2=-8 16=7 ");
  values[2] = 8.0f;  // now the scale is negative
  CHECK(nonzero(decode(Format::q4_0, encode(Format::q4_0, values))) == "1=4 2=8 16=7 ");
  values[2] = -127.0f;
  values[3] = 2.5f;  // half away from zero
  CHECK(nonzero(decode(Format::q8_0, encode(Format::q8_0, values))) == "1=4 2=-127 3=3 16=7 ");
  values[2] = -16.0f;  // extreme: q = 0, scale 1; 2.5 rounds up
  CHECK(nonzero(decode(Format::q5_0, encode(Format::q5_0, values))) == "1=4 2=-16 3=3 16=7 ");
  values[31] = 16.0f;  // would be 32: the largest is 31
  CHECK(nonzero(decode(Format::q5_0, encode(Format::q5_0, values))) == "1=4 2=-16 3=3 16=7 31=15 ");
  values[2] = -5.0f;  // with 10 as the largest, 4-bit steps of 1
  values[3] = 0.5f;   // a half is rounded up
  values[31] = 10.0f;
  CHECK(nonzero(decode(Format::q4_1, encode(Format::q4_1, values))) == "1=4 2=-5 3=1 16=7 31=10 ");
  values[31] = 26.0f;  // 5-bit steps of 1
  CHECK(nonzero(decode(Format::q5_1, encode(Format::q5_1, values))) == "1=4 2=-5 3=1 16=7 31=26 ");
}

TEST_CASE("formats: encoding hostile values") {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Format format :
       {Format::q4_0, Format::q4_1, Format::q5_0, Format::q5_1, Format::q8_0, Format::q8_k}) {
    const FormatTraits& traits = quant::traits(format);
    CAPTURE(traits.name);
    const std::size_t n = traits.block_values;
    // Zeros and what is too small to have an inverse decode to zeros.
    for (const float tiny : {0.0f, -0.0f, 1e-45f, -1e-39f}) {
      const Block block = encode(format, std::vector<float>(n, tiny));
      CHECK(traits.first_bad_scale(block.data(), 1) == 1);
      CHECK(nonzero(decode(format, block)).empty());
    }
    // NaN and infinity make the block bad, and only that block.
    for (const float poison : {std::nanf(""), kInf, -kInf}) {
      std::vector<float> values(3 * n, 1.0f);
      values[n + n / 2] = poison;
      const Block block = encode(format, values);
      CHECK(traits.first_bad_scale(block.data(), 3) == 1);
      CHECK(traits.first_bad_scale(block.data(), 1) == 1);
      CHECK(traits.first_bad_scale(block.data() + 2 * traits.block_bytes, 1) == 1);
    }
    // A range that no f32 holds makes the block bad too, unless it is stored as no range.
    std::vector<float> extremes(n, kMax);
    extremes[1] = -kMax;
    const Block wide = encode(format, extremes);
    CHECK(traits.first_bad_scale(wide.data(), 1) == (format == Format::q8_k ? 1 : 0));
    // The largest finite values: an f16 scale overflows and says so, an f32 scale does not.
    const Block block = encode(format, std::vector<float>(n, kMax));
    CHECK(traits.first_bad_scale(block.data(), 1) == (format == Format::q8_k ? 1 : 0));
  }
}
