// `generate`, `tokenize`, `inspect`, help, version and exit codes, through the real executable.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/cli/process.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

Outcome run_with(const std::vector<std::string>& arguments, const std::string& input) {
  Invocation invocation;
  invocation.arguments = arguments;
  invocation.input = input;
  return run(invocation);
}

std::string output_of(const std::vector<std::string>& arguments) {
  const Outcome outcome = run(arguments);
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  return outcome.out;
}

std::size_t count_ids(const std::string& text) {
  std::istringstream stream(text);
  std::size_t count = 0;
  for (std::string id; std::getline(stream, id, ','); ++count)
    std::stoi(id);  // throws if it is none
  return count;
}

}  // namespace

TEST_CASE("generate streams a story that answers the request") {
  const std::string story =
      output_of({"generate", "--chat", "Tell me a story about an owl who lost a lantern."});
  CHECK(story.find("owl") != std::string::npos);
  CHECK(story.find("lantern") != std::string::npos);
  CHECK(story.back() == '\n');
}

TEST_CASE("generate prints ids, the same for any threads and from standard input") {
  const std::vector<std::string> command = {"generate", "--ids", "--max-tokens", "12",
                                            "Once upon a time"};
  const std::string ids = output_of(command);
  CHECK(count_ids(ids) == 12);
  for (const char* threads : {"1", "2", "3", "4"}) {
    std::vector<std::string> with = command;
    with.insert(with.end(), {"--threads", threads});
    CHECK(output_of(with) == ids);
  }
  CHECK(run_with({"generate", "--ids", "--max-tokens", "12"}, "Once upon a time\n").out == ids);
  CHECK(output_of({"generate", "--ids", "-n", "12", "--reference", "Once upon a time"}) == ids);
}

TEST_CASE("equal logits hashes for any threads and instruction set") {
  const auto hash = [](const std::vector<std::string>& options) {
    std::vector<std::string> command = {"generate", "--logits-hash", "--max-tokens", "10", "Once"};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome outcome = run(command);
    CHECK(outcome.code == 0);
    const std::size_t at = outcome.err.find("logits hash ");
    REQUIRE(at != std::string::npos);
    return outcome.err.substr(at, 28);
  };
  const std::string expected = hash({"--threads", "1"});
  CHECK(hash({"--threads", "4"}) == expected);
  CHECK(hash({"--isa", "scalar"}) == expected);
  CHECK(hash({"--seed", "3", "--temperature", "5"}) != expected);
}

TEST_CASE("generate samples by seed") {
  const auto draw = [](const std::string& seed) {
    return output_of(
        {"generate", "--ids", "-n", "20", "--temperature", "2", "--seed", seed, "Once"});
  };
  CHECK(draw("1") == draw("1"));
  CHECK(draw("1") != draw("2"));
}

TEST_CASE("generate notices that its output cannot be written") {
  Invocation full;
  full.arguments = {"generate", "-n", "4", "Once"};
  full.output_to = "/dev/full";
  const Outcome outcome = run(full);
  CHECK(outcome.code == 74);
  CHECK(outcome.err.find("standard output") != std::string::npos);
}

TEST_CASE("generate refuses a prompt longer than the context") {
  const Outcome outcome = run({"generate", "--ctx", "4", "Once upon a time there was"});
  CHECK(outcome.code == 65);
  CHECK(outcome.err.find("holds 4") != std::string::npos);
}

TEST_CASE("tokenize prints ids, pieces and JSON") {
  CHECK(output_of({"tokenize", "Once upon a time"}) == "1,556,557,262,406\n");
  CHECK(output_of({"tokenize", "--no-bos", "Once upon a time"}) == "556,557,262,406\n");
  CHECK(run_with({"tokenize"}, "Once upon a time\n").out == "1,556,557,262,406\n");
  CHECK(output_of({"tokenize", ""}) == "1\n");
  CHECK(count_ids(output_of({"tokenize", "<|user|>"})) == 2);
  CHECK(count_ids(output_of({"tokenize", "--no-special", "<|user|>"})) > 2);
  const json all = json::parse(output_of({"tokenize", "--json", "Once upon a time"}));
  CHECK(all.at("ids") == json({1, 556, 557, 262, 406}));
  CHECK(all.at("count") == 5);
  CHECK(all.at("pieces").size() == 5);
  const std::string table = output_of({"tokenize", "--pieces", "Once upon a time"});
  CHECK(table.find("556  \"Once\"") != std::string::npos);
  CHECK(count_ids(output_of({"tokenize", "--chat", "Hi"})) > 4);
}

TEST_CASE("tokenize takes any bytes") {
  const Outcome outcome = run_with({"tokenize", "--json"}, std::string("\xff\xc3\0\x80 x", 6));
  CHECK(outcome.code == 0);
  CHECK(json::parse(outcome.out).at("count").get<std::size_t>() >= 6);
}

TEST_CASE("inspect shows the embedded model") {
  const std::string text = output_of({"inspect"});
  CHECK(text.find("llama") != std::string::npos);
  CHECK(text.find("token_embd.weight") != std::string::npos);
  const json all = json::parse(output_of({"inspect", "--json"}));
  CHECK(all.is_object());
  CHECK(all.dump().find("token_embd.weight") != std::string::npos);
}

