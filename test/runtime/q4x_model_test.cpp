// Models in Q4X: they load, compute the same bits on every instruction set, stay close to what they
// were made from, and are refused by name if the side data of a tensor is missing or damaged.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/lockstep.h"
#include "quant/q4x.h"
#include "runtime/gguf.h"
#include "runtime/gguf_writer.h"
#include "runtime/models/architecture.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;
using quant::Format;

namespace {

using Bytes = std::vector<std::byte>;

struct Tensor {
  std::string name;
  Format format;
  std::vector<std::uint64_t> dims;
  Bytes bytes;
};

// A small model whose matrices are Q4X, with its side tensors, in parts that can be damaged.
struct Parts {
  std::string architecture = kOwnArchitecture;
  std::string real_architecture = "llama";
  std::vector<MetadataEntry> metadata;
  std::vector<Tensor> tensors;

  explicit Parts(const std::filesystem::path& f32_model) {
    const GgufFile file = GgufFile::open(f32_model);
    for (const MetadataEntry& entry : file.metadata()) {
      if (entry.key != "general.architecture") metadata.push_back(entry);
    }
    for (const GgufTensor& tensor : file.tensors()) {
      Bytes bytes(tensor.bytes);
      file.read(tensor, 0, bytes);
      if (tensor.dims.size() != 2) {
        tensors.push_back({tensor.name, tensor.format->format, tensor.dims, bytes});
        continue;
      }
      add_encoded(tensor, bytes);
    }
  }

  void add_encoded(const GgufTensor& tensor, const Bytes& bytes) {
    std::vector<float> values(tensor.elements);
    tensor.format->decode(bytes.data(), values.data(), values.size());
    quant::q4x::Learner learner(tensor.dims[1], tensor.dims[0]);
    learner.take(0, tensor.dims[1], values.data(), nullptr);
    Bytes side(quant::q4x::kSideBytes);
    const quant::Isa isa = quant::choose_isa(quant::built_isas() & quant::detect_isas(), "");
    learner.learn(isa, side.data());
    Bytes blocks(quant::bytes_of(Format::q4x, values.size()));
    quant::q4x::find_encoder(isa)(side.data(), values.data(), nullptr, blocks.data(),
                                  values.size());
    tensors.push_back({tensor.name, Format::q4x, tensor.dims, blocks});
    tensors.push_back({quant::side_tensor_name(tensor.name), Format::i8, {side.size()}, side});
  }

  Tensor& tensor(const std::string& name) {
    for (Tensor& one : tensors) {
      if (one.name == name) return one;
    }
    throw std::logic_error("no tensor " + name);
  }

  void write(const std::filesystem::path& path) const {
    GgufWriter writer;
    writer.add_string("general.architecture", architecture);
    if (!real_architecture.empty()) writer.add_string(kRealArchitectureKey, real_architecture);
    for (const MetadataEntry& entry : metadata) writer.add(entry.key, entry.value);
    for (const Tensor& one : tensors) {
      writer.add_tensor(one.name, one.format, one.dims, one.bytes);
    }
    writer.write(path);
  }
};

// Folder with "f32.gguf"; width 256, as Q4X needs.
struct Models {
  TempDir folder;
  Models() { write_tiny_model(path("f32.gguf"), tiny_shape(Format::q4_k), Format::f32); }
  std::filesystem::path path(const char* name) const { return folder.path() / name; }
};

std::vector<std::vector<float>> logits_of(const std::filesystem::path& path, const std::string& isa,
                                          unsigned threads) {
  const Engine engine = make_engine(threads, isa);
  const Model model = Model::load(engine, path);
  Session session(model, {});
  const std::vector<std::int32_t> tokens = {1, 70, 71, 72, 100, 101, 5, 9, 200};
  return feed(session, tokens, 4, true);
}

}  // namespace

