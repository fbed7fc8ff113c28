// Loading whole models: what is read is what was written, and every way in which a file can
// contradict itself is refused with the tensor or key, before it could give wrong results.
#include <functional>

#include "lockstep/lockstep.h"
#include "quant/half.h"
#include "runtime/gguf.h"
#include "runtime/gguf_writer.h"
#include "support/catch.h"
#include "support/loose_file.h"
#include "support/model_run.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;
using quant::Format;

namespace {

class Refusals {
 public:
  explicit Refusals(Format format) : engine_(make_engine(2)) {
    write_tiny_model(folder_.path() / "good.gguf", format);
  }

  // Applies `edit` to a good model and expects a refusal that contains all phrases.
  void expect(const std::function<void(LooseFile&)>& edit,
              const std::vector<std::string>& phrases) {
    LooseFile file(folder_.path() / "good.gguf");
    edit(file);
    file.write(folder_.path() / "bad.gguf");
    try {
      Model::load(engine_, folder_.path() / "bad.gguf");
      FAIL("accepted; expected: " << phrases.front());
    } catch (const Error& error) {
      const std::string text = error.what();
      INFO(text);
      REQUIRE(error.code() == ErrorCode::bad_model);
      REQUIRE(text.find("bad.gguf") != text.npos);
      REQUIRE(text.find('\n') == text.npos);
      for (const std::string& phrase : phrases) {
        INFO("expected: " << phrase);
        REQUIRE(text.find(phrase) != text.npos);
      }
    }
  }

 private:
  TempDir folder_;
  Engine engine_;
};

}  // namespace

TEST_CASE("model: tensors that are missing, too many or of another shape are named") {
  Refusals refusals(Format::q8_0);
  refusals.expect(
      [](LooseFile& file) {
        std::erase_if(file.tensors, [](const LooseTensor& tensor) {
          return tensor.name == "blk.1.attn_q.weight";
        });
      },
      {"blk.1.attn_q.weight", "missing"});
  refusals.expect(
      [](LooseFile& file) {
        LooseTensor extra = file.tensor("blk.0.attn_norm.weight");
        extra.name = "blk.0.attn_q.bias";
        file.tensors.push_back(extra);
      },
      {"blk.0.attn_q.bias", "no place"});
  refusals.expect([](LooseFile& file) { file.set_u32("llama.attention.head_count_kv", 4); },
                  {"blk.0.attn_k.weight", "[32, 64]", "expected [64, 64]"});
  refusals.expect([](LooseFile& file) { file.set_u32("llama.feed_forward_length", 128); },
                  {"blk.0.ffn_gate.weight", "[96, 64]", "expected [128, 64]"});
  refusals.expect([](LooseFile& file) { file.set_u32("llama.block_count", 3); },
                  {"blk.2.attn_norm.weight", "missing"});
}

TEST_CASE("model: formats that cannot be computed with are refused by name") {
  Refusals refusals(Format::q4_k);
  refusals.expect(
      [](LooseFile& file) {
        LooseTensor& tensor = file.tensor("blk.0.ffn_up.weight");
        tensor.format = Format::q8_1;
        REQUIRE(quant::traits(tensor.format).decode == nullptr);
        tensor.bytes.resize(quant::bytes_of(tensor.format, tensor.dims[0] * tensor.dims[1]));
      },
      {"blk.0.ffn_up.weight", "Q8_1"});
}

TEST_CASE("model: a block scale that is not finite is found while loading") {
  Refusals refusals(Format::q4_0);
  const auto poison = [](const char* name, std::size_t block) {
    return [=](LooseFile& file) {
      std::byte* at = file.tensor(name).bytes.data() + block * 18;
      at[0] = std::byte{0x00};
      at[1] = std::byte{0x7c};  // infinity
    };
  };
  // Rows of 64 values have two blocks.
  refusals.expect(poison("blk.1.ffn_up.weight", 2 * 37 + 1),
                  {"blk.1.ffn_up.weight", "block 1", "row 37", "finite"});
  refusals.expect(poison("token_embd.weight", 5), {"token_embd.weight", "finite"});
}

