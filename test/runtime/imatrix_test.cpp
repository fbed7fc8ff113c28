// Importance matrices: what is collected, that it disturbs nothing, and the file.
#include <cmath>
#include <cstring>

#include "lockstep/lockstep.h"
#include "runtime/gguf.h"
#include "runtime/gguf_writer.h"
#include "runtime/quantize/collect.h"
#include "runtime/quantize/importance.h"
#include "runtime/tokenizer/tokenizer.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;
using quant::Format;
using quantize::collect_importance;
using quantize::CollectOptions;
using quantize::ImportanceMatrix;

namespace {

std::string text_of_words(std::size_t words) {
  std::string text;
  for (std::size_t i = 0; i < words; ++i) {
    text += "word" + std::to_string(i * i % 97) + (i % 9 == 8 ? ".\n" : " ");
  }
  return text;
}

std::string bytes_of(const ImportanceMatrix& matrix) {
  const TempDir folder;
  matrix.save(folder.path() / "m.gguf");
  return TempDir::read(folder.path() / "m.gguf");
}

template <class Call>
std::string refusal(ErrorCode code, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("accepted");
  return {};
}

}  // namespace

TEST_CASE("a session that sums up squares gives the same logits") {
  const std::vector<std::int32_t> tokens = {1, 40, 70, 71, 99, 5, 8, 200};
  const TempDir folder;
  for (const Format format : {Format::f16, Format::q4_0, Format::q8_0}) {
    write_tiny_model(folder.path() / "m.gguf", format);
    const Model model = Model::load(make_engine(2), folder.path() / "m.gguf");
    Session plain(model, {.context = 32});
    Session observed(model, {.context = 32, .activation_squares = true});
    for (const std::size_t chunk : {8u, 3u, 1u}) {
      plain.truncate(0, 0);
      observed.truncate(0, 0);
      CHECK(hash_logits(feed(observed, tokens, chunk, true)) ==
            hash_logits(feed(plain, tokens, chunk, true)));
    }
    CHECK(plain.activation_squares().empty());
    // Seven matrices a layer, and the output.
    CHECK(observed.activation_squares().size() == 2 * 7 + 1);
    for (const ActivationSquares& squares : observed.activation_squares()) {
      CHECK(squares.tokens == 3 * tokens.size());
    }
  }
}

TEST_CASE("the sums are those of the activations") {
  // The first layer's q, k and v see the normed embedding, which can be computed by hand.
  const TempDir folder;
  const std::filesystem::path path = folder.path() / "m.gguf";
  write_tiny_model(path, Format::f32);
  const Model model = Model::load(make_engine(3), path);
  const std::vector<std::int32_t> tokens = {1, 40, 70, 71, 99};
  Session session(model, {.context = 32, .activation_squares = true});
  feed(session, tokens, 5, false);

  const GgufFile file = GgufFile::open(path);
  const auto values = [&](const char* name) {
    const GgufTensor& tensor = *file.find_tensor(name);
    std::vector<float> all(tensor.elements);
    file.read(tensor, 0, std::as_writable_bytes(std::span(all)));
    return all;
  };
  const std::vector<float> embedding = values("token_embd.weight");
  const std::vector<float> norm = values("blk.0.attn_norm.weight");
  const std::size_t width = norm.size();
  std::vector<double> expected(width);
  for (const std::int32_t token : tokens) {
    const float* x = embedding.data() + static_cast<std::size_t>(token) * width;
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += static_cast<double>(x[i]) * x[i];
    const double rms = std::sqrt(squares / static_cast<double>(width) + 1e-5);
    for (std::size_t i = 0; i < width; ++i) {
      const double normed = x[i] / rms * norm[i];
      expected[i] += normed * normed;
    }
  }
  std::size_t compared = 0;
  for (const ActivationSquares& squares : session.activation_squares()) {
    if (squares.matrix != "blk.0.attn_q.weight" && squares.matrix != "blk.0.attn_v.weight")
      continue;
    REQUIRE(squares.sums.size() == width);
    CHECK(squares.tokens == 5);
    for (std::size_t i = 0; i < width; ++i) {
      CHECK(squares.sums[i] == Approx(expected[i]).epsilon(1e-5));
      ++compared;
    }
  }
  CHECK(compared == 2 * width);
}

TEST_CASE("any team, reference kernels and any run collect the same bits") {
  const std::string text = text_of_words(20);
  CollectOptions options;
  options.context = 24;
  const auto collect = [&](unsigned threads, const char* isa) {
    const Model model = Model::load(make_engine(threads, isa), demo_model());
    return bytes_of(collect_importance(model, text, "text", options, {}));
  };
  const std::string expected = collect(1, "");
  CHECK(expected.size() > 1000);
  for (const unsigned threads : {2u, 4u}) CHECK(collect(threads, "") == expected);
  CHECK(collect(2, "scalar") == expected);
}

