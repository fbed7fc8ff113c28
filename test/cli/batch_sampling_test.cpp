// What a request may ask of its answer, through the real executable on the embedded model:
// log-probabilities, penalties, biases, token ids, cut prompts. And that none of it depends on
// threads, slots, instruction set or the place of a line.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/gguf.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/utf8.h"
#include "support/catch.h"
#include "support/temp_dir.h"
#include "test/cli/process.h"

using namespace lockstep::test;
using lockstep::TokenId;
using nlohmann::json;

namespace {

constexpr const char* kOwl = "Tell me a story about an owl who lost a lantern.";

std::string plain_line(const std::string& prompt, const std::string& more) {
  return "{\"prompt\":" + json(prompt).dump() + more + "}\n";
}

std::string chat_line(const std::string& id, const std::string& content, const std::string& more) {
  return R"({"custom_id":")" + id +
         R"(","method":"POST","url":"/v1/chat/completions","body":{"messages":)" +
         R"([{"role":"user","content":")" + content + "\"}]" + more + "}}\n";
}

std::string completion_line(const std::string& id, const std::string& prompt,
                            const std::string& more) {
  return R"({"custom_id":")" + id +
         R"(","method":"POST","url":"/v1/completions","body":{"prompt":)" + prompt + more + "}}\n";
}

struct Job {
  int code = -1;
  std::string err;
  std::map<std::size_t, json> rows;  // by line
  std::vector<std::string> lines;    // sorted

  const json& choice(std::size_t line) const {
    return rows.at(line).at("response").at("body").at("choices").at(0);
  }
  std::string text(std::size_t line) const { return rows.at(line).at("text"); }
};

Job run_batch(const std::string& lines, const std::vector<std::string>& options = {}) {
  const TempDir dir;
  const std::filesystem::path output = dir.path() / "out.jsonl";
  std::vector<std::string> command = {"batch", "--input", dir.write("in.jsonl", lines).string(),
                                      "--output", output.string()};
  command.insert(command.end(), options.begin(), options.end());
  const Outcome outcome = run(command);
  Job job{outcome.code, outcome.err, {}, {}};
  std::istringstream rows(TempDir::read(output));
  for (std::string row; std::getline(rows, row);) {
    CHECK(lockstep::valid_utf8_prefix(row) == row.size());
    const json parsed = json::parse(row);
    CHECK(job.rows.emplace(parsed.at("line").get<std::size_t>(), parsed).second);
    job.lines.push_back(row);
  }
  std::sort(job.lines.begin(), job.lines.end());
  return job;
}

const lockstep::Tokenizer& tokenizer() {
  static const std::unique_ptr<lockstep::Tokenizer> loaded =
      lockstep::Tokenizer::load(lockstep::GgufFile::open(std::string(LOCKSTEP_SOURCE_DIR) +
                                                         "/runtime/demo/storyteller-f16.gguf"));
  return *loaded;
}

TokenId token_of(const std::string& piece) {
  for (std::size_t i = 0; i < tokenizer().size(); ++i) {
    if (tokenizer().piece(static_cast<TokenId>(i)) == piece) return static_cast<TokenId>(i);
  }
  FAIL("no token for " << piece);
  return lockstep::kNoToken;
}

// logit_bias that bans every token with this letter.
std::string ban(char letter) {
  json biases = json::object();
  for (std::size_t i = 0; i < tokenizer().size(); ++i) {
    const std::string piece = tokenizer().piece(static_cast<TokenId>(i));
    if (piece.find(letter) != std::string::npos) biases[std::to_string(i)] = -100;
  }
  REQUIRE(biases.size() > 20);
  return ",\"logit_bias\":" + biases.dump();
}

// Checks one token's entry and that of its alternatives; the text of its bytes.
std::string checked_entry(const json& entry, std::size_t tops, bool is_greedy) {
  CHECK(entry.at("logprob").get<double>() <= 0);
  const json& top = entry.at("top_logprobs");
  CHECK(top.size() == tops);
  double sum = 0;
  for (std::size_t i = 0; i < top.size(); ++i) {
    sum += std::exp(top[i].at("logprob").get<double>());
    if (i > 0) CHECK(top[i].at("logprob") <= top[i - 1].at("logprob"));
  }
  CHECK(sum <= 1 + 1e-12);
  if (is_greedy && tops > 0) CHECK(top[0].at("bytes") == entry.at("bytes"));
  std::string bytes;
  for (const json& byte : entry.at("bytes")) bytes += static_cast<char>(byte.get<int>());
  return bytes;
}

}  // namespace

