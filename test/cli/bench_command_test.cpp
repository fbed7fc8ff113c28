// `lockstep bench`: every format can be read, lists make a grid, and stdout holds the result alone.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"
#include "test/cli/process.h"

using namespace lockstep::test;
using nlohmann::json;

namespace {

std::string tiny_model(const TempDir& dir) {
  const auto path = dir.path() / "tiny.gguf";
  write_tiny_model(path, lockstep::quant::Format::q8_0);
  return path.string();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t count(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

}  // namespace

TEST_CASE("bench: lists make a grid, and the fields are those of llama-bench") {
  const TempDir dir;
  const std::string model = tiny_model(dir);
  const Outcome outcome = run({"bench", "-m", model, "-p", "4,8", "-n", "3", "-pg", "4,2", "-t",
                               "1,2", "-b", "2,8", "-d", "0,5", "-r", "2", "-o", "json"});
  CHECK(outcome.code == 0);
  const json rows = json::parse(outcome.out);
  REQUIRE(rows.size() == 4 * 2 * 2 * 2);  // tests, threads, batches, depths
  for (const json& row : rows) {
    for (const char* name : {"build_commit",    "cpu_info",      "gpu_info",
                             "n_ubatch",        "n_gpu_layers",  "flash_attn",
                             "model_filename",  "model_type",    "model_size",
                             "model_n_params",  "n_batch",       "n_threads",
                             "type_k",          "type_v",        "n_prompt",
                             "n_gen",           "n_depth",       "test_time",
                             "avg_ns",          "stddev_ns",     "avg_ts",
                             "stddev_ts",       "median_ts",     "weight_bytes_per_s",
                             "share_of_stream", "share_of_peak", "barrier_share",
                             "kernels",         "openmp",        "isa",
                             "logits_hash"}) {
      CAPTURE(name);
      CHECK(row.contains(name));
    }
    CHECK(row["samples_ns"].size() == 2);
    CHECK(row["samples_ts"].size() == 2);
    CHECK(row["avg_ts"].get<double>() > 0);
    CHECK(row["barrier_share"].get<double>() >= 0);
    CHECK(row["barrier_share"].get<double>() < 1);
  }
  // One number of tokens at one depth gives one hash, however it is cut and divided.
  std::map<std::string, std::string> hashes;
  for (const json& row : rows) {
    const std::string tokens =
        std::to_string(row["n_prompt"].get<int>() + row["n_gen"].get<int>()) + " behind " +
        row["n_depth"].dump();
    const auto known = hashes.emplace(tokens, row["logits_hash"]).first;
    CHECK(known->second == row["logits_hash"]);
  }
  CHECK(hashes.size() == 8);
}

TEST_CASE("bench: csv, jsonl, sql and md hold one row per test") {
  const TempDir dir;
  const std::string model = tiny_model(dir);
  const auto bench = [&](const char* format) {
    const Outcome outcome =
        run({"bench", "-m", model, "-p", "4", "-n", "2", "-r", "1", "--no-warmup", "-o", format});
    CHECK(outcome.code == 0);
    return lines_of(outcome.out);
  };
  const auto csv = bench("csv");
  REQUIRE(csv.size() == 3);
  CHECK(csv[0].starts_with("build_commit,"));
  CHECK(count(csv[0], ',') + 1 == count(csv[1], '"') / 2);
  const auto jsonl = bench("jsonl");
  REQUIRE(jsonl.size() == 2);
  CHECK(json::parse(jsonl[0])["n_prompt"] == 4);
  CHECK(json::parse(jsonl[1])["n_gen"] == 2);
  const auto sql = bench("sql");
  REQUIRE(sql.size() == 4);
  CHECK(sql[0].starts_with("CREATE TABLE IF NOT EXISTS llama_bench ("));
  CHECK(sql[2].starts_with("INSERT INTO llama_bench ("));
  const auto md = bench("md");
  REQUIRE(md.size() == 4);
  for (const std::string& line : md) CHECK(count(line, '|') == count(md[0], '|'));
  CHECK(md[2].find("pp4") != std::string::npos);
  CHECK(md[3].find("tg2") != std::string::npos);
}

TEST_CASE("bench: --batched runs every number of sequences") {
  const TempDir dir;
  const Outcome outcome = run({"bench", "-m", tiny_model(dir), "--batched", "-npp", "4", "-ntg",
                               "3", "-npl", "1,2,5", "-r", "2", "-o", "jsonl"});
  CHECK(outcome.code == 0);
  const auto lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 3);
  const int sequences[] = {1, 2, 5};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const json row = json::parse(lines[i]);
    CHECK(row["pl"] == sequences[i]);
    CHECK(row["n_kv"] == sequences[i] * 7);
    CHECK(row["samples_t_tg"].size() == 2);
    CHECK(row["speed_tg"].get<double>() > 0);
    CHECK(row["share_of_roof"].get<double>() > 0);
  }
}

TEST_CASE("bench: what cannot work is refused in one line") {
  const TempDir dir;
  const std::string model = tiny_model(dir);
  const struct {
    std::vector<std::string> arguments;
    int code;
    const char* says;
  } cases[] = {
      {{"-m", model, "-p", "0", "-n", "0"}, 64, "nothing to measure"},
      {{"-m", model, "-p", "2x"}, 64, "whole number"},
      {{"-m", model, "-pg", "12"}, 64, "PROMPT,GENERATED"},
      {{"-m", model, "-o", "xml"}, 64, "xml"},
      {{"-m", model, "--batched", "-b", "16,32"}, 64, "one -b"},
      {{"-m", model, "-r", "0"}, 64, "whole number"},
      {{"-m", model, "--isa", "sse9"}, 64, "sse9"},
      {{"-m", (dir.path() / "none").string()}, 66, "none"},
  };
  for (const auto& wrong : cases) {
    std::vector<std::string> arguments = {"bench"};
    arguments.insert(arguments.end(), wrong.arguments.begin(), wrong.arguments.end());
    const Outcome outcome = run(arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.code == wrong.code);
    REQUIRE(outcome.messages().size() == 1);
    CHECK(outcome.err.find(wrong.says) != std::string::npos);
  }
}
