// The fields of a request that say how its answer is drawn, when it ends and what its row shows:
// every one with its range, its wrong types and its default.
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/batch/request.h"
#include "support/catch.h"

using namespace lockstep;
using namespace lockstep::batch;

namespace {

RequestDefaults defaults() {
  RequestDefaults values;
  values.max_tokens = 100;
  values.vocabulary = 500;
  return values;
}

// `fields` after a prompt: "" or "\"top_k\":5".
std::string plain(const std::string& fields, const std::string& id = "") {
  return "{" + (id.empty() ? "" : "\"id\":" + id + ",") + "\"prompt\":\"p\"" +
         (fields.empty() ? "" : "," + fields) + "}";
}
std::string chat(const std::string& fields, const std::string& id = "c") {
  return R"({"custom_id":")" + id +
         R"(","method":"POST","url":"/v1/chat/completions","body":{"messages":)" +
         R"([{"role":"user","content":"x"}])" + (fields.empty() ? "" : "," + fields) + "}}";
}
std::string completion(const std::string& fields) {
  return R"({"custom_id":"c","method":"POST","url":"/v1/completions","body":{"prompt":"p")" +
         (fields.empty() ? "" : "," + fields) + "}}";
}

Request accepted(const std::string& text, const RequestDefaults& values = defaults(),
                 std::size_t line = 7) {
  const ParsedLine parsed = parse_request(text, line, values, RowFormat::plain);
  if (const auto* error = std::get_if<RequestError>(&parsed)) FAIL(text << ": " << error->message);
  return std::get<Request>(parsed);
}

std::string refused(const std::string& text, const RequestDefaults& values = defaults()) {
  const ParsedLine parsed = parse_request(text, 3, values, RowFormat::plain);
  if (!std::holds_alternative<RequestError>(parsed)) FAIL("accepted: " << text);
  const auto& error = std::get<RequestError>(parsed);
  CHECK(error.code == "invalid_request");
  CHECK(error.message.find('\n') == std::string::npos);
  return error.message;
}

bool starts(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

}  // namespace

TEST_CASE("a request without fields has no penalty, bias, log-probability or cut") {
  const Request request = accepted(plain(""));
  CHECK(request.sampling.repeat_penalty == 1.0f);
  CHECK(request.sampling.frequency_penalty == 0.0f);
  CHECK(request.sampling.presence_penalty == 0.0f);
  CHECK(request.sampling.logit_bias.empty());
  CHECK(request.sampling.min_tokens == 0);
  CHECK(request.sampling.logprobs == SamplingParams::kNoLogprobs);
  CHECK_FALSE(request.ignore_eos);
  CHECK_FALSE(request.include_stop);
  CHECK_FALSE(request.token_ids);
  CHECK(request.truncate_prompt_tokens == 0);
  CHECK(request.truncated == 0);
  CHECK(request.prompt_ids.empty());
}

TEST_CASE("every field of an answer is read in every format") {
  const std::string fields =
      R"("repetition_penalty":1.25,"frequency_penalty":-2,"presence_penalty":2,)"
      R"("logit_bias":{"0":-100,"499":100,"17":0.5},"min_tokens":3,"ignore_eos":true,)"
      R"("include_stop_str_in_output":true,"return_token_ids":true,)"
      R"("truncate_prompt_tokens":5,"skip_special_tokens":true,"stream_options":{"x":1},)"
      R"("user":"me","metadata":{"a":"b"},"store":false,"service_tier":"auto")";
  for (const std::string& line : {plain(fields), chat(fields), completion(fields)}) {
    const Request request = accepted(line);
    CHECK(request.sampling.repeat_penalty == 1.25f);
    CHECK(request.sampling.frequency_penalty == -2.0f);
    CHECK(request.sampling.presence_penalty == 2.0f);
    CHECK(request.sampling.logit_bias.size() == 3);
    std::set<TokenId> biased;
    for (const TokenBias& one : request.sampling.logit_bias) {
      biased.insert(one.token);
      CHECK(one.bias == (one.token == 0 ? -100.0f : one.token == 17 ? 0.5f : 100.0f));
    }
    CHECK(biased == std::set<TokenId>{0, 17, 499});
    CHECK(request.sampling.min_tokens == 3);
    CHECK(request.ignore_eos);
    CHECK(request.include_stop);
    CHECK(request.token_ids);
    CHECK(request.truncate_prompt_tokens == 5);
  }
  CHECK(accepted(plain(R"("repeat_penalty":0.5)")).sampling.repeat_penalty == 0.5f);
  CHECK(accepted(plain(R"("repeat_penalty":2,"repetition_penalty":2)")).sampling.repeat_penalty ==
        2.0f);
}

