// Output rows against the published schema of the OpenAI API: every field that it requires, with
// its type, in rows of every kind. The tables below restate that schema; rows of other shapes must
// fail them, and that is tested too.
#include "runtime/batch/rows.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/utf8.h"
#include "support/catch.h"
#include "test/runtime/word_model.h"

namespace {

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::WordModel;
using nlohmann::json;

// What a value may be, and what its parts may be. Problems are collected, with the path of each.
using Problems = std::vector<std::string>;
using Check = std::function<void(const json& value, const std::string& path, Problems& problems)>;

Check is(const std::string& what, bool (json::*test)() const noexcept) {
  return [=](const json& value, const std::string& path, Problems& problems) {
    if (!(value.*test)()) problems.push_back(path + ": no " + what);
  };
}

const Check kString = is("string", &json::is_string);
const Check kInteger = is("integer", &json::is_number_integer);
const Check kNumber = is("number", &json::is_number);
const Check kNull = is("null", &json::is_null);
const Check kObject = is("object", &json::is_object);

Check one_of(const std::vector<json>& values) {
  return [=](const json& value, const std::string& path, Problems& problems) {
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      problems.push_back(path + ": " + value.dump() + " is none of the values");
    }
  };
}

Check or_null(const Check& check) {
  return [=](const json& value, const std::string& path, Problems& problems) {
    if (!value.is_null()) check(value, path, problems);
  };
}

Check array_of(const Check& check) {
  return [=](const json& value, const std::string& path, Problems& problems) {
    if (!value.is_array()) return problems.push_back(path + ": no array");
    for (std::size_t i = 0; i < value.size(); ++i) {
      check(value[i], path + "[" + std::to_string(i) + "]", problems);
    }
  };
}

Check map_of(const Check& check) {
  return [=](const json& value, const std::string& path, Problems& problems) {
    if (!value.is_object()) return problems.push_back(path + ": no object");
    for (const auto& [key, part] : value.items()) check(part, path + "." + key, problems);
  };
}

struct Field {
  std::string key;
  Check check;
  bool is_required = true;
};

// `is_closed`: nothing but these fields.
Check object_of(const std::vector<Field>& fields, bool is_closed = false) {
  return [=](const json& value, const std::string& path, Problems& problems) {
    if (!value.is_object()) return problems.push_back(path + ": no object");
    for (const Field& field : fields) {
      const auto it = value.find(field.key);
      if (it != value.end()) {
        field.check(*it, path + "." + field.key, problems);
      } else if (field.is_required) {
        problems.push_back(path + "." + field.key + ": missing");
      }
    }
    for (const auto& [key, part] : value.items()) {
      const bool known = std::any_of(fields.begin(), fields.end(),
                                     [&name = key](const Field& f) { return f.key == name; });
      if (is_closed && !known) problems.push_back(path + "." + key + ": not in the schema");
    }
  };
}

const Check kBytes = or_null(array_of(kInteger));
const Check kTopLogprob =
    object_of({{"token", kString}, {"logprob", kNumber}, {"bytes", kBytes}}, true);
const Check kTokenLogprob = object_of({{"token", kString},
                                       {"logprob", kNumber},
                                       {"bytes", kBytes},
                                       {"top_logprobs", array_of(kTopLogprob)}},
                                      true);
const Check kChatLogprobs = object_of(
    {{"content", or_null(array_of(kTokenLogprob))}, {"refusal", or_null(array_of(kTokenLogprob))}},
    true);
// prompt_tokens_truncated is ours.
const Check kUsage = object_of({{"prompt_tokens", kInteger},
                                {"completion_tokens", kInteger},
                                {"total_tokens", kInteger},
                                {"prompt_tokens_truncated", kInteger, false}},
                               true);
const Check kMessage = object_of(
    {{"role", one_of({"assistant"})}, {"content", or_null(kString)}, {"refusal", or_null(kString)}},
    true);
