// GGUF files that are right: what the writer writes, the reader reads, value for value and byte for
// byte; the typed access; and the public files of the shared data set.
#include "runtime/gguf.h"

#include <cmath>
#include <limits>
#include <span>
#include <thread>

#include "lockstep/error.h"
#include "runtime/gguf_writer.h"
#include "support/catch.h"
#include "support/gguf_builder.h"
#include "support/shared.h"
#include "support/temp_dir.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Stored = decltype(MetadataValue::value);

MetadataValue scalar(MetadataType type, Stored value) { return {type, {}, std::move(value)}; }
MetadataValue array(MetadataType element, Stored value) {
  return {MetadataType::array, element, std::move(value)};
}

// Every type at its edges.
std::vector<MetadataEntry> every_value() {
  using T = MetadataType;
  using U = std::vector<std::uint64_t>;
  using I = std::vector<std::int64_t>;
  using D = std::vector<double>;
  return {
      {"u8", scalar(T::u8, std::uint64_t{255})},
      {"i8", scalar(T::i8, std::int64_t{-128})},
      {"u16", scalar(T::u16, std::uint64_t{65535})},
      {"i16", scalar(T::i16, std::int64_t{-32768})},
      {"u32", scalar(T::u32, std::uint64_t{4294967295u})},
      {"i32", scalar(T::i32, std::int64_t{-2147483648})},
      {"u64", scalar(T::u64, std::numeric_limits<std::uint64_t>::max())},
      {"i64", scalar(T::i64, std::numeric_limits<std::int64_t>::min())},
      {"f32", scalar(T::f32, double{1.5f})},
      {"f64", scalar(T::f64, 1e300)},
      {"true", scalar(T::boolean, true)},
      {"false", scalar(T::boolean, false)},
      {"empty string", scalar(T::string, std::string())},
      {"bytes", scalar(T::string, std::string("\0\n\xff\xfe zwei", 10))},
      {"long", scalar(T::string, std::string(700000, 'x'))},  // longer than any buffer
      {"u8s", array(T::u8, U{0, 255})},
      {"i8s", array(T::i8, I{-128, 127})},
      {"u16s", array(T::u16, U{0, 65535})},
      {"i16s", array(T::i16, I{-32768, 32767})},
      {"u32s", array(T::u32, U{0, 4294967295u})},
      {"i32s", array(T::i32, I{-2147483648, 2147483647})},
      {"u64s", array(T::u64, U{0, std::numeric_limits<std::uint64_t>::max()})},
      {"i64s", array(T::i64, I{std::numeric_limits<std::int64_t>::min(), -1})},
      {"f32s", array(T::f32, D{-0.0, 1.5, std::numeric_limits<double>::infinity()})},
      {"f64s", array(T::f64, D{1e-300, -1e300})},
      {"bools", array(T::boolean, U{1, 0, 1})},
      {"strings", array(T::string, std::vector<std::string>{"", "a", std::string(300000, 'y')})},
      {"none", array(T::i32, I{})},
      {"no strings", array(T::string, std::vector<std::string>{})},
      {"many", array(T::u16, U(10007, 513))},
      {std::string(300, 'k'), scalar(T::u32, std::uint64_t{1})},
  };
}

std::vector<std::byte> pattern(std::size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(i * 31 + i / 256 + seed);
  return bytes;
}

