// See chat_options.h.
#include "runtime/cli/chat_options.h"

#include "runtime/batch/prompt.h"
#include "runtime/cli/options.h"

namespace lockstep::cli {

void ChatArguments::add_to(CLI::App& app, CLI::Option* needs) {
  auto* file = app.add_option("--chat-template", template_file,
                              "Use the Jinja template in this file, not the model's")
                   ->type_name("FILE");
  auto* day = app.add_option("--date", date,
                             "The day that chat templates are told (strftime_now). Default: none,\n"
                             "so that templates take the date they have built in, or ask for this")
                  ->type_name("YYYY-MM-DD");
  if (needs == nullptr) return;
  file->needs(needs);
  day->needs(needs);
}

ChatTemplate ChatArguments::load(const Tokenizer& tokenizer, std::string_view of_model) const {
  if (template_file.empty()) return batch::load_chat_template(tokenizer, of_model, date);
  return batch::load_chat_template(tokenizer, read_text_file(template_file), date);
}

}  // namespace lockstep::cli
