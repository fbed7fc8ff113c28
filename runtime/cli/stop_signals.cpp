// The handlers touch lock-free atomics and call async-signal-safe functions only. SA_RESTART: a
// signal shall not make a row's write() fail. The period of grace is a timer that sends SIGALRM, so
// that no thread has to wait for it.
#include "runtime/cli/stop_signals.h"

#include <sys/poll.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <string>

#include "lockstep/error.h"

namespace lockstep::cli {

namespace {

static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<std::atomic<bool>*>::is_always_lock_free &&
              std::atomic<timer_t*>::is_always_lock_free);

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGUSR1};

std::atomic<bool> stop_requested{false};
std::atomic<bool> drop_requested{false};
std::atomic<bool> nothing_to_lose{false};
std::atomic<std::atomic<bool>*> cancel_flag{nullptr};
std::atomic<timer_t*> grace_timer{nullptr};
itimerspec grace{};  // set before the handlers are installed

// Best effort: the exit code says it too.
void say_goodbye() {
  constexpr char kText[] = "lockstep: error: stopped by a signal before anything was computed\n";
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
}

extern "C" void on_second_stop(int) {
  drop_requested.store(true);
  if (std::atomic<bool>* cancel = cancel_flag.load()) cancel->store(true);
  if (!nothing_to_lose.load()) return;
  say_goodbye();
  ::_exit(static_cast<int>(ErrorCode::interrupted));
}

extern "C" void on_stop_signal(int signal) {
  if (stop_requested.exchange(true)) return on_second_stop(signal);
  timer_t* const timer = grace_timer.load();
  if (timer == nullptr) return;
  if (grace.it_value.tv_sec == 0 && grace.it_value.tv_nsec == 0) return on_second_stop(signal);
  const int error = errno;
  ::timer_settime(*timer, 0, &grace, nullptr);
  errno = error;
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  struct sigaction before {};
  sigaction(signal, nullptr, &before);
  // A shell starts background jobs with SIGINT ignored: that stays so.
  if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

void set_stop_handlers(void (*handler)(int)) {
  for (const int signal : kStopSignals) set_handler(signal, handler);
}

}  // namespace

StopSignals::StopSignals(std::atomic<bool>& cancel) {
  stop_requested.store(false);
  drop_requested.store(false);
  cancel_flag.store(&cancel);
  set_stop_handlers(on_stop_signal);
}

StopSignals::StopSignals(double grace_seconds) {
  stop_requested.store(false);
  drop_requested.store(false);
  nothing_to_lose.store(true);
  double whole = 0;
  grace.it_value.tv_nsec = static_cast<long>(std::modf(grace_seconds, &whole) * 1e9);
  grace.it_value.tv_sec = static_cast<std::time_t>(whole);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  has_timer_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  if (!has_timer_) {
    throw Error(ErrorCode::no_resource,
                std::string("no timer for --grace: ") + std::strerror(errno));
  }
  grace_timer.store(&timer_);
  set_handler(SIGALRM, on_second_stop);
  set_stop_handlers(on_stop_signal);
}

StopSignals::~StopSignals() {
  set_stop_handlers(SIG_DFL);
  nothing_to_lose.store(false);
  cancel_flag.store(nullptr);
  grace_timer.store(nullptr);
  if (!has_timer_) return;
  ::timer_delete(timer_);
  set_handler(SIGALRM, SIG_IGN);  // one may be on its way still
}

const std::atomic<bool>& StopSignals::stop() const noexcept { return stop_requested; }
const std::atomic<bool>& StopSignals::drop() const noexcept { return drop_requested; }

CancelOnDrop::CancelOnDrop(std::atomic<bool>& cancel) {
  cancel_flag.store(&cancel);
  nothing_to_lose.store(false);
  if (drop_requested.load()) cancel.store(true);
}

CancelOnDrop::~CancelOnDrop() { cancel_flag.store(nullptr); }

}  // namespace lockstep::cli
