// What the command says to the user: everything on stderr, so that stdout holds results alone. Text
// that came from a model is freed of control characters before it reaches a terminal. A message
// that finds no reader for two seconds is given up, and so are those after it until somebody reads:
// work must not wait for its own reports.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cli {

bool stderr_is_terminal();

// "lockstep: warning: ..." and "lockstep: ..."
void show_warning(std::string_view text);
void show_note(std::string_view text);
// As it is, on lines of its own.
void show_text(std::string_view text);

// On a terminal: a line at the bottom that the next status or message replaces. Elsewhere: nothing.
void show_status(std::string_view text);
void clear_status();

// Progress of a long task: on a terminal a status ten times a second, elsewhere a message every ten
// seconds.
class PacedProgress {
 public:
  // `text()` is asked for only when it is time; `seconds`: since the task began.
  template <class Text>
  void show(double seconds, Text&& text) {
    if (is_due(seconds)) write(text());
  }

 private:
  bool is_due(double seconds);
  static void write(std::string_view text);
  double last_ = 0;
};

// Writes all of it to stdout. Throws Error(io) if that fails (a closed pipe, a full disk).
void print(std::string_view text);

// Valid UTF-8 without control characters; line feeds and tabs stay.
std::string for_terminal(std::string_view text);

}  // namespace lockstep::cli
