// Taking a request line apart. Fields that would change the answer and are not supported are
// refused rather than ignored: a silently dropped `bad_words` gives answers that look right and
// are not.
#include "runtime/batch/request.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/batch/chat_request.h"
#include "runtime/batch/json_fields.h"
#include "runtime/batch/sampling_fields.h"

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
    UnsupportedField{"prompt_logprobs", "null"},
    UnsupportedField{"stop_token_ids", "[]"},
    UnsupportedField{"bad_words", "[]"},
    UnsupportedField{"allowed_token_ids", "null"},
    UnsupportedField{"use_beam_search", "false"},
    UnsupportedField{"skip_special_tokens", "true"},
    UnsupportedField{"truncation_side", "\"left\""},
    UnsupportedField{"structured_outputs", "null"},
    UnsupportedField{"guided_json", "null"},
    UnsupportedField{"guided_regex", "null"},
    UnsupportedField{"guided_choice", "null"},
    UnsupportedField{"guided_grammar", "null"},
    UnsupportedField{"typical_p", "1"},
    UnsupportedField{"mirostat", "0"},
    UnsupportedField{"xtc_probability", "0"},
    UnsupportedField{"dry_multiplier", "0"},
    UnsupportedField{"grammar", "\"\""},
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

// A text, or the exact token ids.
void parse_prompt(const Fields& fields, const RequestDefaults& defaults, Request& request) {
  const json* prompt = fields.find("prompt");
  if (!prompt) fields.refuse("prompt", "is missing");
  if (prompt->is_string()) {
    request.prompt = prompt->get<std::string>();
    return;
  }
  if (!prompt->is_array()) {
    fields.refuse("prompt", "must be a string or an array of token ids, not " + describe(*prompt));
  }
  if (prompt->empty()) fields.refuse("prompt", "must not be an empty array");
  const std::uint64_t end = defaults.vocabulary == 0 ? kMaxInt : defaults.vocabulary;
  for (const json& id : *prompt) {
    if (id.is_string() || id.is_array()) {
      fields.refuse("prompt", "must be one prompt: write one line for each prompt of an array");
    }
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= end) {
      fields.refuse("prompt",
                    fmt::format("must hold token ids of 0 to {}, not {}", end - 1, describe(id)));
    }
    request.prompt_ids.push_back(id.get<TokenId>());
  }
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
  parse_answer_rules(fields, defaults, request);
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
    parse_prompt(fields, defaults, request);
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
    parse_prompt(fields, defaults, request);
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

std::uint64_t row_seed(std::uint64_t seed, const RowIdentity& row) noexcept {
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
  // splitmix64 (Steele, Lea, Flood 2014), jumped to the row's place in the stream that `seed`
  // starts: its line, or where the FNV-1a hash of its id points to.
  const auto jump = [&](std::uint64_t place) {
    std::uint64_t z = seed + place * kStep;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  if (row.id == "null") return jump(row.line);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : row.id) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x00000100000001b3u;
  }
  return jump(hash);
}

}  // namespace lockstep::batch
