// See console.h. stdout is written with write(): results are whole when they are seen, and errors
// are noticed.
#include "runtime/cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "lockstep/error.h"
#include "runtime/printable.h"
#include "runtime/utf8.h"

namespace lockstep::cli {

namespace {

bool status_is_shown = false;

// How long a message waits for somebody to read it.
constexpr int kPatienceMs = 2000;

// Texts that were given up since the last one that got through.
std::size_t unread = 0;

// A pipe takes this much at once or nothing, so that no write() waits longer than poll() said.
bool write_in_time(std::string_view text, int patience_ms) {
  while (!text.empty()) {
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    const int count = ::poll(&ready, 1, patience_ms);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const ssize_t written =
        ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return true;  // closed: nobody misses it
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Messages are best effort: a closed stderr, or one that nobody reads, must not stop a job.
void write_stderr(std::string_view text) {
  if (unread > 0) {
    if (!write_in_time(fmt::format("\nlockstep: {} messages found no reader\n", unread), 0)) {
      ++unread;
      return;
    }
    unread = 0;
  }
  if (!write_in_time(text, kPatienceMs)) ++unread;
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