TEST_CASE("model: metadata that would change the arithmetic is understood or refused") {
  Refusals refusals(Format::f32);
  refusals.expect([](LooseFile& file) { file.set_string("general.architecture", "mamba"); },
                  {"mamba", "llama"});
  refusals.expect([](LooseFile& file) { file.set_string("llama.rope.scaling.type", "longrope"); },
                  {"longrope", "llama.rope.scaling.type", "yarn"});
  refusals.expect(
      [](LooseFile& file) {
        file.set_string("llama.rope.scaling.type", "yarn");
        file.set_f32("llama.rope.scaling.yarn_log_multiplier", 0.1);
      },
      {"llama.rope.scaling.yarn_log_multiplier"});
  refusals.expect([](LooseFile& file) { file.set_u32("llama.expert_count", 8); },
                  {"llama.expert_count"});
  refusals.expect([](LooseFile& file) { file.set_u32("llama.attention.head_count_kv", 3); },
                  {"4 attention heads", "3 key/value heads"});
  refusals.expect([](LooseFile& file) { file.set_u32("llama.attention.head_count", 0); },
                  {"llama.attention.head_count", "is 0"});
  refusals.expect([](LooseFile& file) { file.set_u32("llama.block_count", 1u << 30); },
                  {"llama.block_count"});
  refusals.expect([](LooseFile& file) { file.set_u32("llama.rope.dimension_count", 18); },
                  {"llama.rope.dimension_count", "18"});
  refusals.expect([](LooseFile& file) { file.set_f32("llama.rope.freq_base", -1.0); },
                  {"llama.rope.freq_base", "positive"});
  refusals.expect([](LooseFile& file) { file.set_string("llama.embedding_length", "sixty-four"); },
                  {"llama.embedding_length"});
}

TEST_CASE("model: RoPE scaling changes the result, none given means none") {
  TempDir folder;
  const auto good = folder.path() / "good.gguf";
  const auto scaled = folder.path() / "scaled.gguf";
  write_tiny_model(good, Format::f32);
  LooseFile file(good);
  file.set_string("llama.rope.scaling.type", "linear");
  file.set_f32("llama.rope.scaling.factor", 2.0);
  file.write(scaled);
  const Engine engine = make_engine(1);
  const std::vector<std::int32_t> tokens{1, 20, 30, 40};
  const auto run = [&](const std::filesystem::path& path) {
    const Model model = Model::load(engine, path);
    Session session(model, {});
    return hash_logits(feed(session, tokens, 4, true));
  };
  REQUIRE(run(good) != run(scaled));
  const std::uint64_t linear = run(scaled);
  file.set_string("llama.rope.scaling.type", "yarn");
  file.set_u32("llama.rope.scaling.original_context_length", 16);
  file.write(scaled);
  const std::uint64_t yarn = run(scaled);
  REQUIRE(yarn != linear);
  REQUIRE(yarn != run(good));
  file.set_f32("llama.rope.scaling.yarn_attn_factor", 1.5);
  file.write(scaled);
  REQUIRE(run(scaled) != yarn);
  // A factor of 1 is no scaling, whatever its name.
  file.set_f32("llama.rope.scaling.yarn_attn_factor", 1.0);
  file.set_f32("llama.rope.scaling.factor", 1.0);
  file.write(scaled);
  REQUIRE(run(good) == run(scaled));
}

TEST_CASE("model: what is told about a model is what its file holds") {
  TempDir folder;
  const auto path = folder.path() / "model.gguf";
  const perf::LlamaShape shape = tiny_shape(Format::q4_0);
  write_tiny_model(path, Format::q4_0);
  const Engine engine = make_engine(2);
  struct Calls {
    std::uint64_t done = 0, total = 0;
    int count = 0;
  } calls;
  ModelOptions options;
  options.progress = [](void* context, std::uint64_t done, std::uint64_t total) {
    auto& seen = *static_cast<Calls*>(context);
    if (done < seen.done) seen.count = -1000000;
    seen = {done, total, seen.count + 1};
  };
  options.progress_context = &calls;
  const Model model = Model::load(engine, path, options);
  const ModelInfo& info = model.info();
  REQUIRE(info.architecture == "llama");
  REQUIRE(info.layers == shape.layers);
  REQUIRE(info.width == shape.width);
  REQUIRE(info.heads == shape.heads);
  REQUIRE(info.kv_heads == shape.kv_heads);
  REQUIRE(info.vocabulary == shape.vocabulary);
  REQUIRE(info.context == shape.context);
  REQUIRE(calls.count > 0);
  REQUIRE(calls.done <= calls.total);
  REQUIRE(info.weight_bytes > info.decode_bytes);  // the embedding is looked up, not read through
  REQUIRE_THROWS_AS(Model::load(engine, folder.path() / "absent.gguf"), Error);
}
