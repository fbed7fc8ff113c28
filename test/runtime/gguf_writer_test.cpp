// What the GGUF writer refuses, and what it leaves behind when it fails. That its files are right
// is shown by reading them (gguf_test.cpp).
#include "runtime/gguf_writer.h"

#include "lockstep/error.h"
#include "support/catch.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"

using namespace lockstep;
using namespace lockstep::test;
using lockstep::quant::Format;

namespace {

template <typename Call>
void check_defect(Call call, const std::string& phrase) {
  try {
    call();
    FAIL("accepted; expected: " << phrase);
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == ErrorCode::internal);
    CHECK(std::string(error.what()).find(phrase) != std::string::npos);
  }
}

void zeros(std::uint64_t, std::span<std::byte> into) {
  std::fill(into.begin(), into.end(), std::byte{0});
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("the writer refuses what the reader would") {
  using T = MetadataType;
  GgufWriter writer;
  writer.add_u32("key", 1);
  check_defect([&] { writer.add_u32("key", 1); }, "key 'key' added twice");
  check_defect([&] { writer.add_u32("", 1); }, "a key of 0 bytes");
  check_defect([&] { writer.add_u32(std::string(65536, 'k'), 1); }, "a key of 65536 bytes");
  check_defect([&] { writer.add("a", {T::u8, {}, std::uint64_t{256}}); }, "256 does not fit");
  check_defect([&] { writer.add("a", {T::i8, {}, std::int64_t{-129}}); }, "-129 does not fit");
  check_defect(
      [&] {
        writer.add("a", {T::i32, {}, std::uint64_t{1}});
      },
      "an unsigned value as i32");
  check_defect([&] { writer.add("a", {T::u32, {}, std::int64_t{1}}); }, "a signed value as u32");
  check_defect([&] { writer.add("a", {T::u32, {}, 1.0}); }, "a float value as u32");
  check_defect([&] { writer.add("a", {T::u32, {}, true}); }, "a bool as u32");
  check_defect([&] { writer.add("a", {T::u32, {}, std::string()}); }, "a string as u32");
  check_defect(
      [&] {
        writer.add("a", {T::array, T::u32, std::uint64_t{1}});
      },
      "a scalar as an array");
  check_defect([&] { writer.add("a", {T::u32, {}, std::vector<double>{1}}); }, "an array as u32");
  check_defect(
      [&] {
        writer.add("a", {T::array, T::array, std::vector<double>{1}});
      },
      "an array as");
  check_defect(
      [&] {
        writer.add("a", {T::array, T::i8, std::vector<std::int64_t>{1, 128}});
      },
      "128 does not");
  check_defect([&] { writer.add_u32("general.alignment", 48); }, "power of two");
  check_defect(
      [&] {
        writer.add("general.alignment", {T::u64, {}, std::uint64_t{64}});
      },
      "must be a u32");

  writer.add_tensor("t", Format::q8_0, {32}, zeros);
  check_defect([&] { writer.add_tensor("t", Format::f32, {1}, zeros); }, "tensor 't' added twice");
  check_defect([&] { writer.add_tensor("", Format::f32, {1}, zeros); }, "a tensor name of 0 bytes");
  check_defect([&] { writer.add_tensor("a", Format::f32, {}, zeros); }, "has 0 dimensions");
  check_defect(
      [&] {
        writer.add_tensor("a", Format::f32, {1, 1, 1, 1, 1}, zeros);
      },
      "has 5 dimensions");
  check_defect([&] { writer.add_tensor("a", Format::q8_0, {33}, zeros); }, "rows of 33 values");
  check_defect(
      [&] {
        writer.add_tensor("a", Format::f32, {1u << 31, 1u << 31}, zeros);
      },
      "overflows");
  check_defect(
      [&] {
        writer.add_tensor("a", Format::f32, {0, 1ull << 40, 1ull << 40}, zeros);
      },
      "overflows");
  check_defect([&] { writer.add_tensor("a", Format::f32, {2}, std::vector<std::byte>(7)); },
               "was given 7");
  check_defect([&] { writer.add_tensor("a", Format::f32, {2}, GgufWriter::Fill()); },
               "has no source");

  // Nothing of all that has left a trace.
  TempDir folder;
  writer.write(folder.path() / "file");
  const GgufFile file = GgufFile::open(folder.path() / "file");
  CHECK(file.metadata().size() == 1);
  CHECK(file.tensors().size() == 1);
}

TEST_CASE("sizes that overflow together are refused") {
  GgufWriter writer;
  for (const char* name : {"a", "b", "c", "d"}) {
    writer.add_tensor(name, Format::i8, {1ull << 62}, zeros);
  }
  check_defect([&] { (void)writer.file_bytes(); }, "the file size overflows");
}

TEST_CASE("tensor data is asked for in order, in whole blocks of at most 1 MiB") {
  TempDir folder;
  GgufWriter writer;
  std::uint64_t expected = 0;
  std::size_t pieces = 0;
  writer.add_tensor("t", Format::q6_k, {256, 20000},
                    [&](std::uint64_t offset, std::span<std::byte> into) {
                      CHECK(offset == expected);
                      CHECK(into.size() % 210 == 0);
                      CHECK(into.size() <= 1u << 20);
                      zeros(offset, into);
                      expected = offset + into.size();
                      ++pieces;
                    });
  writer.write(folder.path() / "file");
  CHECK(expected == 20000 * 210);
  CHECK(pieces == 5);
}

TEST_CASE("a failed write leaves the old file and nothing else") {
  TempDir folder;
  write_file(folder.path() / "file", "old");
  GgufWriter writer;
  writer.add_tensor("t", Format::f32, {1000}, [](std::uint64_t, std::span<std::byte>) {
    throw std::runtime_error("no more data");
  });
  CHECK_THROWS_AS(writer.write(folder.path() / "file"), std::runtime_error);
  CHECK(read_file(folder.path() / "file") == "old");
  CHECK(files_in(folder.path()) == 1);

  GgufWriter good;
  good.write(folder.path() / "file");
  CHECK(GgufFile::open(folder.path() / "file").tensors().empty());
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("an output that cannot be made is reported as such") {
  TempDir folder;
  std::filesystem::create_directory(folder.path() / "folder");
  for (const char* name : {"missing/file", "folder"}) {
    INFO(name);
    try {
      GgufWriter{}.write(folder.path() / name);
      FAIL("written");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::cannot_create);
    }
  }
  CHECK(files_in(folder.path()) == 1);
}
