// See failure.h.
#include "runtime/cli/failure.h"

#include <fmt/format.h>

#include <new>
#include <string>

#include "runtime/cli/console.h"

namespace lockstep::cli {
namespace {

struct Failure {
  int code = static_cast<int>(ErrorCode::internal);
  std::string what;  // "" if there is nothing to tell
};

Failure current_failure() {
  const auto failure = [](ErrorCode code, const char* what) {
    return Failure{static_cast<int>(code), what};
  };
  try {
    throw;
  } catch (const ToldElsewhere& error) {
    return {error.code(), ""};
  } catch (const Error& error) {
    return failure(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::no_resource, "out of memory");
  } catch (const std::exception& error) {
    return failure(ErrorCode::internal, error.what());
  } catch (...) {
    return failure(ErrorCode::internal, "an exception of an unknown kind");
  }
}

}  // namespace

int show_error(ErrorCode code, std::string_view what) {
  std::string line = for_terminal(what);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  show_note(fmt::format("error: {}", line));
  return static_cast<int>(code);
}

int show_current_exception(std::string_view label) {
  const Failure failure = current_failure();
  if (failure.what.empty()) return failure.code;
  return show_error(static_cast<ErrorCode>(failure.code), fmt::format("{}{}", label, failure.what));
}

int code_of_current_exception() noexcept {
  try {
    return current_failure().code;
  } catch (const std::exception&) {  // no memory for the text
    return static_cast<int>(ErrorCode::no_resource);
  }
}

}  // namespace lockstep::cli
