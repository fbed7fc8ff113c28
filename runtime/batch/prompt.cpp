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

bool begins_with_two(std::span<const TokenId> prompt, TokenId bos) noexcept {
  return bos != kNoToken && prompt.size() > 1 && prompt[0] == bos && prompt[1] == bos;
}

ChatTemplate load_chat_template(const Tokenizer& tokenizer, std::string_view source,
                                const std::string& date) {
  if (source.empty()) {
    throw Error(ErrorCode::bad_model,
                "the model file has no chat template: it can only continue prompts");
  }
  const auto text = [&](TokenId id) {
    return id == kNoToken ? std::string() : tokenizer.piece(id, true);
  };
  return ChatTemplate(source, {text(tokenizer.bos()), text(tokenizer.eos()), date});
}

std::vector<TokenId> chat_tokens(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 const ChatRequest& request) {
  std::vector<TokenId> ids = text_tokens(tokenizer, chat_template.render(request));
  if (tokenizer.adds_bos() && begins_with_two(ids, tokenizer.bos())) ids.erase(ids.begin());
  return ids;
}

}  // namespace lockstep::batch
