// GGUF files that are wrong: every one must be refused as a bad model, on one line, that says what
// is wrong and where; and none may cost memory or end in anything but Error.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/gguf.h"
#include "runtime/gguf_layout.h"
#include "support/catch.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// Ids of the public tables.
enum : std::uint32_t {
  kU8 = 0,
  kU16 = 2,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10
};
enum : std::uint32_t {
  kTensorF32 = 0,
  kTensorQ4_0 = 2,
  kTensorQ8_0 = 8,
  kTensorQ4_K = 12,
  kTensorQ6_K = 14
};

ByteBuilder bytes() { return {}; }

// An anonymous file in memory, so that thousands of variants need no disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : descriptor_(::memfd_create("model.gguf", 0)) {
    if (descriptor_ < 0 || ::write(descriptor_, content.data(), content.size()) !=
                               static_cast<ssize_t>(content.size())) {
      throw std::runtime_error("no memory file");
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  // Sparse: the rest reads as zeros.
  void grow(std::uint64_t size) const {
    REQUIRE(::ftruncate(descriptor_, static_cast<off_t>(size)) == 0);
  }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Nothing if the file opens; its refusal otherwise.
std::optional<std::string> refusal(const std::filesystem::path& path) {
  try {
    (void)GgufFile::open(path);
    return std::nullopt;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_model);
    return error.what();
  }
}

void check_refused(const std::string& file, const std::string& phrase) {
  const MemoryFile memory(file);
  const std::optional<std::string> message = refusal(memory.path());
  INFO("expected: " << phrase);
  REQUIRE(message.has_value());
  INFO(*message);
  CHECK(message->find(phrase) != std::string::npos);
  CHECK(message->rfind(memory.path().string() + ": ", 0) == 0);
  CHECK(message->find("(at byte ") != std::string::npos);
  CHECK(message->find('\n') == std::string::npos);
  CHECK(message->size() < 600);
}

// One of everything; 96 bytes of data.
GgufBuilder valid_file() {
  GgufBuilder builder;
  builder.string("general.architecture", "llama")
      .u32("llama.block_count", 1)
      .entry("flag", kBool, bytes().u8(1).bytes)
      .entry("scores", kArray, bytes().u32(kF32).u64(2).put(1.0f).put(2.0f).bytes)
      .entry("bools", kArray, bytes().u32(kBool).u64(2).u8(0).u8(1).bytes)
      .entry("tokens", kArray, bytes().u32(kString).u64(2).str("a").str("bc").bytes)
      .tensor("first", {5}, kTensorF32, 0)
      .tensor("second", {32, 1}, kTensorQ8_0, 32)
      .fill_data(96);
  return builder;
}

struct BadFile {
  const char* what;
  std::string file;
  const char* phrase;
};

std::vector<BadFile> bad_prologues() {
  const auto edited = [](auto edit) {
    GgufBuilder builder = valid_file();
    edit(builder);
    return builder.file();
  };
  return {
      {"empty", "", "the file is empty"},
      {"one byte", "G", "the magic number of 4 bytes is cut off"},
      {"text", "version https://git-lfs.github.com/spec/v1", "not a GGUF file: begins with 'vers'"},
      {"control characters", "\x1b[2J....", "begins with '\\x1b[2J'"},
      {"old format", "tjgg\1\0\0\0", "not a GGUF file: begins with 'tjgg'"},
      {"version 0", edited([](auto& b) { b.version = 0; }), "GGUF version 0 is not known"},
      {"version 1", edited([](auto& b) { b.version = 1; }), "GGUF version 1 is not supported"},
      {"version 4", edited([](auto& b) { b.version = 4; }), "GGUF version 4 is not known"},
      {"big endian 3", edited([](auto& b) { b.version = 3u << 24; }), "the byte order differs"},
      {"big endian 2", edited([](auto& b) { b.version = 2u << 24; }), "the byte order differs"},
      {"no counts", "GGUF" + bytes().u32(3).bytes, "the tensor count of 8 bytes is cut off"},
      {"tensors -1", edited([](auto& b) { b.tensor_count = INT64_MAX; }),
       "claims 9223372036854775807 tensors"},
      {"too many entries", edited([](auto& b) { b.entry_count = 1000; }),
       "claims 1000 metadata entries, but only"},
      {"one entry too many", edited([](auto& b) { b.entry_count = 7; }),
       "the name of tensor 1 of 2 is empty"},
      {"one entry too few", edited([](auto& b) { b.entry_count = 5; }), "tensor 'tokens'"},
      {"one tensor too many", edited([](auto& b) { b.tensor_count = 3; }),
       "the name of tensor 3 of 3: a name of 3615022833237690369 bytes"},
  };
}