TEST_CASE("log-probabilities are the same bytes for any threads, slots and instruction set") {
  std::string lines =
      chat_line("chat", kOwl, R"(,"max_tokens":24,"logprobs":true,"top_logprobs":5)") +
      completion_line("text", "\"Once upon a time\"",
                      R"(,"max_tokens":20,"logprobs":3,"temperature":1)") +
      plain_line("There was once", R"(,"max_tokens":12,"logprobs":20)");
  for (int i = 0; i < 4; ++i) {
    lines += plain_line("Once", R"(,"max_tokens":9,"temperature":1.5,"top_p":0.9,"logprobs":true,)"
                                R"("repetition_penalty":1.3,"frequency_penalty":0.4)");
  }
  const Job first = run_batch(lines, {"--threads", "1", "--slots", "1"});
  INFO(first.err);
  CHECK(first.code == 0);
  REQUIRE(first.rows.size() == 7);
  CHECK(run_batch(lines, {"--threads", "2", "--slots", "4"}).lines == first.lines);
  CHECK(run_batch(lines, {"--threads", "2", "--slots", "1"}).lines == first.lines);
  CHECK(run_batch(lines, {"--isa", "scalar", "--slots", "4"}).lines == first.lines);

  const json& content = first.choice(1).at("logprobs").at("content");
  std::string joined;
  for (const json& entry : content) joined += checked_entry(entry, 5, true);
  CHECK(joined == first.choice(1).at("message").at("content"));
  CHECK(content.size() == 24);
  const json& completion = first.choice(2).at("logprobs");
  CHECK(completion.at("tokens").size() == completion.at("token_logprobs").size());
  CHECK(completion.at("top_logprobs").size() == completion.at("text_offset").size());
  joined.clear();
  for (const json& entry : first.rows.at(3).at("logprobs"))
    joined += checked_entry(entry, 20, true);
  CHECK(joined == first.text(3));
}

TEST_CASE("the option --logprobs and --token-ids are for every row that does not say otherwise") {
  const std::string lines =
      plain_line("Once", R"(,"max_tokens":4)") +
      plain_line("Once", R"(,"max_tokens":4,"logprobs":false,"return_token_ids":false)") +
      chat_line("c", "Hi", R"(,"max_tokens":4)") +
      completion_line("t", "\"Once\"", R"(,"max_tokens":4)");
  const Job job = run_batch(lines, {"--logprobs", "2", "--token-ids"});
  CHECK(job.code == 0);
  const json& row = job.rows.at(1);
  REQUIRE(row.at("logprobs").size() == 4);
  for (const json& entry : row.at("logprobs")) checked_entry(entry, 2, true);
  CHECK(row.at("token_ids").size() == 4);
  CHECK(row.at("prompt_token_ids").at(0) == tokenizer().bos());
  CHECK(row.at("prompt_token_ids") == json(tokenizer().encode("Once")));
  CHECK_FALSE(job.rows.at(2).contains("logprobs"));
  CHECK_FALSE(job.rows.at(2).contains("token_ids"));
  CHECK(job.choice(3).at("logprobs").at("content").size() == 4);
  CHECK(job.choice(3).at("token_ids").size() == 4);
  const json& chat_prompt = job.rows.at(3).at("response").at("body").at("prompt_token_ids");
  CHECK(chat_prompt.size() ==
        job.rows.at(3).at("response").at("body").at("usage").at("prompt_tokens"));
  CHECK(std::count(chat_prompt.begin(), chat_prompt.end(), json(tokenizer().bos())) == 1);
  CHECK(job.choice(4).at("prompt_token_ids") == row.at("prompt_token_ids"));
  const Job bare = run_batch(lines);
  CHECK_FALSE(bare.rows.at(1).contains("logprobs"));
  CHECK(bare.choice(4).at("logprobs").is_null());
  CHECK(bare.text(1) == job.text(1));
}