TEST_CASE("inspect shows the machine, its budget and its kernels") {
  const json machine = json::parse(output_of({"inspect", "--machine", "--json", "--threads", "1"}));
  CHECK(machine.at("threads").at("granted") == 1);
  CHECK(machine.at("placement").at("workers").size() == 1);
  CHECK(machine.at("kernels").contains("Q4_0"));
  CHECK(machine.at("topology").at("usable_cores").size() >= 1);
  CHECK(machine.at("instruction_sets").at("built").at(0) == "scalar");
  const std::string text = output_of({"inspect", "--machine"});
  CHECK(text.find("affinity mask") != std::string::npos);

  Invocation forced;
  forced.arguments = {"inspect", "--machine", "--json"};
  forced.environment = {{"LOCKSTEP_ISA", "scalar"}};
  forced.one_processor = true;
  const json narrow = json::parse(run(forced).out);
  CHECK(narrow.at("instruction_sets").at("chosen") == "scalar");
  CHECK(narrow.at("kernels").at("Q4_0").get<std::string>().find("scalar") != std::string::npos);
  CHECK(narrow.at("threads").at("budget") == 1);
  CHECK(narrow.at("threads").at("reason").get<std::string>().find("1 thread") == 0);
}

TEST_CASE("help and version") {
  CHECK(output_of({"--help"}).find("Exit codes:") != std::string::npos);
  for (const char* command : {"batch", "generate", "tokenize", "inspect", "quantize", "imatrix"}) {
    CHECK(output_of({command, "--help"}).find("Examples:") != std::string::npos);
  }
  const std::string version = output_of({"--version"});
  for (const char* part : {"lockstep ", "compiler: ", "OpenMP runtime: ", "scalar"}) {
    CHECK(version.find(part) != std::string::npos);
  }
}

TEST_CASE("wrong use and missing files: the documented exit code and one line") {
  const TempDir dir;
  const std::string lines = dir.write("in", "{\"prompt\":\"a\"}\n").string();
  const std::string garbage = dir.write("garbage.gguf", "this is no model").string();
  const std::string out = (dir.path() / "out").string();
  const std::string missing = (dir.path() / "missing").string();
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{}, 64},
      {{"fly"}, 64},
      {{"batch"}, 64},
      {{"batch", "-i", lines}, 64},
      {{"batch", "-i", lines, "-o", out, "--no-such-option"}, 64},
      {{"batch", "-i", lines, "-o", out, "--temperature", "-1"}, 64},
      {{"batch", "-i", lines, "-o", out, "--temperature", "nan"}, 64},
      {{"batch", "-i", lines, "-o", out, "--top-p", "0"}, 64},
      {{"batch", "-i", lines, "-o", out, "--min-p", "1.5"}, 64},
      {{"batch", "-i", lines, "-o", out, "--top-k", "-1"}, 64},
      {{"batch", "-i", lines, "-o", out, "--top-k", "x"}, 64},
      {{"batch", "-i", lines, "-o", out, "--slots", "0"}, 64},
      {{"batch", "-i", lines, "-o", out, "--slots", "4097"}, 64},
      {{"batch", "-i", lines, "-o", out, "--threads", "-2"}, 64},
      {{"batch", "-i", lines, "-o", out, "--threads", "99999999"}, 64},
      {{"batch", "-i", lines, "-o", out, "--max-tokens", "-2"}, 64},
      {{"batch", "-i", lines, "-o", out, "--max-tokens", "99999999999999999999999"}, 64},
      {{"batch", "-i", lines, "-o", out, "--ctx", "010"}, 64},
      {{"batch", "-i", lines, "-o", out, "--ctx", "4x"}, 64},
      {{"batch", "-i", lines, "-o", out, "--seed", "-1"}, 64},
      {{"batch", "-i", lines, "-o", out, "--seed", ""}, 64},
      {{"batch", "-i", lines, "-o", out, "--summary", out}, 64},
      {{"batch", "-i", lines, "-o", out, "--kv-type", "q2"}, 64},
      {{"batch", "-i", lines, "-o", out, "--isa", "abacus"}, 64},
      {{"batch", "-i", missing, "-o", out}, 66},
      {{"batch", "-i", dir.path().string(), "-o", out}, 66},
      {{"batch", "-i", lines, "-o", out, "-m", missing}, 66},
      {{"batch", "-i", lines, "-o", out, "-m", garbage}, 69},
      {{"batch", "-i", lines, "-o", (dir.path() / "no" / "folder").string()}, 73},
      {{"generate", "--system", "x", "y"}, 64},
      {{"generate", "-m", garbage, "x"}, 69},
      {{"tokenize", "-m", missing, "x"}, 66},
      {{"tokenize", "-m", garbage, "x"}, 69},
      {{"tokenize", "--chat", "--no-bos", "x"}, 64},
      {{"inspect", missing}, 66},
      {{"inspect", garbage}, 69},
      {{"inspect", "--machine", "--isa", "abacus"}, 64},
  };
  for (const auto& [arguments, code] : cases) {
    const Outcome outcome = run(arguments);
    std::string command;
    for (const std::string& argument : arguments) command += argument + " ";
    CAPTURE(command, outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    const std::vector<std::string> messages = outcome.messages();
    REQUIRE_FALSE(messages.empty());
    CHECK(messages.back().rfind("lockstep: error: ", 0) == 0);
    CHECK_FALSE(std::filesystem::exists(out));
  }
}