std::string with_entry(std::string_view key, std::uint32_t type, const ByteBuilder& value) {
  return valid_file().entry(key, type, value.bytes).file();
}

std::vector<BadFile> bad_entries() {
  const std::string long_key(65536, 'k');
  GgufBuilder twice = valid_file();
  twice.u32("again", 1).string("other", "x").u32("again", 2);
  GgufBuilder controls;
  controls.entry("a\n\x1b[31mb\xff", kBool, bytes().u8(2).bytes);
  GgufBuilder cut_key = valid_file();
  cut_key.raw_entry(bytes().u64(1u << 20).raw("x").bytes + std::string(64, 'x'));
  return {
      {"empty key", with_entry("", kU32, bytes().u32(1)),
       "the key of metadata entry 7 of 7 is empty"},
      {"long key", with_entry(long_key, kU32, bytes().u32(1)), "at most 65535 are allowed"},
      {"key longer than file", cut_key.file(), "a name of 1048576 bytes does not fit"},
      {"key twice", twice.file(), "metadata key 'again' appears twice, first at byte"},
      {"type 13", with_entry("k", 13, bytes().u32(1)),
       "metadata key 'k': the value type 13 is not known"},
      {"type -1", with_entry("k", UINT32_MAX, bytes().u32(1)),
       "the value type 4294967295 is not known"},
      {"bool 2", with_entry("k", kBool, bytes().u8(2)), "metadata key 'k': a boolean is 2"},
      {"bool 255 in array", with_entry("k", kArray, bytes().u32(kBool).u64(3).u8(1).u8(0).u8(255)),
       "a boolean is 255"},
      {"escaped name", controls.file(), "metadata key 'a\\n\\x1b[31mb\\xff': a boolean is 2"},
      {"string length", with_entry("k", kString, bytes().u64(1000).raw("abc")),
       "a string of 1000 bytes does not fit"},
      {"string length -1", with_entry("k", kString, bytes().u64(UINT64_MAX)),
       "a string of 18446744073709551615 bytes"},
      {"nested array", with_entry("k", kArray, bytes().u32(kArray).u64(1).u32(kU8).u64(0)),
       "arrays of arrays are not"},
      {"array type", with_entry("k", kArray, bytes().u32(99).u64(1)),
       "the array element type 99 is not known"},
      {"array length", with_entry("k", kArray, bytes().u32(kU64).u64(100)),
       "an array of 100 u64 values does not fit"},
      {"array bytes wrap", with_entry("k", kArray, bytes().u32(kU64).u64(1ull << 61)),
       "does not fit"},
      {"array length -1", with_entry("k", kArray, bytes().u32(kU8).u64(UINT64_MAX)),
       "does not fit"},
      {"strings length", with_entry("k", kArray, bytes().u32(kString).u64(1ull << 40)),
       "does not fit"},
      {"string in array",
       with_entry("k", kArray, bytes().u32(kString).u64(2).str("a").u64(1 << 30)), "a string of"},
      {"split", with_entry("split.count", kU16, bytes().put(std::uint16_t{3})),
       "metadata key 'split.count' is 3: the model is split"},
      {"split u32", with_entry("split.count", kU32, bytes().u32(2)),
       "metadata key 'split.count' is 2"},
      {"split type", with_entry("split.count", kString, bytes().str("2")),
       "'split.count' has type string"},
      {"split signed", with_entry("split.count", kI32, bytes().u32(2)),
       "'split.count' has type i32"},
  };
}

