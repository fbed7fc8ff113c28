// `lockstep perplexity` as a user runs it: figures, comparison with a saved run, errors.
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "support/catch.h"
#include "support/model_run.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"
#include "test/cli/process.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

std::string story_text() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text +=
        "Once upon a time, a sleepy owl named Uma lived near the harbor. The thing Uma liked "
        "best was lantern number " +
        std::to_string(i) + ".\n";
  }
  return text;
}

json json_of(const std::vector<std::string>& arguments) {
  const Outcome outcome = run(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("perplexity: figures on stdout, the same for any threads, and against itself") {
  const TempDir dir;
  const std::string model = demo_model().string();
  const std::string text = dir.write("text", story_text()).string();
  const std::string saved = (dir.path() / "base").string();
  const json first =
      json_of({"perplexity", model, text, "-c", "64", "--json", "--save-logits", saved});
  CHECK(first["chunks"].get<int>() >= 10);
  CHECK(first["scored_tokens"] == first["chunks"].get<int>() * 31);
  CHECK(first["perplexity"]["value"].get<double>() > 1);
  for (const char* threads : {"1", "3"}) {
    const json again = json_of({"perplexity", model, text, "-c", "64", "--json", "-t", threads});
    CHECK(again["logits_hash"] == first["logits_hash"]);
    CHECK(again["perplexity"] == first["perplexity"]);
  }
  const json itself = json_of({"perplexity", model, "--kl-base", saved, "--json"});
  CHECK(itself["base_perplexity"] == first["perplexity"]);
  CHECK(itself["same_top"]["value"] == 1.0);
  CHECK(std::abs(itself["kl"]["value"].get<double>()) < 1e-5);

  const Outcome table = run({"perplexity", model, text, "--kl-base", saved, "--chunks", "3"});
  CHECK(table.code == 0);
  CHECK(table.out.find("KL divergence ") != std::string::npos);
  CHECK(table.out.find("same top token ") != std::string::npos);
  CHECK(table.err.find("3 chunks of 64 tokens") != std::string::npos);
}

TEST_CASE("perplexity: what cannot work is refused in one line") {
  const TempDir dir;
  const std::string model = demo_model().string();
  const std::string text = dir.write("text", story_text()).string();
  const std::string other = dir.write("other", "There was once" + story_text()).string();
  const std::string saved = (dir.path() / "base").string();
  REQUIRE(
      run({"perplexity", model, text, "-c", "32", "--chunks", "4", "--save-logits", saved}).code ==
      0);
  write_tiny_model(dir.path() / "tiny.gguf", lockstep::quant::Format::q8_0);
  const struct {
    std::vector<std::string> arguments;
    int code;
    const char* says;
  } cases[] = {
      {{model}, 64, "TEXT"},
      {{model, (dir.path() / "none").string()}, 66, "none"},
      {{model, dir.write("short", "Once").string()}, 65, "tokens"},
      {{model, text, "--save-logits", saved}, 73, "exists already"},
      {{model, other, "--kl-base", saved}, 65, "another text"},
      {{model, text, "-c", "64", "--kl-base", saved}, 64, "--ctx 32"},
      {{(dir.path() / "tiny.gguf").string(), "--kl-base", saved}, 65, "vocabulary"},
      {{model, "--kl-base", text}, 65, "no file of saved logits"},
      {{model, text, "-c", "3"}, 64, "whole number"},
  };
  for (const auto& wrong : cases) {
    std::vector<std::string> arguments = {"perplexity"};
    arguments.insert(arguments.end(), wrong.arguments.begin(), wrong.arguments.end());
    const Outcome outcome = run(arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.code == wrong.code);
    CHECK(outcome.out.empty());
    REQUIRE(outcome.messages().size() == 1);
    CHECK(outcome.err.find(wrong.says) != std::string::npos);
  }
  CHECK(run({"perplexity", model, text, "-c", "32", "--save-logits", saved, "--force"}).code == 0);
}

TEST_CASE("perplexity: a full disk and a signal leave no file behind") {
  const TempDir dir;
  const std::string text = dir.write("text", story_text()).string();
  const std::filesystem::path saved = dir.path() / "base";
  Invocation full;
  full.arguments = {"perplexity", demo_model().string(), text,          "-c",
                    "64",         "--save-logits",       saved.string()};
  full.file_bytes = 100000;
  const Outcome outcome = run(full);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 74);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);

  std::string long_text;
  for (int i = 0; i < 60; ++i) long_text += story_text();
  Invocation stopped;
  stopped.arguments = {
      "perplexity",    demo_model().string(), dir.write("text", long_text).string(), "-c", "64",
      "--save-logits", saved.string()};
  stopped.meanwhile = [&](pid_t pid) {
    // Once the temporary file is there the handlers are about to be: the run itself is much longer.
    while (std::distance(std::filesystem::directory_iterator(dir.path()), {}) < 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(pid, SIGTERM);
  };
  const Outcome killed = run(stopped);
  CAPTURE(killed.err);
  CHECK(killed.code == 75);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}