template <typename Call>
void check_refused(Call call, const std::string& phrase) {
  try {
    call();
    FAIL("accepted; expected: " << phrase);
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == ErrorCode::bad_model);
    CHECK(std::string(error.what()).find(phrase) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("every metadata type survives writing and reading") {
  TempDir folder;
  const std::vector<MetadataEntry> entries = every_value();
  GgufWriter writer;
  for (const MetadataEntry& entry : entries) writer.add(entry.key, entry.value);
  writer.write(folder.path() / "file");
  const GgufFile file = GgufFile::open(folder.path() / "file");
  CHECK(file.version() == 3);
  CHECK(file.alignment() == 32);
  REQUIRE(file.metadata().size() == entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    INFO(entries[i].key.substr(0, 20));
    const MetadataEntry& read = file.metadata()[i];
    CHECK(read.key == entries[i].key);
    CHECK(read.value.type == entries[i].value.type);
    if (read.value.type == MetadataType::array)
      CHECK(read.value.element == entries[i].value.element);
    CHECK((read.value.value == entries[i].value.value));
    CHECK(file.find(entries[i].key) == &read.value);
  }
  CHECK(file.find("missing") == nullptr);
}

TEST_CASE("tensors survive writing and reading, at every alignment") {
  const std::uint32_t alignment = GENERATE(8u, 16u, 32u, 64u, 4096u);
  TempDir folder;
  GgufWriter writer;
  writer.add("general.alignment", scalar(MetadataType::u32, std::uint64_t{alignment}));
  struct Case {
    std::string name;
    quant::Format format;
    std::vector<std::uint64_t> dims;
    std::uint64_t elements;
    std::uint64_t bytes;
  };
  const std::vector<Case> cases = {
      {"scalar", quant::Format::f32, {1}, 1, 4},
      {"odd", quant::Format::i8, {7, 3}, 21, 21},
      {"empty", quant::Format::f32, {0}, 0, 0},
      {"empty too", quant::Format::q8_0, {32, 0, 5}, 0, 0},
      {"q4_0", quant::Format::q4_0, {64, 3}, 192, 108},
      {"q6_k", quant::Format::q6_k, {256, 2, 1, 3}, 1536, 1260},
      {"large", quant::Format::bf16, {1024, 1500}, 1536000, 3072000},  // several pieces
      {std::string(200, 'n'), quant::Format::f16, {3, 3, 3, 3}, 81, 162},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    writer.add_tensor(cases[i].name, cases[i].format, cases[i].dims,
                      pattern(cases[i].bytes, static_cast<unsigned>(i)));
  }
  writer.write(folder.path() / "file");
  const GgufFile file = GgufFile::open(folder.path() / "file");
  CHECK(file.alignment() == alignment);
  CHECK(file.data_offset() % alignment == 0);
  CHECK(file.file_bytes() == writer.file_bytes());
  CHECK(file.file_bytes() == std::filesystem::file_size(folder.path() / "file"));
  REQUIRE(file.tensors().size() == cases.size());
  std::uint64_t end = file.data_offset();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].name);
    const GgufTensor* tensor = file.find_tensor(cases[i].name);
    REQUIRE(tensor == &file.tensors()[i]);
    CHECK(tensor->format == &quant::traits(cases[i].format));
    CHECK(tensor->dims == cases[i].dims);
    CHECK(tensor->elements == cases[i].elements);
    CHECK(tensor->bytes == cases[i].bytes);
    CHECK(tensor->offset % alignment == 0);
    CHECK(tensor->offset >= end);
    end = tensor->offset + tensor->bytes;
    std::vector<std::byte> read(tensor->bytes);
    file.read(*tensor, 0, read);
    const std::vector<std::byte> expected = pattern(cases[i].bytes, static_cast<unsigned>(i));
    CHECK((read == expected));
    if (read.size() < 8) continue;
    std::vector<std::byte> part(5);
    file.read(*tensor, 3, part);
    CHECK(std::equal(part.begin(), part.end(), expected.begin() + 3));
  }
}

TEST_CASE("reading outside of a tensor is refused, also where the sum wraps") {
  TempDir folder;
  GgufWriter writer;
  writer.add_tensor("a", quant::Format::f32, {4}, pattern(16, 0));
  writer.add_tensor("b", quant::Format::f32, {4}, pattern(16, 1));
  writer.write(folder.path() / "file");
  const GgufFile file = GgufFile::open(folder.path() / "file");
  std::vector<std::byte> into(8);
  const GgufTensor& tensor = *file.find_tensor("a");
  CHECK_NOTHROW(file.read(tensor, 8, into));
  CHECK_NOTHROW(file.read(tensor, 16, {}));
  for (const std::uint64_t offset :
       {std::uint64_t{9}, std::uint64_t{16}, UINT64_MAX - 7, UINT64_MAX}) {
    CHECK_THROWS_AS(file.read(tensor, offset, into), Error);
  }
}

