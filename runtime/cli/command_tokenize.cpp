// `lockstep tokenize`: the exact token ids that a text becomes. Reads the vocabulary only, not the
// weights.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/batch/prompt.h"
#include "runtime/cli/chat_options.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/options.h"
#include "runtime/gguf.h"
#include "runtime/printable.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/utf8.h"

namespace lockstep::cli {

namespace {

constexpr const char* kFooter = R"(Prints the ids comma-separated on one line.
Text from standard input loses one final line end.

Examples:
  lockstep tokenize "Once upon a time"
  lockstep tokenize --pieces --chat "Tell me a story."
  lockstep tokenize --json --no-bos < text.txt
)";

struct Tokenize {
  std::string model, text;
  CLI::Option* text_option = nullptr;
  ChatArguments chat_arguments;
  bool no_bos = false, no_special = false, chat = false, pieces = false, json = false;

  int run() const;
};

std::string table(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string out;
  for (const TokenId id : ids) {
    out += fmt::format("{:>8}  \"{}\"\n", id, printable(tokenizer.piece(id, true)));
  }
  return out;
}

std::string json_text(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
  for (const TokenId id : ids) pieces.push_back(sanitize_utf8(tokenizer.piece(id, true)));
  const nlohmann::ordered_json result = {{"count", ids.size()}, {"ids", ids}, {"pieces", pieces}};
  return result.dump() + "\n";
}

int Tokenize::run() const {
  const std::string input = text_argument(*text_option, text);
  const GgufFile file = GgufFile::open(model_path(model));
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(file);
  std::vector<TokenId> ids;
  if (chat) {
    const std::string of_model = file.string("tokenizer.chat_template").value_or("");
    ids = batch::chat_tokens(*tokenizer, chat_arguments.load(*tokenizer, of_model),
                             simple_chat(input));
  } else {
    EncodeOptions options;
    options.add_bos = !no_bos;
    options.parse_special = !no_special;
    ids = tokenizer->encode(input, options);
  }
  if (json) {
    print(json_text(*tokenizer, ids));
  } else if (pieces) {
    print(table(*tokenizer, ids));
  } else {
    print(fmt::format("{}\n", fmt::join(ids, ",")));
  }
  return 0;
}

}  // namespace

Command add_tokenize(CLI::App& root) {
  const auto self = std::make_shared<Tokenize>();
  CLI::App* app = root.add_subcommand("tokenize", "Show the token ids of a text");
  self->text_option =
      app->add_option("TEXT", self->text, "The text (default: standard input)")->type_name("");
  add_model_option(*app, self->model);
  auto* no_bos = app->add_flag("--no-bos", self->no_bos, "Do not put the BOS token in front");
  auto* no_special = app->add_flag("--no-special", self->no_special,
                                   "Treat \"<|user|>\" and the like as plain text");
  auto* chat =
      app->add_flag("--chat", self->chat, "The text as a user's message in the chat template")
          ->excludes(no_bos)
          ->excludes(no_special);
  self->chat_arguments.add_to(*app, chat);
  app->add_flag("--pieces", self->pieces, "A table of ids and the bytes they stand for");
  app->add_flag("--json", self->json, "One JSON object: count, ids, pieces");
  app->footer(kFooter);
  return {app, [self] { return self->run(); }};
}

}  // namespace lockstep::cli