TEST_CASE("a field of the request wins over the command line, null does not") {
  RequestDefaults values = defaults();
  values.sampling.repeat_penalty = 1.5f;
  values.sampling.frequency_penalty = 0.5f;
  values.sampling.presence_penalty = 0.25f;
  values.sampling.logprobs = 4;
  values.token_ids = true;
  const Request taken = accepted(
      plain(R"("repeat_penalty":null,"frequency_penalty":null,"presence_penalty":null,)"
            R"("logprobs":null,"top_logprobs":null,"return_token_ids":null,"logit_bias":null)"),
      values);
  CHECK(taken.sampling.repeat_penalty == 1.5f);
  CHECK(taken.sampling.frequency_penalty == 0.5f);
  CHECK(taken.sampling.presence_penalty == 0.25f);
  CHECK(taken.sampling.logprobs == 4);
  CHECK(taken.token_ids);
  const Request set =
      accepted(plain(R"("repeat_penalty":1,"frequency_penalty":0,"presence_penalty":0,)"
                     R"("logprobs":false,"return_token_ids":false)"),
               values);
  CHECK(set.sampling.repeat_penalty == 1.0f);
  CHECK(set.sampling.frequency_penalty == 0.0f);
  CHECK(set.sampling.presence_penalty == 0.0f);
  CHECK(set.sampling.logprobs == SamplingParams::kNoLogprobs);
  CHECK_FALSE(set.token_ids);
}

