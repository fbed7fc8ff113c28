// See sampling_fields.h. The ranges are those of SamplingParams::check(), with the field's own name
// in the message. Names are those of the OpenAI API, and vLLM's for what that does not have.
#include "runtime/batch/sampling_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/printable.h"

namespace lockstep::batch {

using nlohmann::json;

namespace {

constexpr std::uint64_t kMaxInt = 0x7fffffff;
constexpr NumberRange kPenalty{-2, 2};
constexpr NumberRange kBias{-SamplingParams::kStrongestBias, SamplingParams::kStrongestBias};

std::vector<std::string> parse_stop(const Fields& fields) {
  const json* stop = fields.find("stop");
  if (!stop) return {};
  std::vector<std::string> result;
  const auto add = [&](const json& value) {
    if (!value.is_string()) fields.refuse("stop", "must hold strings, not " + describe(value));
    result.push_back(value.get<std::string>());
    if (result.back().empty()) fields.refuse("stop", "must not hold an empty string");
  };
  if (!stop->is_array()) {
    add(*stop);
    return result;
  }
  if (stop->size() > kMaxStopStrings) {
    fields.refuse(
        "stop", fmt::format("must hold at most {} strings, not {}", kMaxStopStrings, stop->size()));
  }
  for (const json& value : *stop) add(value);
  return result;
}

// A token id in plain decimal, as JSON has it for the key of an object.
std::optional<TokenId> token_id(const std::string& text, std::size_t vocabulary) {
  const std::uint64_t end = vocabulary == 0 ? kMaxInt : vocabulary;
  std::uint64_t id = 0;
  const char* const last = text.data() + text.size();
  const auto [stopped, status] = std::from_chars(text.data(), last, id);
  const bool is_plain = status == std::errc{} && stopped == last && std::to_string(id) == text;
  if (!is_plain || id >= end) return std::nullopt;
  return static_cast<TokenId>(id);
}

std::vector<TokenBias> parse_logit_bias(const Fields& fields, const RequestDefaults& defaults) {
  const json* object = fields.find("logit_bias");
  if (!object) return defaults.sampling.logit_bias;
  if (!object->is_object()) {
    fields.refuse("logit_bias",
                  "must be an object of token ids and numbers, not " + describe(*object));
  }
  const Fields biases(*object, fields.name("logit_bias") + ".");
  std::vector<TokenBias> result;
  for (const auto& [key, value] : object->items()) {
    const std::optional<TokenId> token = token_id(key, defaults.vocabulary);
    if (!token) {
      const std::string range =
          defaults.vocabulary == 0 ? "" : fmt::format(" of 0 to {}", defaults.vocabulary - 1);
      fields.refuse("logit_bias", fmt::format("\"{}\" is no token id{}", printable(key), range));
    }
    const std::optional<float> bias = biases.number(key, kBias);
    if (!bias) biases.refuse(key, "must be a number, not null");
    result.push_back({*token, *bias});
  }
  const bool bans_all = !result.empty() && result.size() == defaults.vocabulary &&
                        std::all_of(result.begin(), result.end(), [](const TokenBias& one) {
                          return one.bias == -SamplingParams::kStrongestBias;
                        });
  if (bans_all) fields.refuse("logit_bias", "bans the whole vocabulary");
  return result;
}

// repetition_penalty is vLLM's name, repeat_penalty that of llama.cpp.
float parse_repeat_penalty(const Fields& fields, float fallback) {
  const NumberRange range{0, 10, true};
  const auto one = fields.number("repetition_penalty", range);
  const auto other = fields.number("repeat_penalty", range);
  if (one && other && *one != *other) {
    fields.refuse("repeat_penalty", "is not the same as repetition_penalty");
  }
  return one ? *one : other.value_or(fallback);
}

// true or false with top_logprobs in a chat, a number in a completion, either in a plain line.
std::int32_t parse_logprobs(const Fields& fields, RowFormat format, std::int32_t fallback) {
  const json* value = fields.find("logprobs");
  const auto top = fields.integer("top_logprobs", 0, SamplingParams::kMaxLogprobs);
  std::int32_t result = fallback;
  bool is_on = false;
  if (value && (value->is_boolean() || format == RowFormat::openai_chat)) {
    is_on = *fields.boolean("logprobs");
    if (is_on && format == RowFormat::openai_completion) {
      fields.refuse("logprobs", fmt::format("must be a number of tokens, at most {}, not true",
                                            SamplingParams::kMaxLogprobs));
    }
    result = is_on ? 0 : SamplingParams::kNoLogprobs;
  } else if (value) {
    result =
        static_cast<std::int32_t>(*fields.integer("logprobs", 0, SamplingParams::kMaxLogprobs));
  }
  if (top.value_or(0) == 0) return result;
  if (format == RowFormat::openai_completion) {
    fields.refuse("top_logprobs", "belongs to chat requests; the number here is logprobs itself");
  }
  if (!is_on) fields.refuse("top_logprobs", "needs logprobs to be true");
  return static_cast<std::int32_t>(*top);
}

void parse_sampling(const Fields& fields, const RequestDefaults& defaults, Request& request) {
  SamplingParams& sampling = request.sampling;
  sampling = defaults.sampling;
  sampling.temperature = fields.number("temperature", {0, 100}).value_or(sampling.temperature);
  sampling.top_k = static_cast<std::int32_t>(
      fields.integer("top_k", 0, kMaxInt).value_or(static_cast<std::uint64_t>(sampling.top_k)));
  sampling.top_p = fields.number("top_p", {0, 1, true}).value_or(sampling.top_p);
  sampling.min_p = fields.number("min_p", {0, 1}).value_or(sampling.min_p);
  sampling.seed = fields.bits("seed").value_or(row_seed(defaults.sampling.seed, request.row));
  sampling.repeat_penalty = parse_repeat_penalty(fields, sampling.repeat_penalty);
  sampling.frequency_penalty =
      fields.number("frequency_penalty", kPenalty).value_or(sampling.frequency_penalty);
  sampling.presence_penalty =
      fields.number("presence_penalty", kPenalty).value_or(sampling.presence_penalty);
  sampling.logit_bias = parse_logit_bias(fields, defaults);
  sampling.logprobs = parse_logprobs(fields, request.row.format, sampling.logprobs);
  sampling.min_tokens = static_cast<std::size_t>(
      fields.integer("min_tokens", 0, kMaxInt).value_or(sampling.min_tokens));
}

}  // namespace

void parse_answer_rules(const Fields& fields, const RequestDefaults& defaults, Request& request) {
  const auto older_name = fields.integer("max_tokens", 1, kMaxInt);
  const auto max_tokens = fields.integer("max_completion_tokens", 1, kMaxInt);
  request.max_tokens = static_cast<std::size_t>(
      max_tokens.value_or(older_name.value_or(static_cast<std::uint64_t>(defaults.max_tokens))));
  parse_sampling(fields, defaults, request);
  if (request.max_tokens != 0 && request.sampling.min_tokens > request.max_tokens) {
    fields.refuse("min_tokens", fmt::format("must be at most max_tokens, which is {}, not {}",
                                            request.max_tokens, request.sampling.min_tokens));
  }
  request.stop = parse_stop(fields);
  request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  request.include_stop = fields.boolean("include_stop_str_in_output").value_or(false);
  request.token_ids = fields.boolean("return_token_ids").value_or(defaults.token_ids);
  request.truncate_prompt_tokens =
      static_cast<std::size_t>(fields.integer("truncate_prompt_tokens", 1, kMaxInt).value_or(0));
}

}  // namespace lockstep::batch
