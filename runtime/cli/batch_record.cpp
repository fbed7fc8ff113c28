// See batch_record.h. Names are those of the options.
#include "runtime/cli/batch_record.h"

#include <span>

#include "runtime/fingerprint.h"

namespace lockstep::cli {

batch::JobRecord known_record(const std::filesystem::path& model, batch::InputFormat format,
                              const SamplingArguments& sampling, const SessionArguments& session) {
  batch::JobRecord record;
  record.model = batch::stamp_model(model);
  record.set("input_format", name_of(format));
  record.set("max_tokens", sampling.max_tokens);
  record.set("temperature", sampling.params.temperature);
  record.set("top_k", sampling.params.top_k);
  record.set("top_p", sampling.params.top_p);
  record.set("min_p", sampling.params.min_p);
  record.set("seed", sampling.params.seed);
  record.set("repeat_penalty", sampling.params.repeat_penalty);
  record.set("frequency_penalty", sampling.params.frequency_penalty);
  record.set("presence_penalty", sampling.params.presence_penalty);
  record.set("logprobs", sampling.params.logprobs);
  record.set("kv_type", session.kv_type);
  return record;
}

void set_chat(batch::JobRecord& record, const ChatArguments& chat) {
  record.set("date", chat.date);
  if (chat.template_file.empty()) return record.set("chat_template_file", "none");
  Fingerprint text;
  const std::string given = read_text_file(chat.template_file);
  text.add(std::as_bytes(std::span(given)));
  record.set("chat_template_file", batch::hash_text(text.value()));
}

void complete_record(batch::JobRecord& record, const Model& model, const Session& session) {
  Fingerprint chat_template;
  chat_template.add(std::as_bytes(std::span(model.info().chat_template)));
  record.set("chat_template", batch::hash_text(chat_template.value()));
  record.set("ctx", session.options().context);
  record.set("model_name", model.info().name);  // it is in the rows
}

}  // namespace lockstep::cli
