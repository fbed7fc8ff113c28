// Taking a request line apart. Fields that would change the answer and are not supported are
// refused rather than ignored: a silently dropped `logit_bias` gives answers that look right and
// are not.
#include "runtime/batch/request.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/batch/chat_request.h"
#include "runtime/batch/json_fields.h"

namespace lockstep::batch {

using nlohmann::json;

namespace {

constexpr std::string_view kChatUrl = "/v1/chat/completions";
constexpr std::string_view kCompletionUrl = "/v1/completions";
constexpr std::uint64_t kMaxInt = 0x7fffffff;

// Known fields of the public API that change the answer, with the value that asks for nothing.
struct UnsupportedField {
  const char* key;
  const char* neutral;  // JSON text
};
constexpr std::array kUnsupported{
    UnsupportedField{"n", "1"},
    UnsupportedField{"best_of", "1"},
    UnsupportedField{"stream", "false"},
    UnsupportedField{"echo", "false"},
    UnsupportedField{"suffix", "\"\""},
    UnsupportedField{"logprobs", "false"},
    UnsupportedField{"top_logprobs", "0"},
    UnsupportedField{"frequency_penalty", "0"},
    UnsupportedField{"presence_penalty", "0"},
    UnsupportedField{"repetition_penalty", "1"},
    UnsupportedField{"repeat_penalty", "1"},
    UnsupportedField{"logit_bias", "{}"},
    UnsupportedField{"functions", "[]"},
    UnsupportedField{"response_format", R"({"type":"text"})"},
    UnsupportedField{"modalities", R"(["text"])"},
};

bool has(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && !it->is_null();
}

bool is_openai_line(const json& object) {
  return has(object, "body") || has(object, "custom_id") || has(object, "url") ||
         has(object, "method");
}

// The JSON text of an id of a usable type, or nothing.
std::optional<std::string> id_text(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return std::nullopt;
  if (!it->is_string() && !it->is_number_integer()) return std::nullopt;
  return it->dump();
}

std::string parse_prompt(const Fields& fields) {
  const json* prompt = fields.find("prompt");
  if (!prompt) fields.refuse("prompt", "is missing");
  if (prompt->is_array()) {
    fields.refuse("prompt", "must be a string: write one line for each prompt of an array");
  }
  return *fields.string("prompt");
}

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

void parse_parameters(const Fields& fields, const RequestDefaults& defaults, Request& request) {
  if (!request.is_chat) refuse_chat_fields(fields);
  for (const UnsupportedField& unsupported : kUnsupported) {
    const json* value = fields.find(unsupported.key);
    if (value && *value != json::parse(unsupported.neutral)) {
      fields.refuse(unsupported.key,
                    fmt::format("is not supported (only {} is accepted)", unsupported.neutral));
    }
  }
  const auto older_name = fields.integer("max_tokens", 1, kMaxInt);
  const auto max_tokens = fields.integer("max_completion_tokens", 1, kMaxInt);
  request.max_tokens = static_cast<std::size_t>(
      max_tokens.value_or(older_name.value_or(static_cast<std::uint64_t>(defaults.max_tokens))));

  // The ranges of SamplingParams::check(), with the field's own name in the message.
  SamplingParams& sampling = request.sampling;
  sampling = defaults.sampling;
  sampling.temperature = fields.number("temperature", {0, 100}).value_or(sampling.temperature);
  sampling.top_k = static_cast<std::int32_t>(
      fields.integer("top_k", 0, kMaxInt).value_or(static_cast<std::uint64_t>(sampling.top_k)));
  sampling.top_p = fields.number("top_p", {0, 1, true}).value_or(sampling.top_p);
  sampling.min_p = fields.number("min_p", {0, 1}).value_or(sampling.min_p);
  sampling.seed = fields.bits("seed").value_or(row_seed(defaults.sampling.seed, request.row.line));
  request.stop = parse_stop(fields);
}

void parse_openai(const json& object, std::string_view text, const RequestDefaults& defaults,
                  Request& request) {
  const Fields line(object, "");
  if (!id_text(object, "custom_id") || !object["custom_id"].is_string()) {
    line.refuse("custom_id", has(object, "custom_id")
                                 ? "must be a string, not " + describe(object["custom_id"])
                                 : "is missing");
  }
  if (const auto method = line.string("method"); method && *method != "POST") {
    line.refuse("method", "must be \"POST\"");
  }
  const auto url = line.string("url");
  if (!url) line.refuse("url", "is missing");
  if (*url != kChatUrl && *url != kCompletionUrl) {
    line.refuse("url", fmt::format("must be \"{}\" or \"{}\"", kChatUrl, kCompletionUrl));
  }
  const json* body = line.find("body");
  if (!body) line.refuse("body", "is missing");
  if (!body->is_object()) line.refuse("body", "must be an object, not " + describe(*body));
  const Fields fields(*body, "body.");
  request.is_chat = *url == kChatUrl;
  if (request.is_chat) {
    request.chat = parse_chat(fields, text, true);
  } else {
    request.prompt = parse_prompt(fields);
  }
  parse_parameters(fields, defaults, request);
}

void parse_plain(const json& object, std::string_view text, const RequestDefaults& defaults,
                 Request& request) {
  const Fields fields(object, "");
  if (has(object, "id") && !id_text(object, "id")) {
    fields.refuse("id", "must be a string or an integer, not " + describe(object["id"]));
  }
  request.is_chat = has(object, "messages");
  if (request.is_chat && has(object, "prompt")) fields.refuse("prompt", "is given beside messages");
  if (!request.is_chat && !has(object, "prompt")) {
    throw Refusal("invalid_request", "the line has neither prompt nor messages");
  }
  if (request.is_chat) {
    request.chat = parse_chat(fields, text, false);
  } else {
    request.prompt = parse_prompt(fields);
  }
  parse_parameters(fields, defaults, request);
}

RowFormat openai_format(const json& object) {
  const auto url = object.find("url");
  const bool completion = url != object.end() && url->is_string() && *url == kCompletionUrl;
  return completion ? RowFormat::openai_completion : RowFormat::openai_chat;
}

}  // namespace

ParsedLine parse_request(std::string_view text, std::size_t line, const RequestDefaults& defaults,
                         RowFormat fallback) {
  Request request;
  request.row = {line, fallback, "null"};
  try {
    const json object = parse_json(text);
    if (!object.is_object()) {
      throw Refusal("invalid_request", "the line must be a JSON object, not " + describe(object));
    }
    if (is_openai_line(object)) {
      request.row.format = openai_format(object);
      request.row.id = id_text(object, "custom_id").value_or("null");
      parse_openai(object, text, defaults, request);
    } else {
      request.row.format = RowFormat::plain;
      request.row.id = id_text(object, "id").value_or("null");
      parse_plain(object, text, defaults, request);
    }
  } catch (const Refusal& refusal) {
    return RequestError{request.row, 400, refusal.code, refusal.what()};
  }
  return request;
}

LineIdentity identify_line(std::string_view text) {
  LineIdentity identity;
  try {
    const json object = parse_json(text);
    if (!object.is_object()) return identity;
    identity.is_object = true;
    identity.is_openai = is_openai_line(object);
    identity.is_chat = identity.is_openai ? has(object, "body") && object["body"].is_object() &&
                                                has(object["body"], "messages") &&
                                                openai_format(object) == RowFormat::openai_chat
                                          : has(object, "messages");
    identity.id = id_text(object, identity.is_openai ? "custom_id" : "id").value_or("");
    identity.lacks_id = has(object, "body") && !has(object, "custom_id");
  } catch (const Refusal&) {  // becomes an error row when its turn comes
    return {};
  }
  return identity;
}

std::uint64_t row_seed(std::uint64_t seed, std::size_t line) noexcept {
  // splitmix64 (Steele, Lea, Flood 2014), jumped to the line's place in the stream that `seed`
  // starts.
  std::uint64_t z = seed + static_cast<std::uint64_t>(line) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace lockstep::batch
