// Quantizing to Q4X and from it: the data that a tensor learns travel with it, and the file is
// marked as this project's while it holds such a tensor.
#include <cmath>
#include <string>
#include <vector>

#include "runtime/gguf.h"
#include "runtime/models/architecture.h"
#include "runtime/quantize/file_plan.h"
#include "runtime/quantize/file_writer.h"
#include "runtime/side_data.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;
using quant::Format;

namespace {

quantize::Request pure(const char* mix) {
  quantize::Request request;
  request.mix = quantize::find_mix(mix);
  request.pure = true;
  return request;
}

// Two matrices a layer in Q4X: learning is the slow part, most of all in a sanitized build.
quantize::Request some_q4x() {
  quantize::Request request = pure("Q8_0");
  request.overrides.push_back({"attn_q|ffn_down", Format::q4x});
  return request;
}

void quantize_file(const std::filesystem::path& from, const std::filesystem::path& to,
                   const quantize::Request& request, unsigned threads, const char* isa = "") {
  const GgufFile file = GgufFile::open(from);
  const quantize::FilePlan plan = quantize::plan_file(file, request, nullptr);
  quantize::write_file(file, plan, request, {}, make_engine(threads, isa), to, {});
  // The plan told the truth about the size.
  std::uint64_t bytes = 0;
  const GgufFile made = GgufFile::open(to);
  for (const GgufTensor& tensor : made.tensors()) bytes += tensor.bytes;
  CHECK(bytes == plan.bytes);
}

std::vector<float> values_of(const GgufFile& file, const std::string& name) {
  const GgufTensor& tensor = *file.find_tensor(name);
  const std::vector<std::byte> side = read_side_data(file, tensor);
  std::vector<std::byte> bytes(tensor.bytes);
  file.read(tensor, 0, bytes);
  std::vector<float> values(tensor.elements);
  quant::decode_values(*tensor.format, side.data(), bytes.data(), values.data(), values.size());
  return values;
}

double relative_error(const std::vector<float>& truth, const std::vector<float>& values) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    error += std::pow(double{truth[i]} - double{values[i]}, 2);
    size += std::pow(double{truth[i]}, 2);
  }
  return error / size;
}

}  // namespace

TEST_CASE("quantize Q4X: learned data beside each tensor, the same bytes for any team") {
  const TempDir folder;
  const auto from = folder.path() / "from.gguf";
  const auto to = folder.path() / "to.gguf";
  write_tiny_model(from, tiny_shape(Format::q4_k), Format::f16);
  quantize_file(from, to, some_q4x(), 1);
  const std::string expected = TempDir::read(to);
  quantize_file(from, to, some_q4x(), 3);
  CHECK(TempDir::read(to) == expected);

  const GgufFile source = GgufFile::open(from);
  const GgufFile made = GgufFile::open(to);
  CHECK(made.require_string("general.architecture") == "lockstep");
  CHECK(architecture_of(made) == "llama");
  std::size_t learned = 0;
  for (const GgufTensor& tensor : source.tensors()) {
    CAPTURE(tensor.name);
    const GgufTensor* found = made.find_tensor(tensor.name);
    REQUIRE(found != nullptr);
    CHECK(is_side_tensor(made, *found) == false);
    if (found->format->format != Format::q4x) {
      CHECK(find_side_tensor(made, *found) == nullptr);
      continue;
    }
    ++learned;
    const GgufTensor* side = find_side_tensor(made, *found);
    REQUIRE(side != nullptr);
    CHECK(is_side_tensor(made, *side));
    CHECK(relative_error(values_of(source, tensor.name), values_of(made, tensor.name)) < 0.01);
  }
  CHECK(learned == 4);
  CHECK(made.tensors().size() == source.tensors().size() + learned);

  // It runs, and near to the original.
  const Model model = Model::load(make_engine(2), to);
  Session session(model, {});
  CHECK(feed(session, std::vector<std::int32_t>{1, 7, 9, 30}, 512, false).size() == 1);
}

TEST_CASE("quantize Q4X: a file made of one loses the mark with the last such tensor") {
  const TempDir folder;
  const auto from = folder.path() / "from.gguf";
  const auto q4x = folder.path() / "q4x.gguf";
  const auto to = folder.path() / "to.gguf";
  write_tiny_model(from, tiny_shape(Format::q4_k), Format::f16);
  quantize_file(from, q4x, some_q4x(), 2);

  quantize_file(q4x, to, pure("Q8_0"), 2);
  {
    const GgufFile plain = GgufFile::open(to);
    CHECK(plain.require_string("general.architecture") == "llama");
    CHECK(plain.find(kRealArchitectureKey) == nullptr);
    CHECK(plain.tensors().size() == GgufFile::open(from).tensors().size());
    const std::string name = "blk.0.ffn_down.weight";
    const GgufFile learned = GgufFile::open(q4x);
    CHECK(relative_error(values_of(learned, name), values_of(plain, name)) < 1e-4);
  }
  // One tensor that stays Q4X is copied with its data, and keeps the mark.
  quantize::Request request = pure("Q8_0");
  request.overrides.push_back({"attn_q", Format::q4x});
  quantize_file(q4x, to, request, 2);
  const GgufFile mixed = GgufFile::open(to);
  const GgufFile learned = GgufFile::open(q4x);
  CHECK(mixed.require_string("general.architecture") == "lockstep");
  for (const char* name : {"blk.0.attn_q.weight", "blk.1.attn_q.weight"}) {
    CHECK(values_of(mixed, name) == values_of(learned, name));
  }
  CHECK(mixed.find_tensor("blk.0.ffn_down.weight.codebook") == nullptr);
  // The same types again are the same file.
  quantize_file(q4x, to, some_q4x(), 2);
  CHECK(TempDir::read(to) == TempDir::read(q4x));
}

TEST_CASE("quantize Q4X: the file type is ours, rows that do not fit fall back") {
  CHECK(quantize::find_mix("Q4X")->file_type == 1000);
  const TempDir folder;
  const auto from = folder.path() / "from.gguf";
  write_tiny_model(from, tiny_shape(Format::q4_0), Format::f16);  // 64 and 96 columns
  const GgufFile narrow = GgufFile::open(from);
  for (const quantize::PlannedTensor& tensor :
       quantize::plan_file(narrow, pure("Q4X"), nullptr).tensors) {
    if (tensor.is_copy()) continue;
    CHECK(tensor.target->format == Format::iq4_nl);
    CHECK(tensor.fell_back());
  }
}
