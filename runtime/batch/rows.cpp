// The row shapes: the OpenAI batch result with the line number added, and a flat row for plain
// lines.
#include "runtime/batch/rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep::batch {

using nlohmann::ordered_json;

namespace {

std::string to_line(const ordered_json& row) {
  return row.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json usage_of(const Finished& answer) {
  return {{"prompt_tokens", answer.prompt_tokens},
          {"completion_tokens", answer.output_tokens},
          {"total_tokens", answer.prompt_tokens + answer.output_tokens}};
}

ordered_json chat_body(const RowIdentity& row, const Finished& answer, std::string_view model) {
  const ordered_json message = {{"role", "assistant"}, {"content", answer.text}};
  const ordered_json choice = {{"index", 0},
                               {"message", message},
                               {"logprobs", nullptr},
                               {"finish_reason", name_of(answer.reason)}};
  return {{"id", fmt::format("chatcmpl-{}", row.line)},
          {"object", "chat.completion"},
          {"created", 0},  // clients require the field; a real time would make reruns differ
          {"model", model},
          {"choices", ordered_json::array({choice})},
          {"usage", usage_of(answer)}};
}

ordered_json completion_body(const RowIdentity& row, const Finished& answer,
                             std::string_view model) {
  const ordered_json choice = {{"index", 0},
                               {"text", answer.text},
                               {"logprobs", nullptr},
                               {"finish_reason", name_of(answer.reason)}};
  return {{"id", fmt::format("cmpl-{}", row.line)},
          {"object", "text_completion"},
          {"created", 0},
          {"model", model},
          {"choices", ordered_json::array({choice})},
          {"usage", usage_of(answer)}};
}

ordered_json openai_row(const RowIdentity& row, int status, ordered_json body, ordered_json error) {
  return {{"id", fmt::format("batch_req_{}", row.line)},
          {"custom_id", ordered_json::parse(row.id)},
          {"response",
           {{"status_code", status},
            {"request_id", fmt::format("req_{}", row.line)},
            {"body", std::move(body)}}},
          {"error", std::move(error)},
          {"line", row.line}};
}

}  // namespace

std::string answer_row(const RowIdentity& row, const Finished& answer, std::string_view model) {
  switch (row.format) {
    case RowFormat::openai_chat:
      return to_line(openai_row(row, 200, chat_body(row, answer, model), nullptr));
    case RowFormat::openai_completion:
      return to_line(openai_row(row, 200, completion_body(row, answer, model), nullptr));
    case RowFormat::plain:
      break;
  }
  return to_line({{"id", ordered_json::parse(row.id)},
                  {"line", row.line},
                  {"text", answer.text},
                  {"finish_reason", name_of(answer.reason)},
                  {"usage", usage_of(answer)}});
}

std::string error_row(const RequestError& error) {
  const ordered_json short_form = {{"code", error.code}, {"message", error.message}};
  if (error.row.format == RowFormat::plain) {
    return to_line({{"id", ordered_json::parse(error.row.id)},
                    {"line", error.row.line},
                    {"error", short_form}});
  }
  // Both are set: readers that look at the status alone and readers that look at `error` alone see
  // a failure.
  const bool is_request_fault = error.status < 500;
  const ordered_json body_error = {
      {"message", error.message},
      {"type", is_request_fault ? "invalid_request_error" : "server_error"},
      {"param", nullptr},
      {"code", error.code}};
  return to_line(openai_row(error.row, error.status, {{"error", body_error}}, short_form));
}

std::string_view name_of(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::non_finite:
      break;
  }
  return "error";
}

}  // namespace lockstep::batch
