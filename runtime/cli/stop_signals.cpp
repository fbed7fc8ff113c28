// The handlers touch lock-free atomics only. SA_RESTART: a signal shall not make a row's write()
// fail.
#include "runtime/cli/stop_signals.h"

#include <csignal>

namespace lockstep::cli {

namespace {

static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<std::atomic<bool>*>::is_always_lock_free);

std::atomic<bool> stop_requested{false};
std::atomic<std::atomic<bool>*> cancel_flag{nullptr};

extern "C" void on_stop_signal(int) {
  if (!stop_requested.exchange(true)) return;
  if (std::atomic<bool>* cancel = cancel_flag.load()) cancel->store(true);
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // A shell starts background jobs with SIGINT ignored: that stays so.
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

}  // namespace

StopSignals::StopSignals(std::atomic<bool>& cancel) {
  stop_requested.store(false);
  cancel_flag.store(&cancel);
  set_handler(on_stop_signal);
}

StopSignals::~StopSignals() {
  set_handler(SIG_DFL);
  cancel_flag.store(nullptr);
}

const std::atomic<bool>& StopSignals::stop() const noexcept { return stop_requested; }

}  // namespace lockstep::cli
