// From exceptions to one line on stderr and an exit code.
#pragma once

#include <exception>
#include <string_view>

#include "lockstep/error.h"

namespace lockstep::cli {

// A failure that somebody else tells of: another rank of the job. It has an exit code and no line.
class ToldElsewhere : public std::exception {
 public:
  explicit ToldElsewhere(int code) noexcept : code_(code) {}
  int code() const noexcept { return code_; }
  const char* what() const noexcept override { return "told by another rank"; }

 private:
  int code_;
};

// Shows "error: WHAT" as one line, whatever is in it, and gives the exit code.
int show_error(ErrorCode code, std::string_view what);

// For a catch block: shows the current exception, with `label` before it, and gives its exit code.
int show_current_exception(std::string_view label = "");
int code_of_current_exception() noexcept;

}  // namespace lockstep::cli
