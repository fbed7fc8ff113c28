// `quantize` and `imatrix` through the real executable: files, refusals, a full disk and signals.
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "runtime/gguf.h"
#include "support/catch.h"
#include "support/model_run.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"
#include "test/cli/process.h"

using namespace lockstep::test;
using lockstep::GgufFile;
using nlohmann::json;

namespace {

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

bool mentions(const Outcome& outcome, const std::string& part) {
  INFO(outcome.err);
  return outcome.err.find(part) != std::string::npos;
}

// The folder of a tiny F16 model.
struct TinyModel {
  TempDir dir;
  std::string model = (dir.path() / "f16.gguf").string();
  std::string out = (dir.path() / "out.gguf").string();

  TinyModel() { write_tiny_model(model, lockstep::quant::Format::f16); }
};

}  // namespace

TEST_CASE("quantize makes a model that runs, the same for any threads") {
  const TinyModel tiny;
  const Outcome made = run({"quantize", tiny.model, tiny.out, "q8_0", "--threads", "1"});
  INFO(made.err);
  REQUIRE(made.code == 0);
  CHECK(made.out.empty());
  CHECK(mentions(made, "Q8_0"));
  CHECK(mentions(made, "16 of 21 tensors encoded"));
  CHECK(files_in(tiny.dir.path()) == 2);
  const std::string bytes = TempDir::read(tiny.out);
  for (const char* threads : {"2", "3", "4"}) {
    CHECK(run({"quantize", "--force", tiny.model, tiny.out, "Q8_0", "-t", threads}).code == 0);
    CHECK(TempDir::read(tiny.out) == bytes);
  }
  CHECK(run({"generate", "-m", tiny.out, "-n", "3", "--ids", "--ignore-end", "a"}).code == 0);
  CHECK(GgufFile::open(tiny.out).u32("general.file_type") == 7u);
}

TEST_CASE("quantize tells its plan without making anything") {
  const TinyModel tiny;
  const Outcome text = run({"quantize", "--dry-run", tiny.model, tiny.out, "Q4_0"});
  CHECK(text.code == 0);
  CHECK(text.out.find("blk.0.attn_q.weight") != std::string::npos);
  CHECK(text.out.find("total") != std::string::npos);
  CHECK(mentions(text, "output.weight: rows of 64 values are no whole blocks of Q6_K (256): Q8_0"));
  const Outcome plan = run({"quantize", "--dry-run", "--json", tiny.model, tiny.out, "Q4_K_M",
                            "--tensor-type", "attn_q=Q8_0", "--tensor-type", "ffn_up=f32"});
  CHECK(plan.code == 0);
  const json all = json::parse(plan.out);
  CHECK(all.at("dry_run") == true);
  CHECK(all.at("file_type") == 15);
  CHECK(all.at("tensors").size() == 21);
  std::size_t checked = 0;
  for (const json& tensor : all.at("tensors")) {
    if (tensor.at("name") == "blk.1.attn_q.weight") checked += tensor.at("to") == "Q8_0";
    if (tensor.at("name") == "blk.1.ffn_up.weight") checked += tensor.at("to") == "F32";
    if (tensor.at("name") == "blk.1.ffn_gate.weight") {
      checked += tensor.at("to") == "Q5_0" && tensor.at("instead_of") == "Q4_K";
    }
  }
  CHECK(checked == 3);
  CHECK(files_in(tiny.dir.path()) == 1);
}

TEST_CASE("quantize refuses with the documented exit code and one line, and makes nothing") {
  const TinyModel tiny;
  const std::string garbage = tiny.dir.write("garbage.gguf", "this is no model").string();
  const std::string folder = tiny.dir.path().string();
  const std::string missing = folder + "/missing";
  const std::string same = folder + "/./f16.gguf";
  const std::string taken = tiny.dir.write("taken", "x").string();
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* phrase;
  };
  const std::vector<Case> cases = {
      {{tiny.model, tiny.out}, 64, "TYPE"},
      {{tiny.model, tiny.out, "Q9"}, 64, "there are: F32, F16"},
      {{tiny.model, tiny.out, "IQ2_XXS"}, 64, "can be read but not written"},
      {{tiny.model, same, "Q8_0"}, 64, "same file"},
      {{tiny.model, same, "Q8_0", "--force"}, 64, "same file"},
      {{tiny.model, tiny.out, "Q4_0", "--tensor-type", "nothing=Q8_0"}, 64, "matches no matrix"},
      {{tiny.model, tiny.out, "Q4_0", "--tensor-type", "attn_q"}, 64, "REGEX=TYPE"},
      {{tiny.model, tiny.out, "Q4_0", "--tensor-type", "(=Q8_0"}, 64, "at character"},
      {{tiny.model, tiny.out, "Q4_0", "--tensor-type", "attn_q=IQ1_S"}, 64, "not written"},
      {{tiny.model, tiny.out, "Q4_0", "--output-type", "Q4_K_M"}, 64, "is no format"},
      {{tiny.model, tiny.out, "Q4_0", "--token-embedding-type", "Q8_K"}, 64, "not written"},
      {{tiny.model, tiny.out, "Q8_0", "--threads", "-1"}, 64, "whole number"},
      {{missing, tiny.out, "Q8_0"}, 66, "missing"},
      {{tiny.model, tiny.out, "Q8_0", "--imatrix", missing}, 66, "missing"},
      {{tiny.model, tiny.out, "Q8_0", "--imatrix", tiny.model}, 65, "no importance matrix"},
      {{tiny.model, tiny.out, "Q8_0", "--imatrix", garbage}, 65, "old binary form"},
      {{garbage, tiny.out, "Q8_0"}, 69, "garbage"},
      {{tiny.model, taken, "Q8_0"}, 73, "exists already"},
      {{tiny.model, folder, "Q8_0", "--force"}, 73, "is no file"},
      {{tiny.model, "/dev/null", "Q8_0", "--force"}, 73, "is no file"},
      {{tiny.model, folder + "/no/out", "Q8_0"}, 73, "does not exist"},
  };
  for (const Case& one : cases) {
    std::vector<std::string> arguments = {"quantize"};
    arguments.insert(arguments.end(), one.arguments.begin(), one.arguments.end());
    const Outcome outcome = run(arguments);
    CAPTURE(one.phrase);
    CHECK(mentions(outcome, one.phrase));
    CHECK(outcome.code == one.code);
    CHECK(outcome.out.empty());
    CHECK(outcome.messages().back().rfind("lockstep: error: ", 0) == 0);
    CHECK(files_in(folder) == 3);
  }
  CHECK(TempDir::read(taken) == "x");
  CHECK(run({"quantize", tiny.model, taken, "Q8_0", "--force"}).code == 0);
  CHECK(GgufFile::open(taken).u32("general.file_type") == 7u);
}