TEST_CASE("every field of an answer is checked for type and range") {
  const auto [field, value] = GENERATE(table<std::string, std::string>({
      {"repetition_penalty", "0"},
      {"repetition_penalty", "-1"},
      {"repetition_penalty", "10.01"},
      {"repetition_penalty", "1e-60"},
      {"repetition_penalty", "1e300"},
      {"repetition_penalty", "\"1\""},
      {"repetition_penalty", "true"},
      {"repetition_penalty", "[1]"},
      {"repeat_penalty", "0"},
      {"repeat_penalty", "11"},
      {"repeat_penalty", "{}"},
      {"frequency_penalty", "2.01"},
      {"frequency_penalty", "-2.01"},
      {"frequency_penalty", "-1e300"},
      {"frequency_penalty", "\"NaN\""},
      {"presence_penalty", "2.01"},
      {"presence_penalty", "-3"},
      {"presence_penalty", "false"},
      {"logit_bias", "[]"},
      {"logit_bias", "5"},
      {"logit_bias", "\"x\""},
      {"logit_bias", R"({"a":1})"},
      {"logit_bias", R"({"":1})"},
      {"logit_bias", R"({"-1":1})"},
      {"logit_bias", R"({"+1":1})"},
      {"logit_bias", R"({"01":1})"},
      {"logit_bias", R"({" 1":1})"},
      {"logit_bias", R"({"1.0":1})"},
      {"logit_bias", R"({"500":1})"},
      {"logit_bias", R"({"4294967297":1})"},
      {"logit_bias", R"({"99999999999999999999":1})"},
      {"logit_bias", R"({"\u001b[2J\n":1})"},
      {"min_tokens", "-1"},
      {"min_tokens", "1.5"},
      {"min_tokens", "101"},
      {"min_tokens", "2147483648"},
      {"min_tokens", "\"1\""},
      {"ignore_eos", "1"},
      {"ignore_eos", "\"true\""},
      {"include_stop_str_in_output", "0"},
      {"return_token_ids", "1"},
      {"truncate_prompt_tokens", "0"},
      {"truncate_prompt_tokens", "-1"},
      {"truncate_prompt_tokens", "1.5"},
      {"truncate_prompt_tokens", "2147483648"},
      {"truncate_prompt_tokens", "\"5\""},
      {"top_logprobs", "21"},
      {"top_logprobs", "-1"},
      {"top_logprobs", "true"},
      {"top_logprobs", "1.5"},
      {"top_logprobs", "3"},
      {"logprobs", "21"},
      {"logprobs", "-1"},
      {"logprobs", "1.5"},
      {"logprobs", "\"true\""},
      {"skip_special_tokens", "false"},
      {"truncation_side", "\"right\""},
      {"prompt_logprobs", "0"},
      {"stop_token_ids", "[5]"},
      {"bad_words", R"(["x"])"},
      {"allowed_token_ids", "[1]"},
      {"use_beam_search", "true"},
      {"guided_json", "{}"},
      {"guided_regex", "\"a\""},
      {"guided_choice", "[]"},
      {"guided_grammar", "\"\""},
      {"structured_outputs", "{}"},
      {"mirostat", "2"},
      {"typical_p", "0.9"},
      {"xtc_probability", "0.1"},
      {"dry_multiplier", "0.8"},
      {"grammar", "\"root ::= 1\""},
      {"n", "2"},
      {"best_of", "2"},
      {"echo", "true"},
      {"suffix", "\"x\""},
      {"response_format", R"({"type":"json_schema"})"},
  }));
  CAPTURE(field, value);
  const std::string given = "\"" + field + "\":" + value;
  CHECK(starts(refused(plain(given)), field + ": "));
  CHECK(starts(refused(chat(given)), "body." + field + ": "));
  CHECK(starts(refused(completion(given)), "body." + field + ": "));
}

TEST_CASE("a value out of its range is named with its token id") {
  CHECK(refused(chat(R"("logit_bias":{"7":100.5})")) ==
        "body.logit_bias.7: must be at least -100 and at most 100, not 100.5");
  CHECK(starts(refused(plain(R"("logit_bias":{"7":"1"})")), "logit_bias.7: must be a number"));
  CHECK(refused(plain(R"("logit_bias":{"7":null})")) == "logit_bias.7: must be a number, not null");
  CHECK(starts(refused(plain(R"("logit_bias":{"7":1e300})")), "logit_bias.7: must be at least"));
  CHECK(refused(plain(R"("logit_bias":{"500":1})")) ==
        "logit_bias: \"500\" is no token id of 0 to 499");
  RequestDefaults unknown = defaults();
  unknown.vocabulary = 0;
  CHECK(accepted(plain(R"("logit_bias":{"500":1})"), unknown).sampling.logit_bias ==
        std::vector<TokenBias>{{500, 1.0f}});
  CHECK(refused(plain(R"("logit_bias":{"2147483648":1})"), unknown) ==
        "logit_bias: \"2147483648\" is no token id");
}

TEST_CASE("a bias may ban all tokens but one") {
  RequestDefaults small = defaults();
  small.vocabulary = 3;
  CHECK(accepted(plain(R"("logit_bias":{"0":-100,"2":-100})"), small).sampling.logit_bias.size() ==
        2);
  CHECK(accepted(plain(R"("logit_bias":{"0":-100,"1":-99,"2":-100})"), small)
            .sampling.logit_bias.size() == 3);
  CHECK(refused(plain(R"("logit_bias":{"0":-100,"1":-100,"2":-100})"), small) ==
        "logit_bias: bans the whole vocabulary");
}

TEST_CASE("numbers that JSON has no word for are no JSON") {
  for (const std::string value : {"NaN", "Infinity", "-Infinity", "1e400", "0x1", "01"}) {
    for (const std::string field : {"repetition_penalty", "presence_penalty", "temperature"}) {
      const ParsedLine parsed =
          parse_request(plain("\"" + field + "\":" + value), 3, defaults(), RowFormat::plain);
      CAPTURE(field, value);
      REQUIRE(std::holds_alternative<RequestError>(parsed));
      CHECK(std::get<RequestError>(parsed).code == "invalid_json");
    }
  }
}

TEST_CASE("fields that contradict each other are refused") {
  CHECK(refused(plain(R"("repeat_penalty":1.1,"repetition_penalty":1.2)")) ==
        "repeat_penalty: is not the same as repetition_penalty");
  CHECK(refused(plain(R"("min_tokens":9,"max_tokens":8)")) ==
        "min_tokens: must be at most max_tokens, which is 8, not 9");
  CHECK(accepted(plain(R"("min_tokens":8,"max_tokens":8)")).sampling.min_tokens == 8);
  RequestDefaults unlimited = defaults();
  unlimited.max_tokens = 0;
  CHECK(accepted(plain(R"("min_tokens":1000)"), unlimited).sampling.min_tokens == 1000);
}

TEST_CASE("chat requests ask for log-probabilities with true, completions with a number") {
  const auto asked = [](const std::string& line) { return accepted(line).sampling.logprobs; };
  constexpr std::int32_t kNone = SamplingParams::kNoLogprobs;
  CHECK(asked(chat(R"("logprobs":true)")) == 0);
  CHECK(asked(chat(R"("logprobs":false)")) == kNone);
  CHECK(asked(chat(R"("logprobs":true,"top_logprobs":20)")) == 20);
  CHECK(asked(chat(R"("logprobs":true,"top_logprobs":0)")) == 0);
  CHECK(asked(chat(R"("logprobs":false,"top_logprobs":0)")) == kNone);
  CHECK(refused(chat(R"("logprobs":5)")) == "body.logprobs: must be true or false, not 5");
  CHECK(refused(chat(R"("logprobs":false,"top_logprobs":2)")) ==
        "body.top_logprobs: needs logprobs to be true");
  CHECK(refused(chat(R"("top_logprobs":2)")) == "body.top_logprobs: needs logprobs to be true");

  CHECK(asked(completion(R"("logprobs":0)")) == 0);
  CHECK(asked(completion(R"("logprobs":20)")) == 20);
  CHECK(asked(completion(R"("logprobs":false)")) == kNone);
  CHECK(asked(completion(R"("logprobs":null)")) == kNone);
  CHECK(starts(refused(completion(R"("logprobs":true)")), "body.logprobs: must be a number"));
  CHECK(starts(refused(completion(R"("logprobs":1,"top_logprobs":1)")), "body.top_logprobs: "));

  CHECK(asked(plain(R"("logprobs":true)")) == 0);
  CHECK(asked(plain(R"("logprobs":3)")) == 3);
  CHECK(asked(plain(R"("logprobs":true,"top_logprobs":3)")) == 3);
  CHECK(starts(refused(plain(R"("logprobs":3,"top_logprobs":3)")), "top_logprobs: needs"));
}

TEST_CASE("a prompt may be an array of token ids, and of nothing else") {
  const Request request = accepted(R"({"prompt":[1,0,499,1]})");
  CHECK(request.prompt_ids == std::vector<TokenId>{1, 0, 499, 1});
  CHECK(request.prompt.empty());
  CHECK_FALSE(request.is_chat);
  const std::string several = "prompt: must be one prompt";
  const std::string ids = "prompt: must hold token ids of 0 to 499, not ";
  CHECK(starts(refused(R"({"prompt":["a","b"]})"), several));
  CHECK(starts(refused(R"({"prompt":["a"]})"), several));
  CHECK(starts(refused(R"({"prompt":[[1,2],[3]]})"), several));
  CHECK(refused(R"({"prompt":[500]})") == ids + "500");
  CHECK(refused(R"({"prompt":[1,-1]})") == ids + "-1");
  CHECK(refused(R"({"prompt":[1.5]})") == ids + "1.5");
  CHECK(refused(R"({"prompt":[true]})") == ids + "true");
  CHECK(refused(R"({"prompt":[18446744073709551615]})") == ids + "18446744073709551615");
  CHECK(refused(R"({"prompt":[]})") == "prompt: must not be an empty array");
  CHECK(starts(refused(R"({"custom_id":"c","url":"/v1/completions","body":{"prompt":[500]}})"),
               "body.prompt: must hold token ids"));
}

TEST_CASE("the seed of a row comes from its id, wherever the row stands") {
  RequestDefaults values = defaults();
  values.sampling.seed = 11;
  const auto seed = [&](const std::string& line, std::size_t number) {
    return accepted(line, values, number).sampling.seed;
  };
  CHECK(seed(plain("", "\"a\""), 1) == seed(plain("", "\"a\""), 900));
  CHECK(seed(plain("", "\"a\""), 1) == seed(chat("", "a"), 5));
  CHECK(seed(plain("", "\"a\""), 1) == seed(plain("", "\"\\u0061\""), 1));
  CHECK(seed(plain("", "\"a\""), 1) != seed(plain("", "\"b\""), 1));
  CHECK(seed(plain("", "1"), 1) != seed(plain("", "\"1\""), 1));
  CHECK(seed(plain("", ""), 1) != seed(plain("", ""), 2));
  CHECK(seed(plain(R"("seed":5)", "\"a\""), 1) == 5);
  std::set<std::uint64_t> seeds;
  for (int i = 0; i < 2000; ++i) {
    seeds.insert(seed(plain("", "\"row-" + std::to_string(i) + "\""), 1));
    seeds.insert(seed(plain("", ""), static_cast<std::size_t>(i)));
  }
  CHECK(seeds.size() == 4000);
  const std::uint64_t before = seed(plain("", "\"a\""), 1);
  values.sampling.seed = 12;
  CHECK(seed(plain("", "\"a\""), 1) != before);
  // Fixed for good: computed from the definitions (FNV-1a, SplitMix64) by an independent program.
  CHECK(row_seed(11, {3, RowFormat::plain, "\"a\""}) == 3199296227974559151u);
  CHECK(row_seed(11, {3, RowFormat::plain, "null"}) == 11769803791402734189u);
}