TEST_CASE("q4x model: the same bits on every instruction set, and close to its source") {
  const Models models;
  Parts(models.path("f32.gguf")).write(models.path("q4x.gguf"));
  const auto scalar = logits_of(models.path("q4x.gguf"), "scalar", 1);
  CHECK(scalar == logits_of(models.path("q4x.gguf"), "", 2));
  const auto exact = logits_of(models.path("f32.gguf"), "", 2);
  double error = 0;
  double size = 0;
  for (std::size_t t = 0; t < exact.size(); ++t) {
    for (std::size_t i = 0; i < exact[t].size(); ++i) {
      const double x = static_cast<double>(exact[t][i]);
      error += std::pow(static_cast<double>(scalar[t][i]) - x, 2);
      size += x * x;
    }
  }
  CHECK(error > 0);
  CHECK(error < 0.1 * size);
}

TEST_CASE("q4x model: refusals name the tensor") {
  const Models models;
  const Parts good(models.path("f32.gguf"));
  const Engine engine = make_engine(1);
  const auto expect = [&](const std::function<void(Parts&)>& damage,
                          const std::vector<std::string>& phrases) {
    Parts parts = good;
    damage(parts);
    parts.write(models.path("bad.gguf"));
    try {
      Model::load(engine, models.path("bad.gguf"));
      FAIL_CHECK("accepted; expected: " << phrases.front());
    } catch (const Error& error) {
      const std::string text = error.what();
      INFO(text);
      CHECK(error.code() == ErrorCode::bad_model);
      CHECK(text.find('\n') == text.npos);
      for (const std::string& phrase : phrases) {
        INFO("expected: " << phrase);
        CHECK(text.find(phrase) != text.npos);
      }
    }
  };
  const std::string side = "blk.1.ffn_up.weight.codebook";
  expect(
      [&](Parts& parts) {
        std::erase_if(parts.tensors, [&](const Tensor& one) { return one.name == side; });
      },
      {side, "missing", "Q4X"});
  expect(
      [&](Parts& parts) {
        parts.tensor(side).dims = {71};
        parts.tensor(side).bytes.resize(71);
      },
      {side, "I8 [71]", "expected I8 [72]"});
  expect(
      [&](Parts& parts) {
        parts.tensor(side).format = Format::f32;
        parts.tensor(side).dims = {18};
      },
      {side, "F32 [18]", "expected I8 [72]"});
  expect([&](Parts& parts) { parts.tensor(side).bytes[0] = std::byte{0x80}; },
         {side, "level", "damaged"});
  expect([&](Parts& parts) { parts.tensor(side).bytes[68] = std::byte{77}; }, {side, "shift"});
  expect([&](Parts& parts) { parts.tensor("token_embd.weight.codebook").name = "stray"; },
         {"token_embd.weight.codebook", "missing"});
  expect(
      [&](Parts& parts) {
        Tensor extra = parts.tensor(side);
        extra.name = "output_norm.weight.codebook";
        parts.tensors.push_back(extra);
      },
      {"output_norm.weight.codebook", "no place"});
  expect(
      [&](Parts& parts) {
        parts.tensor("blk.0.attn_k.weight").bytes[2 * quant::q4x::kBytes + 3] = std::byte{0x40};
      },
      {"blk.0.attn_k.weight", "block 0 in row 2", "not a finite number"});
  expect(
      [&](Parts& parts) {
        Tensor& norm = parts.tensor("output_norm.weight");
        norm.format = Format::q4x;
        norm.bytes.resize(quant::q4x::kBytes);
      },
      {"output_norm.weight", "Q4X", "matrices only"});
  expect([&](Parts& parts) { parts.real_architecture = "mamba"; }, {"mamba", "llama"});
  expect([&](Parts& parts) { parts.real_architecture = ""; }, {kRealArchitectureKey});
}

// What other tools see first is the architecture, and none of them knows this one.
TEST_CASE("q4x model: the file says that it is ours, and keeps all other keys") {
  const Models models;
  Parts(models.path("f32.gguf")).write(models.path("q4x.gguf"));
  const GgufFile file = GgufFile::open(models.path("q4x.gguf"));
  CHECK(file.require_string("general.architecture") == "lockstep");
  CHECK(architecture_of(file) == "llama");
  CHECK(file.require_u32("llama.block_count") == 2);
  CHECK(architecture_of(GgufFile::open(models.path("f32.gguf"))) == "llama");
}