TEST_CASE("penalties change the answer, on the command line as in the line") {
  const std::string bare = R"(,"max_tokens":60)";
  const Job plain = run_batch(plain_line("Once upon a time", bare));
  const std::map<std::string, std::string> options = {{"repetition_penalty", "--repeat-penalty"},
                                                      {"frequency_penalty", "--frequency-penalty"},
                                                      {"presence_penalty", "--presence-penalty"}};
  for (const auto& [field, option] : options) {
    const Job by_field = run_batch(plain_line("Once upon a time", bare + ",\"" + field + "\":1.9"));
    INFO(field << ": " << by_field.text(1));
    CHECK(by_field.text(1) != plain.text(1));
    const Job by_option = run_batch(plain_line("Once upon a time", bare), {option, "1.9"});
    CHECK(by_option.text(1) == by_field.text(1));
    const Outcome generated =
        run({"generate", option, "1.9", "--max-tokens", "60", "Once upon a time"});
    CHECK(generated.out == by_field.text(1) + "\n");
  }
}

TEST_CASE("a bias of -100 keeps a letter out of a story") {
  const Job job =
      run_batch(chat_line("with", kOwl, R"(,"max_tokens":60)") +
                chat_line("without", kOwl, R"(,"max_tokens":60)" + ban('e')) +
                chat_line("drawn", kOwl, R"(,"max_tokens":60,"temperature":2)" + ban('e')));
  CHECK(job.code == 0);
  const auto text = [&](std::size_t line) {
    return job.choice(line).at("message").at("content").get<std::string>();
  };
  CHECK(text(1).find('e') != std::string::npos);
  for (const std::size_t line : {2, 3}) {
    INFO(text(line));
    CHECK(text(line).find('e') == std::string::npos);
    CHECK(text(line).size() > 60);
  }
}

TEST_CASE("max_tokens inside a character: valid UTF-8, the length as the reason, exact bytes") {
  // The first byte of a two-byte character, and both of them.
  const TokenId half = token_of("\xc3"), other = token_of("\xa9");
  const std::string force = R"(,"logprobs":true,"logit_bias":{")" + std::to_string(half) + "\":100";
  const std::string both = force + ",\"" + std::to_string(other) + "\":100";
  const Job job =
      run_batch(plain_line("Once", R"(,"max_tokens":1)" + force + "}") +
                chat_line("c", "Hi", R"(,"max_tokens":3)" + force + "}") +
                completion_line("t", "\"Once\"",
                                R"(,"max_tokens":1,"logprobs":1,"logit_bias":{")" +
                                    std::to_string(half) + "\":100}") +
                plain_line("Once", R"(,"max_tokens":2,"presence_penalty":2)" + both + "}"));
  INFO(job.err);
  CHECK(job.code == 0);
  const std::string broken = "\xef\xbf\xbd";
  CHECK(job.text(1) == broken);
  CHECK(job.rows.at(1).at("finish_reason") == "length");
  CHECK(job.rows.at(1).at("logprobs").at(0).at("bytes") == json({0xc3}));
  CHECK(job.rows.at(1).at("logprobs").at(0).at("token") == broken);
  CHECK(job.choice(2).at("message").at("content") == broken + broken + broken);
  CHECK(job.choice(2).at("finish_reason") == "length");
  CHECK(job.choice(3).at("text") == broken);
  CHECK(job.choice(3).at("logprobs").at("tokens").at(0) == R"(bytes:\xc3)");
  CHECK(job.rows.at(4).at("finish_reason") == "length");
}

TEST_CASE("a prompt as token ids is evaluated as it stands") {
  const std::vector<TokenId> ids = tokenizer().encode("Once upon a time");
  std::vector<TokenId> without_bos(ids.begin() + 1, ids.end());
  const auto line = [](const std::vector<TokenId>& prompt) {
    return completion_line("r" + std::to_string(prompt.size()), json(prompt).dump(),
                           R"(,"max_tokens":16,"return_token_ids":true)");
  };
  const Job job = run_batch(line(ids) + line(without_bos) +
                            plain_line("Once upon a time", R"(,"max_tokens":16)") +
                            completion_line("bad", "[1,1024]", ""));
  CHECK(job.code == 1);
  CHECK(job.choice(1).at("prompt_token_ids") == json(ids));
  CHECK(job.choice(1).at("text") == job.text(3));
  CHECK(job.choice(2).at("prompt_token_ids") == json(without_bos));
  CHECK(job.rows.at(4).at("error").at("message") ==
        "body.prompt: must hold token ids of 0 to 1023, not 1024");
}