TEST_CASE("tensor bytes can be read by several threads at once") {
  TempDir folder;
  const std::vector<std::byte> bytes = pattern(1u << 20, 5);
  GgufWriter writer;
  writer.add_tensor("a", quant::Format::i8, {1u << 20}, bytes);
  writer.write(folder.path() / "file");
  const GgufFile file = GgufFile::open(folder.path() / "file");
  std::vector<std::byte> read(bytes.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t at = t * 4096; at < read.size(); at += 4 * 4096) {
        file.read(file.tensors()[0], at, std::span(read).subspan(at, 4096));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK((read == bytes));
}

TEST_CASE("a moved file keeps reading") {
  TempDir folder;
  GgufWriter writer;
  writer.add_u32("key", 5);
  writer.add_tensor("a", quant::Format::f32, {4}, pattern(16, 0));
  writer.write(folder.path() / "file");
  GgufFile first = GgufFile::open(folder.path() / "file");
  GgufFile second = std::move(first);
  first = GgufFile::open(folder.path() / "file");
  first = std::move(second);
  std::vector<std::byte> read(16);
  first.read(*first.find_tensor("a"), 0, read);
  CHECK((read == pattern(16, 0)));
  CHECK(first.require_u32("key") == 5);
  CHECK(first.path() == folder.path() / "file");
}

TEST_CASE("typed access takes what fits and names the key otherwise") {
  TempDir folder;
  GgufWriter writer;
  for (const MetadataEntry& entry : every_value()) writer.add(entry.key, entry.value);
  writer.add("i32 seven", scalar(MetadataType::i32, std::int64_t{7}));
  writer.add("u64 seven", scalar(MetadataType::u64, std::uint64_t{7}));
  writer.add("nan", scalar(MetadataType::f32, std::numeric_limits<double>::quiet_NaN()));
  writer.add("bad\nkey", scalar(MetadataType::string, std::string("text")));
  writer.write(folder.path() / "file");
  const GgufFile file = GgufFile::open(folder.path() / "file");

  CHECK(file.require_u32("u8") == 255);
  CHECK(file.require_u32("u32") == 4294967295u);
  CHECK(file.require_u32("i32 seven") == 7);
  CHECK(file.require_u32("u64 seven") == 7);
  CHECK(file.u32("missing") == std::nullopt);
  check_refused([&] { (void)file.require_u32("missing"); }, "metadata key 'missing' is missing");
  check_refused([&] { (void)file.u32("u64"); }, "metadata key 'u64' is 18446744073709551615");
  check_refused([&] { (void)file.u32("i32"); }, "metadata key 'i32' is -2147483648, expected 0 to");
  check_refused([&] { (void)file.u32("f32"); },
                "metadata key 'f32' is of type f32, expected an integer");
  check_refused([&] { (void)file.u32("true"); }, "metadata key 'true' is of type bool");

  CHECK(file.require_f32("f32") == 1.5f);
  CHECK(file.f32("missing") == std::nullopt);
  check_refused([&] { (void)file.require_f32("missing"); }, "'missing' is missing");
  check_refused([&] { (void)file.f32("f64"); }, "'f64' is 1e+300, no finite f32");
  check_refused([&] { (void)file.f32("nan"); }, "'nan' is nan, no finite f32");
  check_refused([&] { (void)file.f32("u8"); },
                "'u8' is of type u8, expected a floating-point number");

  CHECK(file.boolean("true") == true);
  CHECK(file.boolean("false") == false);
  CHECK(file.boolean("missing") == std::nullopt);
  check_refused([&] { (void)file.boolean("u8"); }, "expected a bool");

  CHECK(file.require_string("empty string").empty());
  CHECK(file.string("missing") == std::nullopt);
  CHECK(file.string("bad\nkey") == "text");
  check_refused([&] { (void)file.require_string("missing"); }, "'missing' is missing");
  check_refused([&] { (void)file.string("u8"); }, "expected a string");
  check_refused([&] { (void)file.u32("bad\nkey"); }, "metadata key 'bad\\nkey' is of type string");

  CHECK(file.strings("strings")->size() == 3);
  CHECK(file.strings("no strings")->empty());
  CHECK(file.strings("missing") == nullptr);
  check_refused([&] { (void)file.strings("u8s"); },
                "'u8s' is an array of u8, expected an array of strings");
  check_refused([&] { (void)file.strings("u8"); },
                "'u8' is of type u8, expected an array of strings");
  CHECK((*file.floats("f64s") == std::vector<double>{1e-300, -1e300}));
  check_refused([&] { (void)file.floats("i32s"); }, "expected an array of floating-point numbers");

  CHECK((file.integers("i32s") == std::vector<std::int32_t>{-2147483647 - 1, 2147483647}));
  CHECK((file.integers("u8s") == std::vector<std::int32_t>{0, 255}));
  CHECK(file.integers("none")->empty());
  CHECK(file.integers("missing") == std::nullopt);
  check_refused([&] { (void)file.integers("u32s"); }, "'u32s' holds 4294967295 at index 1");
  check_refused([&] { (void)file.integers("i64s"); },
                "'i64s' holds -9223372036854775808 at index 0");
  check_refused([&] { (void)file.integers("bools"); },
                "'bools' is an array of bool, expected an array of");
  check_refused([&] { (void)file.integers("f32s"); }, "expected an array of integers");
}

TEST_CASE("version 2 files open") {
  TempDir folder;
  GgufBuilder builder;
  builder.version = 2;
  builder.u32("a", 7).tensor("t", {8}, 0, 0).fill_data(32);
  write_file(folder.path() / "file", builder.file());
  const GgufFile file = GgufFile::open(folder.path() / "file");
  CHECK(file.version() == 2);
  CHECK(file.require_u32("a") == 7);
  CHECK(file.find_tensor("t")->bytes == 32);
}

TEST_CASE("a file without tensors needs no data, not even the padding") {
  TempDir folder;
  write_file(folder.path() / "file", GgufBuilder{}.u32("a", 7).header());
  CHECK(GgufFile::open(folder.path() / "file").tensors().empty());
}

TEST_CASE("a zero-size tensor at the very end needs no byte") {
  TempDir folder;
  GgufBuilder builder;
  builder.tensor("a", {9}, 0, 0).tensor("z", {0}, 0, 64).fill_data(36);
  write_file(folder.path() / "file", builder.file());
  CHECK(GgufFile::open(folder.path() / "file").find_tensor("z")->bytes == 0);
}

TEST_CASE("the public files open with the right counts") {
  LOCKSTEP_SHARED_OR_SKIP(models, "models");
  struct Expected {
    const char* name;
    std::size_t entries;
    std::size_t tensors;
  };
  static constexpr Expected kExpected[] = {
      {"golden/logits_stories260K.gguf", 2, 2},
      {"golden/logits_storyteller_f16.gguf", 2, 2},
      {"golden/logits_storyteller_q4_0.gguf", 2, 2},
      {"golden/logits_storyteller_q4_k.gguf", 2, 2},
      {"golden/logits_storyteller_q6_k.gguf", 2, 2},
      {"golden/logits_storyteller_q8_0.gguf", 2, 2},
      {"golden/quant_golden.gguf", 2, 73},
      {"models/stories260K-f32.gguf", 19, 48},
      {"models/storyteller/storyteller-f16.gguf", 29, 38},
      {"models/storyteller/storyteller-iq4_nl.gguf", 30, 38},
      {"models/storyteller/storyteller-iq4_xs.gguf", 30, 38},
      {"models/storyteller/storyteller-q2_k.gguf", 30, 38},
      {"models/storyteller/storyteller-q3_k.gguf", 30, 38},
      {"models/storyteller/storyteller-q4_0.gguf", 30, 38},
      {"models/storyteller/storyteller-q4_1.gguf", 30, 38},
      {"models/storyteller/storyteller-q4_k.gguf", 30, 38},
      {"models/storyteller/storyteller-q5_0.gguf", 30, 38},
      {"models/storyteller/storyteller-q5_1.gguf", 30, 38},
      {"models/storyteller/storyteller-q5_k.gguf", 30, 38},
      {"models/storyteller/storyteller-q6_k.gguf", 30, 38},
      {"models/storyteller/storyteller-q8_0.gguf", 30, 38},
      {"tokenizers/ggml-vocab-deepseek-coder.gguf", 25, 0},
      {"tokenizers/ggml-vocab-gpt-2.gguf", 16, 0},
      {"tokenizers/ggml-vocab-gpt-neox.gguf", 17, 0},
      {"tokenizers/ggml-vocab-llama-bpe.gguf", 11, 0},
      {"tokenizers/ggml-vocab-llama-spm.gguf", 22, 0},
      {"tokenizers/ggml-vocab-mpt.gguf", 17, 0},
      {"tokenizers/ggml-vocab-phi-3.gguf", 26, 0},
      {"tokenizers/ggml-vocab-qwen2.gguf", 11, 0},
      {"tokenizers/ggml-vocab-starcoder.gguf", 19, 0},
  };
  for (const Expected& expected : kExpected) {
    const std::filesystem::path path = shared_dir() / expected.name;
    if (!std::filesystem::exists(path)) continue;  // the set may be smaller elsewhere
    INFO(expected.name);
    const GgufFile file = GgufFile::open(path);
    CHECK(file.metadata().size() == expected.entries);
    CHECK(file.tensors().size() == expected.tensors);
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.bytes == 0) continue;
      std::byte last{};
      CHECK_NOTHROW(file.read(tensor, tensor.bytes - 1, std::span(&last, 1)));
    }
  }
  // Every other file there must open too.
  for (const auto& item : std::filesystem::recursive_directory_iterator(shared_dir())) {
    if (item.path().extension() != ".gguf") continue;
    INFO(item.path().string());
    CHECK_NOTHROW(GgufFile::open(item.path()));
  }
}
