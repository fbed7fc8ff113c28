// From a request to a sequence: what fits, what is cut on request, what is refused.
#include "runtime/batch/prepare.h"

#include <string>
#include <variant>
#include <vector>

#include "support/catch.h"
#include "test/runtime/word_model.h"

namespace {

using namespace lockstep;
using namespace lockstep::batch;
using lockstep::test::WordModel;
using Tokens = std::vector<TokenId>;

// With this prompt as token ids, in a context of 16.
Request request(Tokens prompt, std::size_t max_tokens = 0) {
  Request made;
  made.row = {4, RowFormat::openai_completion, "\"r\""};
  made.prompt_ids = std::move(prompt);
  made.max_tokens = max_tokens;
  return made;
}

Tokens counted(std::size_t count) {
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(i % 10));
  return tokens;
}

Sequence accepted(Request given, bool truncate_prompt = false) {
  auto prepared = prepare(WordModel(), given, truncate_prompt);
  if (const auto* error = std::get_if<RequestError>(&prepared)) FAIL(error->message);
  return std::get<Sequence>(std::move(prepared));
}

RequestError refused(Request given, bool truncate_prompt = false) {
  auto prepared = prepare(WordModel(), given, truncate_prompt);
  REQUIRE(std::holds_alternative<RequestError>(prepared));
  const auto& error = std::get<RequestError>(prepared);
  CHECK(error.row.line == 4);
  CHECK(error.row.id == "\"r\"");
  return error;
}

}  // namespace

TEST_CASE("token ids are the prompt as they are, a text is encoded") {
  CHECK(accepted(request({7, 7, 3})).prompt == Tokens{7, 7, 3});
  Request text = request({});
  text.prompt = "ab";
  CHECK(accepted(text).prompt == Tokens{WordModel::kBos, WordModel::kThere, WordModel::kThere});
  text.prompt = "alien";
  CHECK(refused(text).code == "invalid_request");
  CHECK(refused(request({})).code == "empty_prompt");
}

TEST_CASE("an answer gets the room that is left, and its rules") {
  CHECK(accepted(request(counted(10))).max_tokens == 6);
  CHECK(accepted(request(counted(10), 4)).max_tokens == 4);
  CHECK(accepted(request(counted(10), 40)).max_tokens == 6);
  CHECK(accepted(request(counted(15), 40)).max_tokens == 1);
  Request given = request(counted(3), 2);
  given.stop = {"x"};
  given.sampling.seed = 9;
  given.sampling.logit_bias = {{1, 2.0f}};
  given.ignore_eos = given.include_stop = given.token_ids = true;
  const Sequence sequence = accepted(given);
  CHECK(sequence.stop == std::vector<std::string>{"x"});
  CHECK(sequence.sampling.seed == 9);
  CHECK(sequence.sampling.logit_bias.size() == 1);
  CHECK(sequence.ignore_eos);
  CHECK(sequence.include_stop);
  CHECK(sequence.token_ids);
  CHECK(sequence.truncated == 0);
}

TEST_CASE("a prompt that fills the context is refused with both numbers, never cut unasked") {
  for (const std::size_t tokens : {16, 17, 500}) {
    const RequestError error = refused(request(counted(tokens), 3));
    CHECK(error.code == "context_length_exceeded");
    CHECK(error.message.find(std::to_string(tokens) + " tokens") != std::string::npos);
    CHECK(error.message.find("holds 16") != std::string::npos);
    CHECK(error.message.find("max_tokens") == std::string::npos);
  }
}

TEST_CASE("truncate_prompt_tokens keeps the last tokens") {
  Request given = request(counted(40));
  given.truncate_prompt_tokens = 5;
  Sequence sequence = accepted(given);
  CHECK(sequence.prompt == Tokens{5, 6, 7, 8, 9});
  CHECK(sequence.truncated == 35);
  CHECK(sequence.max_tokens == 11);
  given.truncate_prompt_tokens = 40;
  CHECK(refused(given).code == "context_length_exceeded");
  given.truncate_prompt_tokens = 100;
  CHECK(refused(given).message.find("40 tokens") != std::string::npos);
  given = request(counted(4));
  given.truncate_prompt_tokens = 4;
  CHECK(accepted(given).truncated == 0);
  given.truncate_prompt_tokens = 1;
  CHECK(accepted(given).prompt == Tokens{3});
}

TEST_CASE("a BOS in front stays and counts") {
  Tokens prompt = counted(10);
  prompt.insert(prompt.begin(), WordModel::kBos);
  Request given = request(prompt);
  given.truncate_prompt_tokens = 3;
  const Sequence sequence = accepted(given);
  CHECK(sequence.prompt == Tokens{WordModel::kBos, 8, 9});
  CHECK(sequence.truncated == 8);
  given.truncate_prompt_tokens = 1;
  CHECK(accepted(given).prompt == Tokens{9});
}

TEST_CASE("the option --truncate-prompt leaves room for max_tokens") {
  Sequence sequence = accepted(request(counted(40), 6), true);
  CHECK(sequence.prompt == Tokens{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(sequence.truncated == 30);
  CHECK(sequence.max_tokens == 6);
  // Also where it would fit with less room for the answer.
  sequence = accepted(request(counted(12), 6), true);
  CHECK(sequence.prompt.size() == 10);
  CHECK(sequence.truncated == 2);
  CHECK(accepted(request(counted(10), 6), true).truncated == 0);
  // Both ways at once add up.
  Request given = request(counted(40), 6);
  given.truncate_prompt_tokens = 20;
  sequence = accepted(given, true);
  CHECK(sequence.prompt.size() == 10);
  CHECK(sequence.truncated == 30);
  // Without max_tokens nothing says how much to cut.
  for (const std::size_t max_tokens : {0, 16, 99}) {
    const RequestError error = refused(request(counted(40), max_tokens), true);
    CHECK(error.code == "context_length_exceeded");
    CHECK(error.message.find("max_tokens") != std::string::npos);
  }
  CHECK(accepted(request(counted(5), 0), true).max_tokens == 11);
}
