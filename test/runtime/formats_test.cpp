// Whole models in every format that can be computed with: they load, run, give the same bits on any
// number of threads and instruction set, and the logits of their decoded weights within the
// rounding of activations to 8 bits.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "lockstep/lockstep.h"
#include "support/catch.h"
#include "support/loose_file.h"
#include "support/model_run.h"
#include "support/random.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;
using quant::Format;
using quant::FormatTraits;

namespace {

constexpr std::size_t kTokens = 12;

// Blocks of any bytes whose values have about this root of the mean square. Drawing a block again
// until its scales happen to fit needs no knowledge of the format.
std::vector<std::byte> random_blocks(const FormatTraits& format, std::size_t values, double rms,
                                     Random& random) {
  std::vector<std::byte> bytes(quant::bytes_of(format.format, values));
  std::vector<float> decoded(format.block_values);
  for (std::size_t at = 0; at < bytes.size(); at += format.block_bytes) {
    double got = 0;
    do {
      for (std::size_t i = 0; i < format.block_bytes; ++i) {
        bytes[at + i] = static_cast<std::byte>(random.bits());
      }
      format.decode(&bytes[at], decoded.data(), decoded.size());
      double squares = 0;
      for (const float value : decoded) squares += double{value} * double{value};
      got = std::sqrt(squares / static_cast<double>(decoded.size()));
    } while (!(got > 0.5 * rms && got < 2 * rms));  // false for NaN
  }
  return bytes;
}

// Writes a model with random matrices in `format`, and the same one with them decoded to F32.
void write_pair(const FormatTraits& format, const TempDir& folder) {
  const auto base = folder.path() / "base.gguf";
  perf::LlamaShape shape = tiny_shape(format.format);
  shape.layers = 1;
  shape.feed_forward = std::max(shape.width, format.block_values);
  write_tiny_model(base, shape, Format::f32, 3);
  LooseFile coded(base);
  LooseFile decoded(base);
  Random random(static_cast<std::uint32_t>(format.format));
  for (std::size_t i = 0; i < coded.tensors.size(); ++i) {
    LooseTensor& tensor = coded.tensors[i];
    if (tensor.dims.size() != 2) continue;
    const std::size_t values = tensor.dims[0] * tensor.dims[1];
    const double rms = 1 / std::sqrt(static_cast<double>(tensor.dims[0]));
    tensor.format = format.format;
    tensor.bytes = random_blocks(format, values, rms, random);
    std::vector<float> floats(values);
    format.decode(tensor.bytes.data(), floats.data(), values);
    const auto bytes = std::as_bytes(std::span(floats));
    decoded.tensors[i].bytes.assign(bytes.begin(), bytes.end());
  }
  coded.write(folder.path() / "coded.gguf");
  decoded.write(folder.path() / "decoded.gguf");
}

std::vector<std::vector<float>> run(const Engine& engine, const std::filesystem::path& file) {
  const Model model = Model::load(engine, file);
  Session session(model, {});
  std::vector<std::int32_t> tokens;
  Random random(5);
  for (std::size_t i = 0; i < kTokens; ++i) {
    tokens.push_back(static_cast<std::int32_t>(random.below(model.info().vocabulary)));
  }
  return feed(session, tokens, 5, true);
}

double relative_distance(const std::vector<std::vector<float>>& a,
                         const std::vector<std::vector<float>>& b) {
  double difference = 0;
  double size = 0;
  for (std::size_t t = 0; t < a.size(); ++t) {
    for (std::size_t i = 0; i < a[t].size(); ++i) {
      difference += std::pow(double{a[t][i]} - double{b[t][i]}, 2);
      size += std::pow(double{b[t][i]}, 2);
    }
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("formats: a model in each of them runs, bit for bit on any team, and near its decoding") {
  int formats = 0;
  for (const FormatTraits& format : quant::all_formats()) {
    if (format.vec_dot == nullptr) continue;
    CAPTURE(format.name);
    const TempDir folder;
    write_pair(format, folder);
    const auto coded = folder.path() / "coded.gguf";
    const auto logits = run(make_engine(1), coded);
    REQUIRE(logits.size() == kTokens);
    const std::uint64_t hash = hash_logits(logits);
    CHECK(hash_logits(run(make_engine(2), coded)) == hash);
    CHECK(hash_logits(run(make_engine(3, "scalar"), coded)) == hash);
    // 8 bits of activations are good for about a hundredth; other weights would be near 1.4.
    const double distance =
        relative_distance(logits, run(make_engine(2), folder.path() / "decoded.gguf"));
    CHECK(distance < 0.05);
    CHECK(distance > 0);
    ++formats;
  }
  CHECK(formats >= 22);
}
