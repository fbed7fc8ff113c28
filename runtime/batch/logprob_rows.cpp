// See logprob_rows.h.
#include "runtime/batch/logprob_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/utf8.h"

namespace lockstep::batch {

using nlohmann::ordered_json;

namespace {

// JSON has no infinity. The value is the one that the OpenAI API documents for a token that is out
// of the question.
constexpr double kLowest = -9999.0;

double shown(double logprob) { return std::max(logprob, kLowest); }

ordered_json bytes_of(std::string_view piece) {
  ordered_json bytes = ordered_json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

ordered_json entry(const TokenLogprob& one, const StepModel& model) {
  const std::string piece = model.piece(one.token);
  const bool has_bytes = !piece.empty();
  return {{"token", sanitize_utf8(has_bytes ? piece : model.label(one.token))},
          {"logprob", shown(one.logprob)},
          {"bytes", has_bytes ? bytes_of(piece) : ordered_json(nullptr)}};
}

std::string completion_token(TokenId token, const StepModel& model) {
  const std::string piece = model.piece(token);
  if (piece.empty()) return sanitize_utf8(model.label(token));
  if (valid_utf8_prefix(piece) == piece.size()) return piece;
  std::string text = "bytes:";
  for (const char c : piece) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

ordered_json logprob_entries(const AnswerLogprobs& logprobs, const StepModel& model) {
  ordered_json entries = ordered_json::array();
  for (std::size_t i = 0; i < logprobs.tokens.size(); ++i) {
    ordered_json top = ordered_json::array();
    for (const TokenLogprob& one : logprobs.tops_of(i)) top.push_back(entry(one, model));
    ordered_json chosen = entry(logprobs.tokens[i], model);
    chosen["top_logprobs"] = std::move(top);
    entries.push_back(std::move(chosen));
  }
  return entries;
}

ordered_json completion_logprobs(const AnswerLogprobs& logprobs, const StepModel& model) {
  ordered_json tokens = ordered_json::array();
  ordered_json chosen = ordered_json::array();
  ordered_json tops = ordered_json::array();
  ordered_json offsets = ordered_json::array();
  Utf8Stream text;  // its characters so far are those of the row's text
  std::size_t offset = 0;
  for (std::size_t i = 0; i < logprobs.tokens.size(); ++i) {
    const TokenLogprob& one = logprobs.tokens[i];
    const std::string name = completion_token(one.token, model);
    ordered_json top = ordered_json::object();
    for (const TokenLogprob& other : logprobs.tops_of(i)) {
      top.emplace(completion_token(other.token, model), shown(other.logprob));
    }
    top.emplace(name, shown(one.logprob));  // has no effect if it is there
    tokens.push_back(name);
    chosen.push_back(shown(one.logprob));
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += characters(text.push(model.piece(one.token)));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(chosen)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

}  // namespace lockstep::batch