TEST_CASE("a prompt is cut only on request, and its row says so") {
  std::string prompt;
  for (int i = 0; i < 100; ++i) prompt += "<|user|>";
  const std::string lines = plain_line(prompt, R"(,"max_tokens":8,"return_token_ids":true)") +
                            plain_line("Once", R"(,"max_tokens":8)");
  const Job refused = run_batch(lines, {"--ctx", "64"});
  CHECK(refused.code == 1);
  CHECK(refused.rows.at(1).at("error").at("code") == "context_length_exceeded");
  const Job cut = run_batch(lines, {"--ctx", "64", "--truncate-prompt"});
  CHECK(cut.code == 0);
  CHECK(cut.rows.at(1).at("usage").at("prompt_tokens") == 56);
  CHECK(cut.rows.at(1).at("usage").at("prompt_tokens_truncated") == 45);
  CHECK(cut.rows.at(1).at("prompt_token_ids").at(0) == tokenizer().bos());
  CHECK(cut.rows.at(1).at("prompt_token_ids").size() == 56);
  CHECK_FALSE(cut.rows.at(2).at("usage").contains("prompt_tokens_truncated"));
  const Job asked = run_batch(plain_line(prompt, R"(,"truncate_prompt_tokens":10)"),
                              {"--ctx", "64", "--max-tokens", "2"});
  CHECK(asked.rows.at(1).at("usage").at("prompt_tokens") == 10);
  CHECK(asked.rows.at(1).at("usage").at("prompt_tokens_truncated") == 91);
}

TEST_CASE("ignore_eos and min_tokens go on where the model would end") {
  const std::string chat = R"(,"max_tokens":160)";
  const Job job =
      run_batch(chat_line("a", kOwl, chat) + chat_line("b", kOwl, chat + R"(,"ignore_eos":true)") +
                chat_line("c", kOwl, chat + R"(,"min_tokens":155)"));
  const auto tokens = [&](std::size_t line) {
    return job.rows.at(line)
        .at("response")
        .at("body")
        .at("usage")
        .at("completion_tokens")
        .get<std::size_t>();
  };
  CHECK(job.choice(1).at("finish_reason") == "stop");
  REQUIRE(tokens(1) < 155);
  CHECK(tokens(2) == 160);
  CHECK(job.choice(2).at("finish_reason") == "length");
  CHECK(tokens(3) >= 155);
}

TEST_CASE("a stop string ends a text before or after itself") {
  const Job job =
      run_batch(chat_line("a", kOwl, R"(,"stop":"lantern")") +
                chat_line("b", kOwl, R"(,"stop":"lantern","include_stop_str_in_output":true)"));
  const std::string before = job.choice(1).at("message").at("content");
  CHECK(before.find("lantern") == std::string::npos);
  CHECK(job.choice(1).at("finish_reason") == "stop");
  CHECK(job.choice(2).at("message").at("content") == before + "lantern");
}

TEST_CASE("a row with an id draws the same wherever it stands") {
  const auto line = [](const std::string& id) {
    return chat_line(id, kOwl, R"(,"max_tokens":20,"temperature":1.5)");
  };
  const auto answers = [](const Job& job) {
    std::map<std::string, json> by_id;
    for (const auto& [number, row] : job.rows) {
      by_id[row.at("custom_id")] = row.at("response").at("body").at("choices");
    }
    return by_id;
  };
  const auto all = answers(run_batch(line("a") + line("b") + line("c") + line("d")));
  CHECK(all.at("a") != all.at("b"));
  const auto turned = answers(run_batch(line("d") + "\n" + line("c") + line("b") + line("a")));
  CHECK(turned == all);
  const auto part = answers(run_batch(line("c")));
  CHECK(part.at("c") == all.at("c"));
  CHECK(answers(run_batch(line("c"), {"--seed", "1"})).at("c") != all.at("c"));
}

TEST_CASE("options out of range are refused in one line before anything is made") {
  const std::vector<std::vector<std::string>> wrong = {
      {"--repeat-penalty", "0"},      {"--repeat-penalty", "11"}, {"--repeat-penalty", "nan"},
      {"--frequency-penalty", "2.5"}, {"--presence-penalty=-3"},  {"--logprobs", "21"},
      {"--logprobs", "-1"},           {"--logprobs", "x"}};
  for (const std::vector<std::string>& options : wrong) {
    const TempDir dir;
    const std::string output = (dir.path() / "out").string();
    std::vector<std::string> command = {"batch", "-i", dir.write("in", "{}\n").string(), "-o",
                                        output};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome outcome = run(command);
    INFO(options[0] << ": " << outcome.err);
    CHECK(outcome.code == 64);
    CHECK(outcome.messages().size() == 1);
    CHECK_FALSE(std::filesystem::exists(output));
  }
}
