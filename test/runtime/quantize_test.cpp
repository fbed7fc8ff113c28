// Quantizing files: what is in them, that the team does not show, and what is refused.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "quant/encode.h"
#include "quant/half.h"
#include "runtime/engine.h"
#include "runtime/gguf.h"
#include "runtime/gguf_writer.h"
#include "runtime/quantize/file_plan.h"
#include "runtime/quantize/file_writer.h"
#include "runtime/quantize/name_pattern.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/quantize_file.h"
#include "support/random.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;
using quant::Format;
using quantize::ImportanceMatrix;
using quantize::Request;

namespace {

// Plans and writes; returns the bytes of the new file.
std::string quantized(const std::filesystem::path& from, const Request& request,
                      const Engine& engine, const ImportanceMatrix* importance = nullptr) {
  const TempDir folder;
  const std::filesystem::path to = folder.path() / "new.gguf";
  quantize_file(from, to, request, engine, importance);
  return TempDir::read(to);
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

bool mentions(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

std::vector<std::byte> bytes_of(const GgufFile& file, const std::string& tensor) {
  const GgufTensor& found = *file.find_tensor(tensor);
  std::vector<std::byte> bytes(found.bytes);
  file.read(found, 0, bytes);
  return bytes;
}

// Encodes a tensor of an F32 or F16 file in one piece, row by row.
std::vector<std::byte> encoded(const GgufFile& file, const std::string& tensor, Format format) {
  const GgufTensor& found = *file.find_tensor(tensor);
  const std::vector<std::byte> bytes = bytes_of(file, tensor);
  std::vector<float> values(found.elements);
  found.format->decode(bytes.data(), values.data(), values.size());
  const std::size_t row = quant::bytes_of(format, found.dims[0]);
  std::vector<std::byte> blocks(row * found.elements / found.dims[0]);
  for (std::size_t i = 0; i < found.elements / found.dims[0]; ++i) {
    quant::traits(format).encode(values.data() + i * found.dims[0], nullptr,
                                 blocks.data() + i * row, found.dims[0]);
  }
  return blocks;
}

// One matrix "blk.0.attn_q.weight" and a norm.
std::filesystem::path write_matrix(const TempDir& folder, const std::vector<float>& values,
                                   std::uint64_t columns,
                                   const std::function<void(GgufWriter&)>& more = {}) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_u32("llama.block_count", 1);
  if (more) more(writer);
  writer.add_tensor("blk.0.attn_q.weight", Format::f32, {columns, values.size() / columns},
                    std::as_bytes(std::span(values)));
  const std::vector<float> norm(columns, 1.0f);
  writer.add_tensor("blk.0.attn_norm.weight", Format::f32, {columns},
                    std::as_bytes(std::span(norm)));
  const std::filesystem::path path = folder.path() / "matrix.gguf";
  writer.write(path);
  return path;
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("every tensor is what its encoder makes of it, the rest is copied") {
  const TempDir folder;
  const std::filesystem::path from = folder.path() / "f16.gguf";
  write_tiny_model(from, Format::f16);
  const GgufFile source = GgufFile::open(from);
  const Engine engine = make_engine(2);
  for (const char* mix : {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "F32", "BF16", "F16"}) {
    CAPTURE(mix);
    Request request = request_for(mix);
    request.pure = true;
    const std::filesystem::path to = folder.write("new.gguf", quantized(from, request, engine));
    const GgufFile made = GgufFile::open(to);
    REQUIRE(made.tensors().size() == source.tensors().size());
    std::size_t matrices = 0;
    for (std::size_t i = 0; i < made.tensors().size(); ++i) {
      const GgufTensor& before = source.tensors()[i];
      const GgufTensor& after = made.tensors()[i];
      CAPTURE(before.name);
      CHECK(after.name == before.name);
      CHECK(after.dims == before.dims);
      if (before.dims.size() == 1) {
        CHECK(after.format == before.format);
        CHECK(bytes_of(made, after.name) == bytes_of(source, before.name));
      } else {
        ++matrices;
        CHECK(after.format->format == request.mix->format);
        CHECK(bytes_of(made, after.name) == encoded(source, before.name, request.mix->format));
      }
    }
    CHECK(matrices == 16);
    CHECK(Model::load(engine, to).info().layers == 2);
  }
}

TEST_CASE("any team makes the same bytes") {
  const TempDir folder;
  const std::filesystem::path from = folder.path() / "f32.gguf";
  perf::LlamaShape shape = tiny_shape(Format::f32);
  shape.vocabulary = 1000;
  write_tiny_model(from, shape, Format::f32);
  const std::string expected = quantized(from, request_for("Q8_0"), make_engine(1));
  CHECK(expected.size() > 10000);
  for (const unsigned threads : {2u, 3u, 4u}) {
    const Engine engine = make_engine(threads);
    CHECK(quantized(from, request_for("Q8_0"), engine) == expected);
    CHECK(quantized(from, request_for("Q8_0"), engine) == expected);
  }
  CHECK(quantized(from, request_for("Q8_0"), make_engine(2, "scalar")) == expected);
}

TEST_CASE("matrices of many portions, rows longer than one") {
  const TempDir folder;
  Random random(11);
  const Engine engine = make_engine(3);
  for (const std::uint64_t columns : {32u, 96u, 400000u}) {
    CAPTURE(columns);
    const std::vector<float> values = random.values(columns == 400000 ? 1200000 : 32 * 12 * 1001);
    const std::filesystem::path from = write_matrix(folder, values, columns);
    Request request = request_for("Q5_1");
    request.pure = true;
    const GgufFile source = GgufFile::open(from);
    const GgufFile made = GgufFile::open(folder.write("new", quantized(from, request, engine)));
    CHECK(bytes_of(made, "blk.0.attn_q.weight") ==
          encoded(source, "blk.0.attn_q.weight", Format::q5_1));
  }
}

TEST_CASE("metadata stays, with the keys of the new file in it") {
  const TempDir folder;
  const std::filesystem::path from =
      write_matrix(folder, std::vector<float>(64, 0.5f), 32, [](GgufWriter& writer) {
        writer.add_u32("general.file_type", 1);
        writer.add_string("text", "kept");
        writer.add_strings("words", {"a", "", "\xff"});
        writer.add_i32s("numbers", {-1, 2});
        writer.add("wide", {MetadataType::u64, {}, std::uint64_t{1} << 40});
        writer.add("flag", {MetadataType::boolean, {}, true});
        writer.add_u32("split.count", 1);
        writer.add_string("quantize.imatrix.file", "an older one");
      });
  const Engine engine = make_engine(1);
  const GgufFile made =
      GgufFile::open(folder.write("new", quantized(from, request_for("Q4_0"), engine)));
  CHECK(made.u32("general.file_type") == 2u);
  CHECK(made.metadata()[2].key == "general.file_type");  // in its old place
  CHECK(made.u32("general.quantization_version") == 2u);
  CHECK(made.string("text") == "kept");
  CHECK(made.strings("words")->at(2) == "\xff");
  CHECK(made.integers("numbers") == std::vector<std::int32_t>{-1, 2});
  CHECK(std::get<std::uint64_t>(made.find("wide")->value) == std::uint64_t{1} << 40);
  CHECK(made.boolean("flag") == true);
  CHECK(made.find("split.count") == nullptr);
  CHECK(made.string("quantize.imatrix.file") == "an older one");

  ImportanceMatrix matrix;
  matrix.entries["blk.0.attn_q.weight"] = {std::vector<float>(32, 4.0f), {2.0f}};
  matrix.datasets = {"a.txt", "b.txt"};
  matrix.chunk_count = 7;
  const GgufFile with =
      GgufFile::open(folder.write("new", quantized(from, request_for("Q4_0"), engine, &matrix)));
  CHECK(with.string("quantize.imatrix.file") == "matrix.gguf");
  CHECK(with.string("quantize.imatrix.dataset") == "a.txt");
  CHECK(with.u32("quantize.imatrix.entries_count") == 1u);
  CHECK(with.u32("quantize.imatrix.chunks_count") == 7u);
}

TEST_CASE("options of the user win over the recipe") {
  const TempDir folder;
  const std::filesystem::path from = folder.path() / "f16.gguf";
  write_tiny_model(from, Format::f16);
  const GgufFile file = GgufFile::open(from);
  const auto format_of = [&](const Request& request, const std::string& name) {
    for (const auto& tensor : quantize::plan_file(file, request, nullptr).tensors) {
      if (tensor.source->name == name) return tensor.target->format;
    }
    FAIL("no tensor " << name);
    return Format::f64;
  };
  Request request = request_for("Q4_0");
  CHECK(format_of(request, "blk.1.attn_k.weight") == Format::q4_0);
  CHECK(format_of(request, "output.weight") == Format::q8_0);  // Q6_K does not fit rows of 64
  request.overrides = {{"attn_[kv]", Format::q8_0}, {"blk\\.1\\.", Format::f16}};
  CHECK(format_of(request, "blk.1.attn_k.weight") == Format::q8_0);
  CHECK(format_of(request, "blk.1.attn_q.weight") == Format::f16);
  CHECK(format_of(request, "blk.0.attn_q.weight") == Format::q4_0);
  CHECK(format_of(request, "blk.1.attn_norm.weight") == Format::f32);
  request.output = Format::bf16;
  request.token_embedding = Format::q5_1;
  CHECK(format_of(request, "output.weight") == Format::bf16);
  CHECK(format_of(request, "token_embd.weight") == Format::q5_1);
  request.overrides = {{"output|embd", Format::q4_1}};
  CHECK(format_of(request, "output.weight") == Format::bf16);
  request.output.reset();
  CHECK(format_of(request, "output.weight") == Format::q4_1);
  request.pure = true;
  request.overrides.clear();
  request.token_embedding.reset();
  CHECK(format_of(request, "output.weight") == Format::q4_0);
  CHECK(format_of(request, "token_embd.weight") == Format::q4_0);

  request.overrides = {{"attn_x", Format::q8_0}};
  CHECK(mentions(refusal(ErrorCode::usage, [&] { plan_file(file, request, nullptr); }),
                 "\"attn_x\" matches no matrix"));
  request.overrides = {{"attn_norm", Format::q8_0}};  // a vector
  CHECK(mentions(refusal(ErrorCode::usage, [&] { plan_file(file, request, nullptr); }),
                 "matches no matrix"));
  request.overrides = {{"attn_[kv", Format::q8_0}};
  CHECK(mentions(refusal(ErrorCode::usage, [&] { plan_file(file, request, nullptr); }),
                 "at character"));
}

TEST_CASE("a pattern cannot run away") {
  const quantize::NamePattern pattern("(a+)+$");
  CHECK(pattern.found_in("aaa"));
  CHECK_FALSE(pattern.found_in(""));
  CHECK(refusal(ErrorCode::usage, [&] {
          pattern.found_in(std::string(60000, 'a') + "b");
        }).find("limit") != std::string::npos);
}

TEST_CASE("tied embeddings are treated as the output") {
  const TempDir folder;
  const std::filesystem::path from = folder.path() / "f16.gguf";
  perf::LlamaShape shape = tiny_shape(Format::q6_k);  // rows of 256
  shape.tied = true;
  write_tiny_model(from, shape, Format::f16);
  const GgufFile file = GgufFile::open(from);
  Request request = request_for("Q4_0");
  CHECK(quantize::plan_file(file, request, nullptr).tensors[0].target->format == Format::q6_k);
  request.output = Format::q5_0;
  CHECK(quantize::plan_file(file, request, nullptr).tensors[0].target->format == Format::q5_0);
}

TEST_CASE("rows that do not fit are listed with what took their place") {
  const TempDir folder;
  Random random(3);
  const GgufFile file = GgufFile::open(write_matrix(folder, random.values(960), 96));
  const quantize::FilePlan plan = quantize::plan_file(file, request_for("Q4_K_M"), nullptr);
  CHECK(plan.tensors[0].fell_back());
  CHECK(plan.tensors[0].wanted->format == Format::q4_k);
  CHECK(plan.tensors[0].target->format == Format::q5_0);
  CHECK_FALSE(plan.tensors[1].fell_back());
  CHECK(plan.bytes == 10 * 3 * 22 + 96 * 4);
  CHECK(plan.elements == 960 + 96);
}

TEST_CASE("weights that are no numbers or too large are refused, naming tensor and row") {
  const TempDir folder;
  const Engine engine = make_engine(4);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Random random(5);
  const std::size_t rows = 40000;  // several portions
  for (const float bad : {kNan, kInfinity, -kInfinity, 3e38f}) {
    CAPTURE(bad);
    std::vector<float> values = random.values(rows * 32);
    values[33333 * 32 + 7] = bad;
    values[39999 * 32] = kNan;  // the first one is told, whoever finds it first
    const std::filesystem::path from = write_matrix(folder, values, 32);
    for (const char* mix : {"Q8_0", "F16", "Q4_1"}) {
      CAPTURE(mix);
      const std::string what =
          refusal(ErrorCode::bad_model, [&] { quantized(from, request_for(mix), engine); });
      CHECK(mentions(what, "blk.0.attn_q.weight"));
      CHECK(mentions(what, "row 33333 "));
    }
  }
  // Copied tensors are looked at too.
  std::vector<float> values = random.values(320);
  values[100] = kNan;
  const std::filesystem::path from = write_matrix(folder, values, 32);
  CHECK(
      mentions(refusal(ErrorCode::bad_model, [&] { quantized(from, request_for("F32"), engine); }),
               "row 3 "));
}

TEST_CASE("denormals, zeros and huge rows that fit are encoded") {
  const TempDir folder;
  std::vector<float> values(32 * 4, 0.0f);
  for (std::size_t i = 0; i < 32; ++i) {
    values[i] = std::numeric_limits<float>::denorm_min() * static_cast<float>(i);
    values[32 + i] = -0.0f;
    values[64 + i] = 60000.0f * static_cast<float>(i) / 31.0f;
  }
  const std::filesystem::path from = write_matrix(folder, values, 32);
  const Engine engine = make_engine(2);
  for (const char* mix : {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "F16", "BF16"}) {
    CAPTURE(mix);
    const GgufFile made =
        GgufFile::open(folder.write("new", quantized(from, request_for(mix), engine)));
    const GgufTensor& tensor = *made.find_tensor("blk.0.attn_q.weight");
    const std::vector<std::byte> blocks = bytes_of(made, tensor.name);
    std::vector<float> decoded(values.size());
    tensor.format->decode(blocks.data(), decoded.data(), decoded.size());
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      CHECK(std::fabs(decoded[i] - values[i]) <= 60000.0f / 14);
    }
  }
}

TEST_CASE("anything that can be decoded is a source, and counted if precision is lost twice") {
  const TempDir folder;
  const std::filesystem::path from = folder.path() / "from.gguf";
  const Engine engine = make_engine(2);
  for (const Format format : {Format::q8_0, Format::q4_k, Format::q6_k, Format::bf16}) {
    CAPTURE(quant::traits(format).name);
    write_tiny_model(from, format);
    const GgufFile file = GgufFile::open(from);
    Request request = request_for("Q5_0");
    request.pure = true;
    const quantize::FilePlan plan = quantize::plan_file(file, request, nullptr);
    CHECK(plan.requantized == (format == Format::bf16 ? 0 : 16));
    const GgufFile made = GgufFile::open(folder.write("new", quantized(from, request, engine)));
    CHECK(bytes_of(made, "blk.1.ffn_up.weight") ==
          encoded(file, "blk.1.ffn_up.weight", Format::q5_0));
  }
  // The same format again is a copy.
  write_tiny_model(from, Format::q8_0);
  const GgufFile file = GgufFile::open(from);
  const quantize::FilePlan plan = quantize::plan_file(file, request_for("Q8_0"), nullptr);
  CHECK(plan.requantized == 0);
  const GgufFile made =
      GgufFile::open(folder.write("new", quantized(from, request_for("Q8_0"), engine)));
  for (const GgufTensor& tensor : file.tensors()) {
    CHECK(bytes_of(made, tensor.name) == bytes_of(file, tensor.name));
  }
}

TEST_CASE("formats without an encoder or a decoder are refused before anything is made") {
  const TempDir folder;
  const std::filesystem::path to = folder.path() / "new.gguf";
  const Engine engine = make_engine(1);
  const std::vector<std::byte> blocks(2 * 66);
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_tensor("blk.0.attn_q.weight", Format::i8, {66, 2}, blocks);
  writer.write(folder.path() / "from.gguf");
  const GgufFile file = GgufFile::open(folder.path() / "from.gguf");
  CHECK(mentions(refusal(ErrorCode::bad_model,
                         [&] { quantize::plan_file(file, request_for("F16"), nullptr); }),
                 "cannot decode"));
  // A plan that asks for what nobody can write.
  Random random(2);
  const GgufFile good = GgufFile::open(write_matrix(folder, random.values(512), 256));
  Request request = request_for("Q8_0");
  request.overrides = {{"attn_q", Format::i32}};
  const quantize::FilePlan plan = quantize::plan_file(good, request, nullptr);
  CHECK(mentions(refusal(ErrorCode::usage,
                         [&] { quantize::write_file(good, plan, request, {}, engine, to, {}); }),
                 "I32, which this version can read but not write"));
  CHECK_FALSE(std::filesystem::exists(to));
}

TEST_CASE("a stop in the middle leaves nothing") {
  const TempDir folder;
  Random random(8);
  const std::filesystem::path from = write_matrix(folder, random.values(32 * 50000), 32);
  const GgufFile file = GgufFile::open(from);
  const Request request = request_for("Q8_0");
  const quantize::FilePlan plan = quantize::plan_file(file, request, nullptr);
  std::atomic<bool> stop{false};
  std::size_t calls = 0;
  quantize::WriteHooks hooks;
  hooks.stop = &stop;
  hooks.progress = [&](const quantize::WriteProgress& progress) {
    CHECK(progress.total == plan.source_bytes);
    CHECK(progress.done <= progress.total);
    ++calls;
    stop = true;
  };
  const TempDir target;
  const std::filesystem::path to = target.path() / "new.gguf";
  refusal(ErrorCode::interrupted,
          [&] { quantize::write_file(file, plan, request, {}, make_engine(1), to, hooks); });
  CHECK(calls == 1);
  CHECK(files_in(target.path()) == 0);
}

TEST_CASE("the importance of columns reaches the encoder, expert by expert") {
  const TempDir folder;
  Random random(21);
  constexpr std::size_t kColumns = 512, kRows = 3, kExperts = 2;
  const std::vector<float> values = random.values(kExperts * kRows * kColumns);
  const std::string name = "blk.0.ffn_up_exps.weight";
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_tensor(name, Format::f32, {kColumns, kRows, kExperts},
                    std::as_bytes(std::span(values)));
  writer.write(folder.path() / "from.gguf");
  ImportanceMatrix matrix;
  quantize::ImportanceEntry entry{random.values(kExperts * kColumns), {3.0f, 0.0f}};
  for (float& sum : entry.sums) sum = std::fabs(sum);
  matrix.entries[name] = entry;
  const std::vector<float> weights = entry.weights();
  CHECK(weights[5] == entry.sums[5] / 3.0f);
  CHECK(weights[kColumns + 8] == 1.0f);  // this expert saw nothing

  for (const quantize::Mix& mix : quantize::all_mixes()) {
    const quant::FormatTraits& target = quant::traits(mix.format);
    if (target.encode == nullptr) continue;
    CAPTURE(target.name);
    Request request;
    request.mix = &mix;
    request.pure = true;
    const GgufFile made = GgufFile::open(folder.write(
        "new", quantized(folder.path() / "from.gguf", request, make_engine(2), &matrix)));
    REQUIRE(made.tensors()[0].format == &target);
    const std::size_t row_bytes = quant::bytes_of(mix.format, kColumns);
    std::vector<std::byte> expected(kExperts * kRows * row_bytes);
    for (std::size_t row = 0; row < kExperts * kRows; ++row) {
      target.encode(values.data() + row * kColumns, weights.data() + row / kRows * kColumns,
                    expected.data() + row * row_bytes, kColumns);
    }
    CHECK(bytes_of(made, name) == expected);
  }

  const GgufFile file = GgufFile::open(folder.path() / "from.gguf");
  const Request request = request_for("Q4_0");
  matrix.entries[name] = {std::vector<float>(1024, 1.0f), {1.0f}};
  CHECK(mentions(refusal(ErrorCode::bad_input, [&] { plan_file(file, request, &matrix); }),
                 "has 1 x 1024 columns, the model's 2 x 512"));
  matrix.entries.clear();
  CHECK(mentions(refusal(ErrorCode::bad_input, [&] { plan_file(file, request, &matrix); }),
                 "\"blk.0.ffn_up_exps.weight\" is missing"));
  // Dense formats need none.
  CHECK_NOTHROW(plan_file(file, request_for("F16"), &matrix));
}

TEST_CASE("Q2_K_S asks for an importance matrix") {
  const TempDir folder;
  Random random(4);
  const GgufFile file = GgufFile::open(write_matrix(folder, random.values(512), 256));
  const Request request = request_for("Q2_K_S");
  CHECK(mentions(missing_importance(plan_file(file, request, nullptr), request),
                 "needs an importance matrix"));
  ImportanceMatrix matrix;
  matrix.entries["blk.0.attn_q.weight"] = {std::vector<float>(256, 1.0f), {1.0f}};
  CHECK(missing_importance(plan_file(file, request, &matrix), request).empty());
  const Request other = request_for("Q2_K");
  CHECK(missing_importance(plan_file(file, other, nullptr), other).empty());
}