const Check kIds = array_of(kInteger);  // where vLLM has them
const Check kChatChoice = object_of(
    {{"index", kInteger},
     {"finish_reason", one_of({"stop", "length", "tool_calls", "content_filter", "function_call"})},
     {"message", kMessage},
     {"logprobs", or_null(kChatLogprobs)},
     {"token_ids", kIds, false}},
    true);
const Check kChatCompletion = object_of({{"id", kString},
                                         {"object", one_of({"chat.completion"})},
                                         {"created", kInteger},
                                         {"model", kString},
                                         {"choices", array_of(kChatChoice)},
                                         {"usage", kUsage},
                                         {"prompt_token_ids", kIds, false}},
                                        true);
const Check kCompletionLogprobs = object_of({{"tokens", array_of(kString)},
                                             {"token_logprobs", array_of(kNumber)},
                                             {"top_logprobs", array_of(map_of(kNumber))},
                                             {"text_offset", array_of(kInteger)}},
                                            true);
const Check kCompletionChoice =
    object_of({{"index", kInteger},
               {"finish_reason", one_of({"stop", "length", "content_filter"})},
               {"text", kString},
               {"logprobs", or_null(kCompletionLogprobs)},
               {"token_ids", kIds, false},
               {"prompt_token_ids", kIds, false}},
              true);
const Check kCompletion = object_of({{"id", kString},
                                     {"object", one_of({"text_completion"})},
                                     {"created", kInteger},
                                     {"model", kString},
                                     {"choices", array_of(kCompletionChoice)},
                                     {"usage", kUsage}},
                                    true);
const Check kErrorBody = object_of({{"error", object_of({{"type", kString},
                                                         {"message", kString},
                                                         {"param", or_null(kString)},
                                                         {"code", or_null(kString)}},
                                                        true)}},
                                   true);

// A line of the output file. `line` is ours.
Check batch_row(const Check& body, const Check& status, const Check& error) {
  return object_of(
      {{"id", kString},
       {"custom_id", kString},
       {"response",
        object_of({{"status_code", status}, {"request_id", kString}, {"body", body}}, true)},
       {"error", error},
       {"line", kInteger}},
      true);
}
const Check kChatRow = batch_row(kChatCompletion, one_of({200}), kNull);
const Check kCompletionRow = batch_row(kCompletion, one_of({200}), kNull);
const Check kErrorRow = batch_row(kErrorBody, one_of({400, 500}),
                                  object_of({{"code", kString}, {"message", kString}}, true));

Problems problems_of(const Check& check, const json& row) {
  Problems problems;
  check(row, "row", problems);
  return problems;
}

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Half a character, a control token, a word; the likeliest tokens beside each.
AnswerLogprobs logprobs() {
  AnswerLogprobs made;
  made.tops_each = 2;
  made.tokens = {{WordModel::kFirstHalf, -0.5},
                 {WordModel::kSecondHalf, -0.25},
                 {WordModel::kTool, -3.5},
                 {WordModel::kHel, -1.0}};
  made.top = {{WordModel::kFirstHalf, -0.5}, {WordModel::kEnd, -1.5},
              {WordModel::kAccent, -0.125},  {WordModel::kSecondHalf, -0.25},
              {WordModel::kBad, -0.75},      {WordModel::kTool, -3.5},
              {WordModel::kOtherHel, -0.9},  {WordModel::kThere, kNever}};
  return made;
}

Finished finished() {
  Finished made;
  made.reason = FinishReason::length;
  made.text = "\xc3\xa9hel";
  made.prompt_tokens = 3;
  made.output_tokens = 4;
  return made;
}

Finished finished_with_everything() {
  Finished made = finished();
  made.logprobs = logprobs();
  made.shows_ids = true;
  made.prompt_ids = {10, 2, 2};
  made.output_ids = {3, 4, 6, 0};
  made.truncated = 12;
  return made;
}

json row_of(RowFormat format, const Finished& answer) {
  const std::string line = answer_row({5, format, "\"an \\\"id\\\"\""}, answer, WordModel());
  REQUIRE_FALSE(line.empty());
  CHECK(line.back() == '\n');
  CHECK(line.find('\n') == line.size() - 1);
  CHECK(valid_utf8_prefix(line) == line.size());
  return json::parse(line);
}

}  // namespace