TEST_CASE("chunks: the text is cut, the rest dropped, the count is kept") {
  const Model model = Model::load(make_engine(2), demo_model());
  const std::string text = text_of_words(100);
  const std::size_t tokens = model.tokenizer().encode(text, {true, false}).size();
  CollectOptions options;
  options.context = 32;
  std::size_t told = 0;
  quantize::CollectHooks hooks;
  hooks.progress = [&](std::size_t done, std::size_t total) {
    CHECK(done == ++told);
    CHECK(total == tokens / 32);
  };
  const ImportanceMatrix all = collect_importance(model, text, "name of text", options, hooks);
  CHECK(told == tokens / 32);
  CHECK(all.chunk_count == tokens / 32);
  CHECK(all.chunk_size == 32);
  CHECK(all.datasets == std::vector<std::string>{"name of text"});
  CHECK(all.entries.size() == 7 * model.info().layers);
  for (const auto& [name, entry] : all.entries) {
    CAPTURE(name);
    CHECK(name.rfind("blk.", 0) == 0);
    CHECK(entry.counts == std::vector<float>{static_cast<float>(tokens / 32 * 32)});
    CHECK(entry.columns() == (name.find("ffn_down") == std::string::npos
                                  ? model.info().width
                                  : model.info().feed_forward));
  }
  options.chunks = 1;
  options.output = true;
  const ImportanceMatrix one = collect_importance(model, text, "t", options, {});
  CHECK(one.chunk_count == 1);
  CHECK(one.entries.size() == 7 * model.info().layers + 1);

  options.context = tokens + 1;
  CHECK(refusal(ErrorCode::bad_input, [&] {
          collect_importance(model, text, "t", options, {});
        }).find("one chunk needs") != std::string::npos);
  options.context = 0;
  refusal(ErrorCode::usage, [&] { collect_importance(model, text, "t", options, {}); });
  std::atomic<bool> stop{true};
  options.context = 32;
  hooks.stop = &stop;
  refusal(ErrorCode::interrupted, [&] { collect_importance(model, text, "t", options, hooks); });
}

TEST_CASE("an importance matrix survives its file") {
  ImportanceMatrix matrix;
  matrix.datasets = {"a", "b"};
  matrix.chunk_count = 3;
  matrix.chunk_size = 512;
  matrix.entries["blk.0.attn_q.weight"] = {{1, 2, 3}, {2}};
  matrix.entries["blk.0.ffn_up_exps.weight"] = {{1, 2, 3, 4, 5, 6}, {4, 0}};
  const TempDir folder;
  matrix.save(folder.path() / "m.gguf");
  const GgufFile file = GgufFile::open(folder.path() / "m.gguf");
  CHECK(file.string("general.type") == "imatrix");
  CHECK(file.strings("imatrix.datasets")->size() == 2);
  CHECK(file.u32("imatrix.chunk_count") == 3u);
  CHECK(file.u32("imatrix.chunk_size") == 512u);
  CHECK(file.find_tensor("blk.0.attn_q.weight.in_sum2")->dims == std::vector<std::uint64_t>{3, 1});
  CHECK(file.find_tensor("blk.0.attn_q.weight.counts")->dims == std::vector<std::uint64_t>{1, 1});
  CHECK(file.find_tensor("blk.0.ffn_up_exps.weight.counts")->dims ==
        std::vector<std::uint64_t>{1, 2});
  const ImportanceMatrix read = ImportanceMatrix::load(folder.path() / "m.gguf");
  CHECK(read.datasets == matrix.datasets);
  CHECK(read.chunk_count == 3);
  CHECK(read.chunk_size == 512);
  REQUIRE(read.entries.size() == 2);
  CHECK(read.entries.at("blk.0.attn_q.weight").sums == std::vector<float>{1, 2, 3});
  CHECK(read.entries.at("blk.0.attn_q.weight").weights() == std::vector<float>{0.5f, 1.0f, 1.5f});
  CHECK(read.entries.at("blk.0.ffn_up_exps.weight").weights() ==
        std::vector<float>{0.25f, 0.5f, 0.75f, 1, 1, 1});
}

TEST_CASE("files that are no importance matrix are refused") {
  const TempDir folder;
  const auto refused = [&](const GgufWriter& writer) {
    writer.write(folder.path() / "m.gguf");
    return refusal(ErrorCode::bad_input, [&] { ImportanceMatrix::load(folder.path() / "m.gguf"); });
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const auto matrix = [](const std::vector<float>& sums, const std::vector<float>& counts) {
    GgufWriter writer;
    writer.add_string("general.type", "imatrix");
    writer.add_tensor("w.in_sum2", Format::f32, {sums.size()}, std::as_bytes(std::span(sums)));
    if (!counts.empty()) {
      writer.add_tensor("w.counts", Format::f32, {counts.size()}, std::as_bytes(std::span(counts)));
    }
    return writer;
  };
  GgufWriter model;
  model.add_string("general.architecture", "llama");
  has(refused(model), "general.type is \"\"");
  GgufWriter empty;
  empty.add_string("general.type", "imatrix");
  has(refused(empty), "is empty");
  has(refused(matrix({1, 2}, {})), "has no \"w.counts\"");
  has(refused(matrix({1, 2}, {1, 1, 1})), "has 2 sums for 3 counts");
  has(refused(matrix({1, -2}, {1})), "value 1 is no finite number");
  has(refused(matrix({1, INFINITY}, {1})), "value 1 is no finite number");
  has(refused(matrix({1, NAN}, {1})), "value 1 is no finite number");
  has(refused(matrix({1, 2}, {NAN})), "w.counts");
  CHECK_NOTHROW(matrix({1, 2}, {1}).write(folder.path() / "good.gguf"));
  CHECK(ImportanceMatrix::load(folder.path() / "good.gguf").entries.at("w").columns() == 2);

  const std::string old(std::string("\x02\0\0\0\x05\0\0\0hello", 13));
  has(refusal(ErrorCode::bad_input, [&] { ImportanceMatrix::load(folder.write("old.dat", old)); }),
      "old binary form");
  refusal(ErrorCode::no_input, [&] { ImportanceMatrix::load(folder.path() / "missing"); });
  refusal(ErrorCode::bad_model, [&] { ImportanceMatrix::load(folder.write("short", "GG")); });
}
