// See prompt.h. A doubled BOS lowers quality without any error, so it is prevented where two
// parties could add one: the template and the tokenizer.
#include "runtime/batch/prompt.h"

#include "lockstep/error.h"

namespace lockstep::batch {

std::vector<TokenId> text_tokens(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids = tokenizer.encode(text);
  if (ids.empty() && tokenizer.bos() != kNoToken) ids.push_back(tokenizer.bos());
  return ids;
}

std::vector<TokenId> chat_tokens(const Tokenizer& tokenizer, std::string_view chat_template,
                                 std::span<const ChatMessage> messages) {
  if (chat_template.empty()) {
    throw Error(ErrorCode::bad_model,
                "the model file has no chat template: it can only continue prompts");
  }
  std::vector<TokenId> ids = text_tokens(tokenizer, render_chat(chat_template, messages));
  const bool doubled =
      tokenizer.adds_bos() && ids.size() > 1 && ids[0] == tokenizer.bos() && ids[1] == ids[0];
  if (doubled) ids.erase(ids.begin());
  return ids;
}

}  // namespace lockstep::batch
