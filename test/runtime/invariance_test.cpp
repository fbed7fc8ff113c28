// The reproducibility rule: the logits of a sequence depend on the model file, the kernel set and
// its tokens alone. One hash for any thread count, chunking, batch mates, slot and instruction set.
#include <random>

#include "quant/isa.h"
#include "runtime/tokenizer/tokenizer.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/shared.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<std::int32_t> random_tokens(std::size_t n, std::size_t vocabulary, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(n);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % vocabulary);
  return tokens;
}

// Evaluates `tokens` in a middle slot while `mates` other sequences run in the same batches.
std::uint64_t hash_among_mates(const Model& model, const std::vector<std::int32_t>& tokens,
                               std::size_t mates, std::size_t place, KvType kv_type) {
  SessionOptions options;
  options.slots = mates + 1;
  options.kv_type = kv_type;
  Session session(model, options);
  const std::vector<std::int32_t> other = random_tokens(tokens.size(), model.info().vocabulary, 99);
  std::vector<std::vector<float>> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::vector<BatchEntry> batch;
    std::size_t mine = 0;
    for (std::size_t slot = 0; slot <= mates; ++slot) {
      const bool is_mine = slot == place;
      // Mates drop out and come back so that the batch size changes from step to step.
      if (!is_mine && (i + slot) % 5 == 0) continue;
      const auto position = static_cast<std::int32_t>(session.length(slot));
      if (is_mine) mine = batch.size();
      batch.push_back(
          {is_mine ? tokens[i] : other[i], position, static_cast<std::int32_t>(slot), true});
    }
    session.evaluate(batch);
    const std::span<const float> row = session.logits(mine);
    rows.emplace_back(row.begin(), row.end());
  }
  return hash_logits(rows);
}

void check_invariance(const std::filesystem::path& file, std::size_t length, KvType kv_type) {
  std::uint64_t expected = 0;
  for (const unsigned threads : {1u, 2u, 3u, 4u}) {
    const Engine engine = make_engine(threads);
    const Model model = Model::load(engine, file);
    const std::vector<std::int32_t> tokens = random_tokens(length, model.info().vocabulary, 7);
    for (const std::size_t chunk :
         {std::size_t{1}, std::size_t{3}, std::size_t{5}, std::size_t{64}, std::size_t{512}}) {
      SessionOptions options;
      options.kv_type = kv_type;
      Session session(model, options);
      const std::uint64_t hash = hash_logits(feed(session, tokens, chunk, true));
      if (expected == 0) expected = hash;
      INFO("threads " << threads << ", chunk " << chunk);
      REQUIRE(hash == expected);
    }
    for (const std::size_t mates : {std::size_t{1}, std::size_t{7}}) {
      for (const std::size_t place : {std::size_t{0}, mates / 2, mates}) {
        INFO("threads " << threads << ", place " << place << " among " << mates);
        REQUIRE(hash_among_mates(model, tokens, mates, place, kv_type) == expected);
      }
    }
  }
  for (const quant::Isa isa : quant::kAllIsas) {
    if (!(quant::built_isas() & quant::detect_isas()).has(isa)) continue;
    const Engine engine = make_engine(2, std::string(quant::name_of(isa)));
    const Model model = Model::load(engine, file);
    REQUIRE(engine.isa() == quant::name_of(isa));
    const std::vector<std::int32_t> tokens = random_tokens(length, model.info().vocabulary, 7);
    SessionOptions options;
    options.kv_type = kv_type;
    Session session(model, options);
    INFO("instruction set " << engine.isa());
    REQUIRE(hash_logits(feed(session, tokens, 64, true)) == expected);
  }
  for (const unsigned threads : {2u, 3u, 8u}) {
    const Engine engine = make_engine(threads);
    const Model model = Model::load(engine, file);
    const std::vector<std::int32_t> tokens = random_tokens(length, model.info().vocabulary, 7);
    for (const Schedule schedule : {Schedule::static_rows, Schedule::dynamic}) {
      for (const std::size_t chunk : {std::size_t{5}, std::size_t{512}}) {
        Session session(model, {.kv_type = kv_type, .schedule = schedule});
        INFO("schedule " << static_cast<int>(schedule) << ", threads " << threads);
        REQUIRE(hash_logits(feed(session, tokens, chunk, true)) == expected);
      }
    }
  }
  // Every node in a stage of its own, nothing replicated.
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, file);
  SessionOptions options;
  options.kv_type = kv_type;
  options.reference = true;
  Session session(model, options);
  const std::vector<std::int32_t> tokens = random_tokens(length, model.info().vocabulary, 7);
  REQUIRE(hash_logits(feed(session, tokens, 5, true)) == expected);
}

}  // namespace

TEST_CASE("same bits: the demo model, F32 cache") {
  check_invariance(demo_model(), 40, KvType::f32);
}
TEST_CASE("same bits: the demo model, F16 cache") {
  check_invariance(demo_model(), 40, KvType::f16);
}

TEST_CASE("same bits: the demo model over more than one attention piece") {
  check_invariance(demo_model(), 150, KvType::f32);
}

TEST_CASE("same bits: random models in every format") {
  const TempDir folder;
  for (const quant::Format format :
       {quant::Format::f32, quant::Format::bf16, quant::Format::q8_0, quant::Format::q4_0,
        quant::Format::q4_k, quant::Format::q6_k}) {
    INFO(quant::traits(format).name);
    const auto file = folder.path() / (std::string(quant::traits(format).name) + ".gguf");
    write_tiny_model(file, format);
    check_invariance(file, 24, KvType::f32);
  }
}

TEST_CASE("same bits: a model with odd numbers of blocks, heads and rows") {
  const TempDir folder;
  for (const quant::Format format : {quant::Format::q4_0, quant::Format::q4_k}) {
    perf::LlamaShape shape = tiny_shape(format);
    shape.width = 768;
    shape.heads = 12;
    shape.kv_heads = 3;
    shape.feed_forward = format == quant::Format::q4_0 ? 2880 : 1280;
    shape.vocabulary = 331;
    const auto file = folder.path() / (std::string(quant::traits(format).name) + ".gguf");
    write_tiny_model(file, shape, format);
    check_invariance(file, 16, KvType::f16);
    check_invariance(file, 16, KvType::q8_0);
  }
}

TEST_CASE("same bits: the quantized demo models") {
  for (const char* format : {"q8_0", "q4_0", "q4_k", "q6_k"}) {
    LOCKSTEP_SHARED_OR_SKIP(file,
                            std::string("models/storyteller/storyteller-") + format + ".gguf");
    check_invariance(file, 24, KvType::f32);
  }
}

TEST_CASE("a slot starts afresh after truncation, and the cache can be rewound") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {});
  const auto first = random_tokens(30, model.info().vocabulary, 1);
  const auto expected = hash_logits(feed(session, first, 7, true));
  session.truncate(0, 0);
  feed(session, random_tokens(50, model.info().vocabulary, 2), 50, false);
  session.truncate(0, 0);
  REQUIRE(hash_logits(feed(session, first, 30, true)) == expected);
  session.truncate(0, 20);
  REQUIRE(session.length(0) == 20);
  const std::vector<std::int32_t> tail(first.begin() + 20, first.end());
  const auto again = feed(session, tail, 10, true);
  session.truncate(0, 0);
  const auto whole = feed(session, first, 1, true);
  REQUIRE(hash_logits(again) == hash_logits({whole.begin() + 20, whole.end()}));
}
