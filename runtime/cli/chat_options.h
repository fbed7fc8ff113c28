// The options of chats, the same wherever there are any.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"

namespace lockstep::cli {

struct ChatArguments {
  std::string template_file, date;

  // `needs`: an option without which these make no sense; may be null.
  void add_to(CLI::App& app, CLI::Option* needs);
  // The model's template, or the one in the file. Throws Error as batch::load_chat_template, and
  // Error(no_input) if the file cannot be read.
  ChatTemplate load(const Tokenizer& tokenizer, std::string_view of_model) const;
};

}  // namespace lockstep::cli
