// Thin forwarding; the one decision here is which errors of evaluate() mean "cancelled".
#include "runtime/batch/session_model.h"

#include "runtime/batch/prompt.h"
#include "runtime/tokenizer/tokenizer.h"

namespace lockstep::batch {

SessionModel::SessionModel(Session& session, const ChatTemplate* chat)
    : session_(session), chat_(chat) {
  const ModelInfo& info = session.model().info();
  name_ = info.name.empty() ? info.architecture : info.name;
}

std::vector<TokenId> SessionModel::encode(const Request& request) const {
  const Model& model = session_.model();
  if (request.is_chat) {
    if (!chat_) throw Error(ErrorCode::bad_model, "the job has no chat template");
    return chat_tokens(model.tokenizer(), *chat_, request.chat);
  }
  return text_tokens(model.tokenizer(), request.prompt);
}

std::string SessionModel::piece(TokenId id) const { return session_.model().tokenizer().piece(id); }

std::string SessionModel::label(TokenId id) const { return session_.model().tokenizer().text(id); }

TokenId SessionModel::bos() const { return session_.model().tokenizer().bos(); }

bool SessionModel::ends_generation(TokenId id) const {
  return session_.model().tokenizer().ends_generation(id);
}

std::span<const TokenId> SessionModel::end_tokens() const {
  return session_.model().tokenizer().end_tokens();
}

bool SessionModel::evaluate(std::span<const BatchEntry> batch) {
  try {
    session_.evaluate(batch);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) return false;
    throw;
  }
  return true;
}

}  // namespace lockstep::batch
