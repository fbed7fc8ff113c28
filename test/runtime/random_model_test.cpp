// Model files with random weights: valid, the same for the same seed, and with weights of the mean
// and spread that keep activations finite.
#include <cmath>
#include <set>

#include "support/catch.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;
using lockstep::quant::Format;

TEST_CASE("a random model is the same for the same seed, in every format") {
  TempDir folder;
  for (const perf::RandomFormat& random : perf::kRandomFormats) {
    INFO(quant::traits(random.format).name);
    write_tiny_model(folder.path() / "a", random.format, 7);
    write_tiny_model(folder.path() / "b", random.format, 7);
    write_tiny_model(folder.path() / "c", random.format, 8);
    const std::string a = read_file(folder.path() / "a");
    CHECK((a == read_file(folder.path() / "b")));
    CHECK((a != read_file(folder.path() / "c")));
    const GgufFile file = GgufFile::open(folder.path() / "a");
    CHECK(file.tensors().size() == 21);
    CHECK(file.require_u32("general.file_type") == random.file_type);
    for (const GgufTensor& tensor : file.tensors()) {
      CHECK(tensor.format->format == (tensor.dims.size() == 1 ? Format::f32 : random.format));
    }
  }
}

TEST_CASE("random weights decode to mean 0 and standard deviation 1 / sqrt(columns)") {
  TempDir folder;
  for (const perf::RandomFormat& random : perf::kRandomFormats) {
    INFO(quant::traits(random.format).name);
    write_tiny_model(folder.path() / "model", random.format);
    const GgufFile file = GgufFile::open(folder.path() / "model");
    const GgufTensor& tensor = *file.find_tensor("token_embd.weight");
    std::vector<std::byte> bytes(tensor.bytes);
    file.read(tensor, 0, bytes);
    std::vector<float> values(tensor.elements);
    tensor.format->decode(bytes.data(), values.data(), values.size());
    double sum = 0, squares = 0, largest = 0;
    std::set<float> different;
    for (const float value : values) {
      sum += value;
      squares += double{value} * value;
      largest = std::fmax(largest, std::abs(value));
      different.insert(value);
    }
    const double n = static_cast<double>(values.size());
    const double sigma = 1 / std::sqrt(static_cast<double>(tensor.dims[0]));
    CHECK(std::abs(sum / n) < 0.03 * sigma);
    CHECK(std::sqrt(squares / n) == Approx(sigma).epsilon(0.03));
    CHECK(largest < 5.5 * sigma);
    // Scales differ from block to block; those of 8 bits are few.
    const bool coarse = random.format == Format::mxfp4 || random.format == Format::nvfp4;
    CHECK(different.size() > (coarse ? 16u : 1000u));
    if (tensor.format->first_bad_scale != nullptr) {
      const std::size_t blocks = values.size() / tensor.format->block_values;
      CHECK(tensor.format->first_bad_scale(bytes.data(), blocks) == blocks);
    }
  }
}

TEST_CASE("the vocabulary has every byte, different pieces and falling scores") {
  const std::uint32_t size = GENERATE(262u, 300u, 512u, 32000u, 128256u);
  const perf::LlamaVocabulary vocabulary(size);
  REQUIRE(vocabulary.pieces.size() == size);
  REQUIRE(vocabulary.scores.size() == size);
  REQUIRE(vocabulary.kinds.size() == size);
  CHECK(vocabulary.pieces[3] == "<0x00>");
  CHECK(vocabulary.pieces[258] == "<0xFF>");
  CHECK(vocabulary.kinds[258] == 6);
  CHECK(vocabulary.pieces[260] == "<|im_end|>");
  CHECK(vocabulary.pieces[261] == "\xe2\x96\x81");
  const std::set<std::string> pieces(vocabulary.pieces.begin(), vocabulary.pieces.end());
  CHECK(pieces.size() == size);
  std::size_t orphans = 0;
  for (std::size_t i = 262; i < size; ++i) {
    CHECK(vocabulary.scores[i] < vocabulary.scores[i - 1]);
    const std::string& piece = vocabulary.pieces[i];
    const std::size_t first = piece.starts_with("\xe2\x96\x81") ? 3 : 1;
    // Longer than one character: the last may be merged to the rest.
    if (piece.size() > first && !pieces.contains(piece.substr(0, piece.size() - 1))) ++orphans;
  }
  CHECK(orphans == 0);
}

TEST_CASE("impossible shapes are refused") {
  TempDir folder;
  const auto refused = [&](auto change, Format format = Format::q8_0) {
    perf::LlamaShape shape = tiny_shape(format);
    change(shape);
    CHECK_THROWS_AS(write_tiny_model(folder.path() / "model", shape, format),
                    std::invalid_argument);
    CHECK(std::filesystem::is_empty(folder.path()));
  };
  refused([](perf::LlamaShape& s) { s.layers = 0; });
  refused([](perf::LlamaShape& s) { s.heads = 0; });
  refused([](perf::LlamaShape& s) { s.heads = 3; });
  refused([](perf::LlamaShape& s) { s.kv_heads = 3; });
  refused([](perf::LlamaShape& s) { s.width = 80; });
  refused([](perf::LlamaShape& s) { s.feed_forward = 100; });
  refused([](perf::LlamaShape& s) { s.vocabulary = 261; });
  refused([](perf::LlamaShape& s) { s.feed_forward = 320; }, Format::q4_k);
  refused([](perf::LlamaShape&) {}, Format::q8_1);
}