TEST_CASE("result rows of every kind have the fields of the published schema") {
  for (const Finished& answer : {finished(), finished_with_everything()}) {
    CHECK(problems_of(kChatRow, row_of(RowFormat::openai_chat, answer)) == Problems{});
    CHECK(problems_of(kCompletionRow, row_of(RowFormat::openai_completion, answer)) == Problems{});
  }
  for (const int status : {400, 500}) {
    for (const RowFormat format : {RowFormat::openai_chat, RowFormat::openai_completion}) {
      const RequestError error{{5, format, "\"x\""}, status, "some_code", "what \"happened\""};
      CHECK(problems_of(kErrorRow, json::parse(error_row(error))) == Problems{});
    }
  }
}

TEST_CASE("the schema's tables find what is missing, mistyped or of another kind") {
  const json chat = row_of(RowFormat::openai_chat, finished_with_everything());
  const json completion = row_of(RowFormat::openai_completion, finished_with_everything());
  CHECK_FALSE(problems_of(kChatRow, completion).empty());
  CHECK_FALSE(problems_of(kCompletionRow, chat).empty());
  const auto spoilt = [&](const char* pointer, const json& value) {
    json row = chat;
    row[json::json_pointer(pointer)] = value;
    return problems_of(kChatRow, row).size();
  };
  CHECK(spoilt("/response/status_code", "200") == 1);
  CHECK(spoilt("/response/body/created", 1.5) == 1);
  CHECK(spoilt("/response/body/choices/0/message/refusal", 5) == 1);
  CHECK(spoilt("/response/body/choices/0/logprobs/content/0/bytes", "x") == 1);
  CHECK(spoilt("/response/body/choices/0/logprobs/content/0/top_logprobs/1/logprob", nullptr) == 1);
  CHECK(spoilt("/response/body/usage/cached", 1) == 1);
  json lacking = chat;
  lacking["response"]["body"]["choices"][0]["message"].erase("refusal");
  CHECK(problems_of(kChatRow, lacking) ==
        Problems{"row.response.body.choices[0].message.refusal: missing"});
}

TEST_CASE("a chat row has its text, its counts and what ties it to its line") {
  const json row = row_of(RowFormat::openai_chat, finished_with_everything());
  CHECK(row.at("custom_id") == "an \"id\"");
  CHECK(row.at("line") == 5);
  const json& body = row.at("response").at("body");
  const json& choice = body.at("choices").at(0);
  CHECK(choice.at("message").at("content") == "\xc3\xa9hel");
  CHECK(choice.at("finish_reason") == "length");
  CHECK(choice.at("token_ids") == json({3, 4, 6, 0}));
  CHECK(body.at("prompt_token_ids") == json({10, 2, 2}));
  CHECK(body.at("usage") == json::parse(R"({"prompt_tokens":3,"completion_tokens":4,
      "total_tokens":7,"prompt_tokens_truncated":12})"));
  const json bare = row_of(RowFormat::openai_chat, finished()).at("response").at("body");
  CHECK(bare.at("choices").at(0).at("logprobs").is_null());
  CHECK_FALSE(bare.at("usage").contains("prompt_tokens_truncated"));
  CHECK_FALSE(bare.contains("prompt_token_ids"));
}