std::string with_tensor(std::vector<std::uint64_t> dims, std::uint32_t format,
                        std::uint64_t offset = 96, std::int64_t rank = -1) {
  return valid_file()
      .tensor("bad\tone", std::move(dims), format, offset, rank)
      .fill_data(4096)
      .file();
}

std::vector<BadFile> bad_tensors() {
  GgufBuilder twice = valid_file();
  twice.tensor("first", {1}, kTensorF32, 96).fill_data(128);
  GgufBuilder unnamed = valid_file();
  unnamed.tensor("", {1}, kTensorF32, 96).fill_data(128);
  GgufBuilder long_name = valid_file();
  long_name.tensor(std::string(65536, 'n'), {1}, kTensorF32, 96).fill_data(128);
  constexpr std::uint64_t kHuge = 1ull << 32;
  return {
      {"name twice", twice.file(), "tensor 'first' appears twice, first at byte"},
      {"no name", unnamed.file(), "the name of tensor 3 of 3 is empty"},
      {"long name", long_name.file(), "at most 65535 are allowed"},
      {"rank 0", with_tensor({}, kTensorF32), "tensor 'bad\\tone' has 0 dimensions"},
      {"rank 5", with_tensor({1, 1, 1, 1, 1}, kTensorF32), "has 5 dimensions; 1 to 4"},
      {"rank -1", with_tensor({1}, kTensorF32, 96, UINT32_MAX), "has 4294967295 dimensions"},
      {"format 4", with_tensor({32}, 4), "has format id 4, which is not known"},
      {"format -1", with_tensor({32}, UINT32_MAX), "has format id 4294967295"},
      {"elements overflow", with_tensor({kHuge, kHuge}, kTensorF32),
       "the size 4294967296 x 4294967296 in F32 overflows"},
      {"elements wrap to small", with_tensor({kHuge, kHuge, 1, 1}, kTensorF32), "overflows"},
      {"dimension -1", with_tensor({UINT64_MAX}, kTensorF32), "overflows"},
      {"bytes overflow", with_tensor({kHuge, 1u << 30}, kTensorF32), "overflows"},
      {"zero hides overflow", with_tensor({kHuge, kHuge, 0}, kTensorF32), "overflows"},
      {"end overflows", with_tensor({1}, kTensorF32, UINT64_MAX - 31), "overflows"},
      {"larger than file", with_tensor({1u << 20}, kTensorF32), "tensor 'bad\\tone' ends at byte"},
      {"offset past end", with_tensor({1}, kTensorF32, 1u << 20), "but the file has only"},
      {"misaligned", with_tensor({1}, kTensorF32, 100),
       "has offset 100, which is no multiple of the alignment 32"},
      {"overlap", with_tensor({1}, kTensorF32, 64),
       "has offset 64, but tensor 'second' before it needs the data up to 66"},
      {"same place", with_tensor({1}, kTensorF32, 32), "overlap or are out of order"},
      {"out of order", with_tensor({1}, kTensorF32, 0), "overlap or are out of order"},
      {"Q8_0 row of 172", with_tensor({172, 2}, kTensorQ8_0),
       "tensor 'bad\\tone': rows of 172 values are no multiple of the block of 32 values of Q8_0"},
      {"Q4_0 row of 16", with_tensor({16, 2}, kTensorQ4_0),
       "rows of 16 values are no multiple of the block of 32 values of Q4_0"},
      {"Q4_K row of 896", with_tensor({896}, kTensorQ4_K),
       "rows of 896 values are no multiple of the block of 256 values of Q4_K"},
      {"Q6_K row of 128", with_tensor({128, 2}, kTensorQ6_K),
       "rows of 128 values are no multiple of the block of 256 values of Q6_K"},
  };
}

void check_all(const std::vector<BadFile>& files) {
  for (const BadFile& bad : files) {
    INFO(bad.what);
    check_refused(bad.file, bad.phrase);
  }
}

}  // namespace

TEST_CASE("the valid file that the bad ones are made from opens") {
  const MemoryFile memory(valid_file().file());
  const GgufFile file = GgufFile::open(memory.path());
  CHECK(file.metadata().size() == 6);
  CHECK(file.tensors().size() == 2);
}

