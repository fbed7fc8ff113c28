// See console.h. stdout is written with write(): results are whole when they are seen, and errors
// are noticed.
#include "runtime/cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lockstep/error.h"
#include "runtime/printable.h"
#include "runtime/utf8.h"

namespace lockstep::cli {

namespace {

bool status_is_shown = false;

// Messages are best effort: a closed stderr must not stop a job.
void write_stderr(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

bool stderr_is_terminal() {
  static const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
  return is_terminal;
}

void clear_status() {
  if (!status_is_shown) return;
  status_is_shown = false;
  write_stderr("\r\x1b[K");
}

void show_status(std::string_view text) {
  if (!stderr_is_terminal()) return;
  // A status is ASCII; one that wraps could not be replaced any more.
  write_stderr(fmt::format("\r\x1b[K{}", text.substr(0, terminal_width() - 1)));
  status_is_shown = true;
}

void show_warning(std::string_view text) { show_note(fmt::format("warning: {}", text)); }

void show_note(std::string_view text) { show_text(fmt::format("lockstep: {}", text)); }

void show_text(std::string_view text) {
  clear_status();
  write_stderr(fmt::format("{}\n", text));
}

bool PacedProgress::is_due(double seconds) {
  if (seconds - last_ < (stderr_is_terminal() ? 0.1 : 10.0)) return false;
  last_ = seconds;
  return true;
}

void PacedProgress::write(std::string_view text) {
  if (stderr_is_terminal()) {
    show_status(text);
  } else {
    show_note(text);
  }
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw Error(ErrorCode::io,
                  fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string for_terminal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    const std::string_view character = text.substr(0, step.length);
    text.remove_prefix(step.length);
    const bool allowed = step.status == Utf8Status::valid &&
                         (!is_control(character) || character == "\n" || character == "\t");
    out += allowed ? character : std::string_view("\xef\xbf\xbd");
  }
  return out;
}

}  // namespace lockstep::cli
