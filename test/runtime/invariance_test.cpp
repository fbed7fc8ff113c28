// The reproducibility rule: the logits of a sequence depend on the model file and its tokens alone.
// One hash for any number of threads, chunking, batch mates, slot, schedule, set of fusions and
// instruction set, and after any number of cancelled steps.
#include <chrono>
#include <random>
#include <thread>

#include "quant/isa.h"
#include "runtime/fusions.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/quantize_file.h"
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

// Sanitizers look for other mistakes, and slowly.
#if defined(__SANITIZE_ADDRESS__)
constexpr unsigned kMostThreads = 3;
#else
constexpr unsigned kMostThreads = 8;
#endif

// What every run of this file must give.
struct Subject {
  std::filesystem::path file;
  std::size_t length = 0;
  KvType kv_type = KvType::f32;
  std::uint64_t expected = 0;  // of the first run

  std::vector<std::int32_t> tokens(const Model& model) const {
    return random_tokens(length, model.info().vocabulary, 7);
  }
  void require(std::uint64_t hash) {
    if (expected == 0) expected = hash;
    REQUIRE(hash == expected);
  }
  std::uint64_t hash(const Model& model, SessionOptions options, std::size_t chunk) const {
    options.kv_type = kv_type;
    Session session(model, options);
    return hash_logits(feed(session, tokens(model), chunk, true));
  }
};

// Evaluates the tokens in the slot `place` while `mates` other sequences run in the same batches.
std::uint64_t hash_among_mates(const Subject& subject, const Model& model, std::size_t mates,
                               std::size_t place) {
  SessionOptions options;
  options.slots = mates + 1;
  options.kv_type = subject.kv_type;
  Session session(model, options);
  const std::vector<std::int32_t> tokens = subject.tokens(model);
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

// Every step is cancelled in its first stage, then in one that depends on the weather, then done.
std::uint64_t hash_after_cancelling(const Subject& subject, const Model& model) {
  Session session(model, {.kv_type = subject.kv_type});
  const std::vector<std::int32_t> tokens = subject.tokens(model);
  std::vector<std::vector<float>> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const BatchEntry entry{tokens[i], static_cast<std::int32_t>(i), 0, true};
    session.cancel_flag() = true;
    REQUIRE_THROWS_AS(session.evaluate({&entry, 1}), Error);
    REQUIRE(session.stats().barriers == 1);
    session.cancel_flag() = false;
    bool done = false;
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 37 % 500));
      session.cancel_flag() = true;
    });
    try {
      session.evaluate({&entry, 1});
      done = true;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::interrupted);
    }
    canceller.join();
    session.cancel_flag() = false;
    if (!done) session.evaluate({&entry, 1});
    const std::span<const float> row = session.logits(0);
    rows.emplace_back(row.begin(), row.end());
  }
  return hash_logits(rows);
}

void check_teams(Subject& subject) {
  for (unsigned threads = 1; threads <= kMostThreads; ++threads) {
    INFO("threads " << threads);
    const Engine engine = make_engine(threads);
    const Model model = Model::load(engine, subject.file);
    for (const std::size_t chunk :
         {std::size_t{1}, std::size_t{5}, std::size_t{64}, std::size_t{512}}) {
      INFO("chunk " << chunk);
      subject.require(subject.hash(model, {}, chunk));
    }
    if (threads > 4 && threads < 8) continue;
    for (const Schedule schedule : {Schedule::static_rows, Schedule::dynamic}) {
      INFO("schedule " << static_cast<int>(schedule));
      for (const std::size_t chunk : {std::size_t{5}, std::size_t{512}}) {
        subject.require(subject.hash(model, {.schedule = schedule}, chunk));
      }
    }
    if (threads > 2) continue;
    for (const std::size_t mates : {std::size_t{1}, std::size_t{15}}) {
      for (const std::size_t place : {std::size_t{0}, mates / 2, mates}) {
        INFO("place " << place << " among " << mates);
        subject.require(hash_among_mates(subject, model, mates, place));
      }
    }
    subject.require(hash_after_cancelling(subject, model));
  }
}

void check_plans(Subject& subject) {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, subject.file);
  // Every node in a stage of its own, nothing replicated.
  subject.require(subject.hash(model, {.reference = true}, 5));
  std::vector<std::string> all;
  for (const Fusion& fusion : fusions()) {
    INFO("without " << fusion.name);
    all.emplace_back(fusion.name);
    subject.require(subject.hash(model, {.unfused = {all.back()}}, 5));
  }
  subject.require(subject.hash(model, {.unfused = all}, 1));
}

void check_instruction_sets(Subject& subject) {
  for (const quant::Isa isa : quant::kAllIsas) {
    if (!(quant::built_isas() & quant::detect_isas()).has(isa)) continue;
    INFO("instruction set " << quant::name_of(isa));
    const Engine engine = make_engine(2, std::string(quant::name_of(isa)));
    const Model model = Model::load(engine, subject.file);
    REQUIRE(engine.isa() == quant::name_of(isa));
    subject.require(subject.hash(model, {}, 1));
    subject.require(subject.hash(model, {}, 64));
    // The definition of right: scalar kernels row by row, where this is the scalar set.
    subject.require(subject.hash(model, {.reference = true}, 64));
  }
}

void check_invariance(const std::filesystem::path& file, std::size_t length, KvType kv_type) {
  Subject subject{file, length, kv_type};
  check_teams(subject);
  check_plans(subject);
  check_instruction_sets(subject);
}

std::string name_of(quant::Format format) { return std::string(quant::traits(format).name); }

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
    INFO(name_of(format));
    const auto file = folder.path() / (name_of(format) + ".gguf");
    write_tiny_model(file, format);
    check_invariance(file, 24, KvType::f32);
  }
}

// Odd numbers of blocks: 768 is 3 blocks of 256 or 24 of 32; 2880 is 90 of 32, and 1280 is 5 of
// 256.
TEST_CASE("same bits: wide models with odd numbers of blocks, heads and rows") {
  const TempDir folder;
  for (const quant::Format format : {quant::Format::f16, quant::Format::q8_0, quant::Format::q4_0,
                                     quant::Format::q4_k, quant::Format::q6_k}) {
    INFO(name_of(format));
    perf::LlamaShape shape = tiny_shape(format);
    shape.width = 768;
    shape.heads = 12;
    shape.kv_heads = 3;
    shape.feed_forward = quant::traits(format).block_values > 32 ? 1280 : 2880;
    shape.vocabulary = 331;
    const auto file = folder.path() / (name_of(format) + ".gguf");
    write_tiny_model(file, shape, format);
    check_invariance(file, 16, KvType::f16);
    if (format == quant::Format::q4_0) check_invariance(file, 16, KvType::q8_0);
  }
}

TEST_CASE("same bits: the demo model quantized") {
  const TempDir folder;
  const Engine engine = make_engine(2);
  for (const char* mix : {"q8_0", "q4_0", "q4_k", "q6_k"}) {
    INFO(mix);
    const auto file = folder.path() / (std::string(mix) + ".gguf");
    quantize_file(demo_model(), file, mix, engine);
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