TEST_CASE("bad prologues are refused by what is wrong") { check_all(bad_prologues()); }
TEST_CASE("bad metadata is refused by its key") { check_all(bad_entries()); }
TEST_CASE("bad tensors are refused by their name") { check_all(bad_tensors()); }

TEST_CASE("what is no file is no input, not a bad model") {
  TempDir folder;
  const auto code = [](const std::filesystem::path& path) {
    try {
      (void)GgufFile::open(path);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  CHECK(code(folder.path() / "missing") == ErrorCode::no_input);
  CHECK(code(folder.path()) == ErrorCode::no_input);
  CHECK(code("/dev/zero") == ErrorCode::no_input);
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK(code(folder.path() / "pipe") == ErrorCode::no_input);
}

TEST_CASE("the alignment is a u32 and a power of two from 8 to 1 MiB") {
  struct Case {
    std::uint64_t value;
    bool good;
  };
  for (const Case c : {Case{0, false},
                       {1, false},
                       {3, false},
                       {4, false},
                       {8, true},
                       {12, false},
                       {24, false},
                       {32, true},
                       {4096, true},
                       {1u << 20, true},
                       {1u << 21, false},
                       {1u << 31, false}}) {
    INFO(c.value);
    GgufBuilder builder;
    builder.u32("general.alignment", static_cast<std::uint32_t>(c.value))
        .tensor("t", {2}, kTensorF32, 0);
    builder.alignment = c.good ? c.value : 32;
    builder.fill_data(8);
    const std::string file = builder.file();
    if (!c.good) {
      check_refused(file, "metadata key 'general.alignment': " + std::to_string(c.value));
      continue;
    }
    const MemoryFile memory(file);
    const GgufFile opened = GgufFile::open(memory.path());
    CHECK(opened.alignment() == c.value);
    CHECK(opened.tensors()[0].offset == file.size() - 8);
  }
  check_refused(with_entry("general.alignment", kU64, bytes().u64(32)),
                "'general.alignment' has type u64, it must be u32");
  check_refused(with_entry("general.alignment", kString, bytes().str("32")),
                "has type string, it must be u32");
}

TEST_CASE("a model in one piece may say so") {
  const MemoryFile memory(with_entry("split.count", kU16, bytes().put(std::uint16_t{1})));
  CHECK_FALSE(refusal(memory.path()).has_value());
}

TEST_CASE("a file cut at any byte is refused, and one cut in its data names the tensor") {
  const std::string file = valid_file().file();
  const std::string header = valid_file().header();
  for (std::size_t size = 0; size < header.size(); ++size) check_refused(file.substr(0, size), "");
  // The last tensor needs 34 bytes at offset 32 of 96 bytes of data.
  const std::size_t data = file.size() - 96;
  for (std::size_t size = header.size(); size < data + 66; ++size) {
    INFO(size);
    check_refused(file.substr(0, size), size < data + 20 ? "tensor 'first' ends at byte"
                                                         : "tensor 'second' ends at byte");
  }
  const MemoryFile memory(file.substr(0, data + 66));
  CHECK_FALSE(refusal(memory.path()).has_value());
}

TEST_CASE("a damaged header opens or is refused, never anything else") {
  const std::string file = valid_file().file();
  const std::size_t header = valid_file().header().size();
  std::size_t opened = 0;
  std::size_t refused = 0;
  const auto attempt = [&](const std::string& damaged) {
    const MemoryFile memory(damaged);
    const std::optional<std::string> message = refusal(memory.path());
    ++(message ? refused : opened);
    if (message) CHECK(message->find('\n') == std::string::npos);
  };
  for (std::size_t bit = 0; bit < header * 8; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    attempt(damaged);
  }
  std::uint64_t state = 1;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  static constexpr int kEdges[] = {0, 1, 0x7f, 0x80, 0xff};
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = file;
    const std::size_t runs = 1 + random(4);
    for (std::size_t r = 0; r < runs; ++r) {
      const std::size_t at = random(header);
      const std::size_t length = std::min<std::size_t>(1 + random(8), header - at);
      const int value = random(2) == 0 ? kEdges[random(5)] : static_cast<int>(random(256));
      std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at), length,
                  static_cast<char>(value));
    }
    if (random(8) == 0) damaged.resize(random(damaged.size()));
    attempt(damaged);
  }
  // A flipped bit in a name or a value is still a valid file; most others are not.
  CHECK(opened > 100);
  CHECK(refused > 3000);
}