TEST_CASE("tokens that are no whole characters have text for readers and bytes for programs") {
  const json row = row_of(RowFormat::openai_chat, finished_with_everything());
  const json& content =
      row.at("response").at("body").at("choices").at(0).at("logprobs").at("content");
  REQUIRE(content.size() == 4);
  CHECK(content[0].at("token") == "\xef\xbf\xbd");
  CHECK(content[0].at("bytes") == json({0xc3}));
  CHECK(content[0].at("logprob") == -0.5);
  CHECK(content[1].at("bytes") == json({0xa9}));
  CHECK(content[2].at("token") == "<|tool|>");
  CHECK(content[2].at("bytes").is_null());
  CHECK(content[3] == json::parse(R"({"token":"hel","logprob":-1.0,"bytes":[104,101,108],
      "top_logprobs":[{"token":"hel","logprob":-0.9,"bytes":[104,101,108]},
                      {"token":" there","logprob":-9999.0,"bytes":[32,116,104,101,114,101]}]})"));
  CHECK(content[0].at("top_logprobs").at(1).at("token") == "<|end|>");
  CHECK(content[2].at("top_logprobs").at(0).at("token") == "\xef\xbf\xbd\n");
  std::string joined;
  for (const json& token : content) {
    if (token.at("bytes").is_null()) continue;
    for (const json& byte : token.at("bytes")) joined += static_cast<char>(byte.get<int>());
  }
  CHECK(joined == finished().text);
}

TEST_CASE("a completion's log-probabilities are arrays side by side") {
  const json row = row_of(RowFormat::openai_completion, finished_with_everything());
  const json& choice = row.at("response").at("body").at("choices").at(0);
  CHECK(choice.at("text") == "\xc3\xa9hel");
  CHECK(choice.at("token_ids").size() == 4);
  CHECK(choice.at("prompt_token_ids").size() == 3);
  const json& logprobs = choice.at("logprobs");
  CHECK(logprobs.at("tokens") == json({R"(bytes:\xc3)", R"(bytes:\xa9)", "<|tool|>", "hel"}));
  CHECK(logprobs.at("token_logprobs") == json({-0.5, -0.25, -3.5, -1.0}));
  CHECK(logprobs.at("text_offset") == json({0, 0, 1, 1}));
  const json& top = logprobs.at("top_logprobs");
  CHECK(top.at(0) == json({{R"(bytes:\xc3)", -0.5}, {"<|end|>", -1.5}}));
  CHECK(top.at(1) == json({{"\xc3\xa9", -0.125}, {R"(bytes:\xa9)", -0.25}}));
  // The chosen token is there too, and of two tokens with one text the likelier one.
  CHECK(top.at(3) == json({{"hel", -0.9}, {" there", -9999.0}}));

  Finished answer = finished();
  answer.logprobs.emplace();
  answer.logprobs->tokens = {{WordModel::kHel, -1.0}};
  const json alone = row_of(RowFormat::openai_completion, answer);
  CHECK(alone.at("response").at("body").at("choices").at(0).at("logprobs").at("top_logprobs") ==
        json::parse(R"([{"hel":-1.0}])"));
}

TEST_CASE("a plain row is flat and has only what was asked for") {
  CHECK(row_of(RowFormat::plain, finished()) == json::parse(R"({"id":"an \"id\"","line":5,
      "text":"\u00e9hel","finish_reason":"length",
      "usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}})"));
  const json row = row_of(RowFormat::plain, finished_with_everything());
  CHECK(problems_of(object_of({{"id", kString},
                               {"line", kInteger},
                               {"text", kString},
                               {"finish_reason", one_of({"stop", "length"})},
                               {"usage", kUsage},
                               {"logprobs", array_of(kTokenLogprob)},
                               {"token_ids", kIds},
                               {"prompt_token_ids", kIds}},
                              true),
                    row) == Problems{});
  const json error = json::parse(error_row({{5, RowFormat::plain, "7"}, 400, "code", "why"}));
  CHECK(error == json::parse(R"({"id":7,"line":5,"error":{"code":"code","message":"why"}})"));
}

TEST_CASE("log-probabilities keep every bit in a row") {
  Finished answer = finished();
  answer.logprobs.emplace();
  const std::vector<double> values = {-0.1,   -1.0 / 3.0, -0x1.13c8b4e08c2a7p+1,
                                      -1e-17, -6.8e38,    0.0};
  for (const double value : values) answer.logprobs->tokens.push_back({WordModel::kHel, value});
  const json row = row_of(RowFormat::plain, answer);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = std::max(values[i], -9999.0);
    CHECK(row.at("logprobs").at(i).at("logprob").get<double>() == expected);
  }
}