TEST_CASE("a full disk leaves nothing of a quantized model") {
  const TinyModel tiny;
  Invocation small;
  small.file_bytes = 20000;
  small.arguments = {"quantize", tiny.model, tiny.out, "Q8_0"};
  const Outcome outcome = run(small);
  CHECK(outcome.code == 74);
  CHECK(mentions(outcome, "out.gguf"));
  CHECK(files_in(tiny.dir.path()) == 1);
}

TEST_CASE("a signal stops quantize and leaves nothing") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  const TempDir dir;
  const std::filesystem::path model = dir.path() / "f16.gguf";
  lockstep::perf::LlamaShape shape = tiny_shape(lockstep::quant::Format::f16);
  shape.width = 512;
  shape.feed_forward = 2048;
  shape.layers = 6;
  write_tiny_model(model, shape, lockstep::quant::Format::f16);
  const TempDir target;
  Invocation job;
  job.arguments = {"quantize", model.string(), (target.path() / "out.gguf").string(),
                   "Q5_1",     "--pure",       "-t",
                   "1"};
  job.meanwhile = [&](pid_t child) {
    for (int i = 0; i < 10000 && files_in(target.path()) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(child, signal);
  };
  const Outcome outcome = run(job);
  INFO(outcome.err);
  CHECK(outcome.code == 75);
  CHECK(mentions(outcome, "nothing was written"));
  CHECK(files_in(target.path()) == 0);
}

TEST_CASE("imatrix collects from a text, and quantize takes it") {
  const TempDir dir;
  std::string words;
  for (int i = 0; i < 300; ++i) words += "Once upon a time there was an owl. ";
  const std::string text = dir.write("text.txt", words).string();
  const std::string matrix = (dir.path() / "matrix.gguf").string();
  const std::string out = (dir.path() / "out.gguf").string();
  const Outcome made =
      run({"imatrix", demo_model().string(), text, matrix, "--ctx", "64", "--chunks", "3"});
  INFO(made.err);
  REQUIRE(made.code == 0);
  CHECK(mentions(made, "3 chunks of 64 tokens"));
  const std::string bytes = TempDir::read(matrix);
  CHECK(run({"imatrix", demo_model().string(), text, matrix, "--ctx", "64", "--chunks", "3",
             "--force", "-t", "1"})
            .code == 0);
  CHECK(TempDir::read(matrix) == bytes);
  CHECK(GgufFile::open(matrix).strings("imatrix.datasets")->at(0) == text);

  CHECK(run({"quantize", "--imatrix", matrix, demo_model().string(), out, "Q5_1", "--pure"}).code ==
        0);
  CHECK(GgufFile::open(out).string("quantize.imatrix.file") == matrix);
  CHECK(GgufFile::open(out).u32("quantize.imatrix.chunks_count") == 3u);
  const TinyModel other;
  const Outcome wrong = run({"quantize", "--imatrix", matrix, other.model, other.out, "Q8_0"});
  CHECK(wrong.code == 65);
  CHECK(mentions(wrong, "blk.0.attn_q.weight"));

  CHECK(run({"imatrix", demo_model().string(), text, matrix}).code == 73);
  CHECK(run({"imatrix", demo_model().string(), text, out, "--force", "--ctx", "100000"}).code ==
        65);
  CHECK(run({"imatrix", demo_model().string(), text + "x", matrix, "--force"}).code == 66);
  CHECK(run({"imatrix", demo_model().string(), text, out, "--force", "--ctx", "0"}).code == 64);
}