namespace {

// Opens the file in a child process and returns its largest memory use in KiB beyond what it began
// with; -1 unless it was refused as a bad model.
long child_memory(const std::filesystem::path& path) {
  const auto peak = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    long result = -1;
    // The peak is inherited: without a reset it would hide what this process adds.
    std::ofstream("/proc/self/clear_refs") << "5";
    const long before = peak();
    try {
      (void)GgufFile::open(path);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::bad_model) result = peak() - before;
    } catch (...) {
    }
    const bool sent = ::write(ends[1], &result, sizeof(result)) == sizeof(result);
    ::_exit(sent ? 0 : 1);
  }
  long result = -1;
  ::close(ends[1]);
  REQUIRE(::read(ends[0], &result, sizeof(result)) == sizeof(result));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  return result;
}

}  // namespace

TEST_CASE("a bad file costs little memory, however large it claims or is to be") {
  constexpr std::uint64_t kGiB = 1ull << 30;
  const auto prologue = [](std::uint64_t tensors, std::uint64_t entries) {
    return bytes().raw("GGUF").u32(3).u64(tensors).u64(entries);
  };
  struct Case {
    const char* what;
    std::string start;  // followed by zeros up to `size`
    std::uint64_t size;
  };
  std::string many_names = prologue(200000, 0).bytes;
  for (unsigned i = 0; i < 200000; ++i) {
    many_names +=
        bytes().str("tensor " + std::to_string(i)).u32(1).u64(0).u32(kTensorF32).u64(i % 32).bytes;
  }
  std::string many_keys = prologue(0, 100000).bytes;
  for (unsigned i = 0; i < 100000; ++i) {
    many_keys += bytes().str("key " + std::to_string(i / 2)).u32(kU8).u8(1).bytes;
  }
  std::string long_names = prologue(2000, 0).bytes;
  for (unsigned i = 0; i < 2000; ++i) {
    long_names += bytes()
                      .u64(65535)
                      .raw(std::string(65535, static_cast<char>(i)))
                      .u32(1)
                      .u64(0)
                      .u32(0)
                      .u64(0)
                      .bytes;
  }
  const std::vector<Case> cases = {
      {"strings", prologue(0, 1).str("k").u32(kArray).u32(kString).u64(kGiB / 16).bytes, kGiB},
      {"bytes", prologue(0, 1).str("k").u32(kArray).u32(kU8).u64(kGiB - 1000).bytes, kGiB},
      {"cut after bytes", prologue(0, 2).str("k").u32(kArray).u32(kU8).u64(30u << 20).bytes,
       (30u << 20) + 60},
      {"one long string", prologue(0, 2).str("k").u32(kString).u64(kGiB - 100).bytes, kGiB},
      {"string of most bytes", prologue(0, 2).str("k").u32(kString).u64(200u << 20).bytes, kGiB},
      {"tensor count", prologue(UINT64_MAX / 64, 0).bytes, kGiB},
      {"tensor count that fits", prologue(kMaxGgufTensors, 0).bytes, kGiB},
      {"entry count that fits", prologue(0, kMaxGgufEntries).bytes, kGiB},
      {"sizes near the end of all numbers",
       prologue(0, 1).str("k").u32(kArray).u32(kString).u64(1ull << 58).bytes, (1ull << 62)},
      {"many tensors", many_names, many_names.size() + 1000},
      {"many keys", many_keys, many_keys.size()},
      {"long names", long_names, long_names.size()},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    const MemoryFile memory(c.start);
    memory.grow(c.size);
    const long kib = child_memory(memory.path());
    CHECK(kib >= 0);
    CHECK(kib < 64 * 1024);
  }
}
