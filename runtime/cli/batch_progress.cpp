// See batch_progress.h; the text itself is made in progress.cpp.
#include "runtime/cli/batch_progress.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/cli/console.h"
#include "runtime/cli/progress.h"

namespace lockstep::cli {

namespace {

void show_row(const batch::RowIdentity& row, const std::string& text) {
  const std::string id = row.id == "null" ? "" : fmt::format(", id {}", row.id);
  show_text(for_terminal(fmt::format("--- line {}{}\n{}", row.line, id, text)));
}

}  // namespace

BatchProgress::BatchProgress(double interval, bool show)
    : interval_(stderr_is_terminal() ? 0.1 : interval), show_(show) {}

void BatchProgress::share(SharedLines shared) { shared_ = std::move(shared); }

void BatchProgress::on_answer(const batch::RowIdentity& row, const batch::Finished& answer) {
  if (show_) show_row(row, answer.text);
}

void BatchProgress::on_error(const batch::RequestError& error, const batch::JobStats& stats) {
  if (show_) show_row(error.row, fmt::format("error: {}", error.message));
  // There can be millions between two steps.
  tell(stats);
}

void BatchProgress::on_step(const batch::JobStats& stats) {
  if (stats.doubled_bos > 0 && !std::exchange(told_of_bos_, true)) {
    show_warning(
        "a prompt begins with two BOS tokens, its own and the one that is added: leave it out of "
        "the text (--token-ids shows what is evaluated; the summary counts them)");
  }
  tell(stats);
}

void BatchProgress::tell(const batch::JobStats& stats) {
  if (shared_.claims != nullptr && !taken_before_) taken_before_ = shared_.claims->taken();
  const double now = watch_.seconds();
  const bool redraw = show_ && stderr_is_terminal() && stats.rows != shown_rows_;
  if (!redraw && now - last_ < interval_) return;
  last_ = now;
  if (shared_.is_quiet) return;
  shown_rows_ = stats.rows;
  if (stderr_is_terminal()) {
    show_status(text(stats, true));
  } else {
    show_note(text(stats, false));
  }
}

std::string BatchProgress::text(const batch::JobStats& stats, bool bar) const {
  if (shared_.claims == nullptr) return progress_text(stats, last_, bar);
  const std::size_t taken = shared_.claims->taken();
  return shared_.label +
         shared_progress_text(stats, last_, {taken, taken_before_.value_or(0), shared_.lines});
}

}  // namespace lockstep::cli
