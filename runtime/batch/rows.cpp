// The row shapes: the OpenAI batch result with the line number added, and a flat row for plain
// lines.
#include "runtime/batch/rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/batch/logprob_rows.h"

namespace lockstep::batch {

using nlohmann::ordered_json;

namespace {

std::string to_line(const ordered_json& row) {
  return row.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json usage_of(const Finished& answer) {
  ordered_json usage = {{"prompt_tokens", answer.prompt_tokens},
                        {"completion_tokens", answer.output_tokens},
                        {"total_tokens", answer.prompt_tokens + answer.output_tokens}};
  if (answer.truncated != 0) usage["prompt_tokens_truncated"] = answer.truncated;
  return usage;
}

ordered_json chat_logprobs(const Finished& answer, const StepModel& model) {
  if (!answer.logprobs) return nullptr;
  return {{"content", logprob_entries(*answer.logprobs, model)}, {"refusal", nullptr}};
}

// The ids stand where vLLM has them: those of a chat's prompt beside the choices.
ordered_json chat_body(const RowIdentity& row, const Finished& answer, const StepModel& model) {
  const ordered_json message = {
      {"role", "assistant"}, {"content", answer.text}, {"refusal", nullptr}};
  ordered_json choice = {{"index", 0},
                         {"message", message},
                         {"logprobs", chat_logprobs(answer, model)},
                         {"finish_reason", name_of(answer.reason)}};
  if (answer.shows_ids) choice["token_ids"] = answer.output_ids;
  ordered_json body = {
      {"id", fmt::format("chatcmpl-{}", row.line)},
      {"object", "chat.completion"},
      {"created", 0},  // clients require the field; a real time would make reruns differ
      {"model", model.name()},
      {"choices", ordered_json::array({choice})},
      {"usage", usage_of(answer)}};
  if (answer.shows_ids) body["prompt_token_ids"] = answer.prompt_ids;
  return body;
}

ordered_json completion_body(const RowIdentity& row, const Finished& answer,
                             const StepModel& model) {
  ordered_json choice = {{"index", 0},
                         {"text", answer.text},
                         {"logprobs", nullptr},
                         {"finish_reason", name_of(answer.reason)}};
  if (answer.logprobs) choice["logprobs"] = completion_logprobs(*answer.logprobs, model);
  if (answer.shows_ids) {
    choice["token_ids"] = answer.output_ids;
    choice["prompt_token_ids"] = answer.prompt_ids;
  }
  return {{"id", fmt::format("cmpl-{}", row.line)},
          {"object", "text_completion"},
          {"created", 0},
          {"model", model.name()},
          {"choices", ordered_json::array({choice})},
          {"usage", usage_of(answer)}};
}

ordered_json plain_row(const RowIdentity& row, const Finished& answer, const StepModel& model) {
  ordered_json result = {{"id", ordered_json::parse(row.id)},
                         {"line", row.line},
                         {"text", answer.text},
                         {"finish_reason", name_of(answer.reason)},
                         {"usage", usage_of(answer)}};
  if (answer.logprobs) result["logprobs"] = logprob_entries(*answer.logprobs, model);
  if (answer.shows_ids) {
    result["token_ids"] = answer.output_ids;
    result["prompt_token_ids"] = answer.prompt_ids;
  }
  return result;
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

std::string answer_row(const RowIdentity& row, const Finished& answer, const StepModel& model) {
  switch (row.format) {
    case RowFormat::openai_chat:
      return to_line(openai_row(row, 200, chat_body(row, answer, model), nullptr));
    case RowFormat::openai_completion:
      return to_line(openai_row(row, 200, completion_body(row, answer, model), nullptr));
    case RowFormat::plain:
      break;
  }
  return to_line(plain_row(row, answer, model));
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
