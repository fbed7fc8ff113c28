// What the interpreter holds while it works on something inside. Internal to it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "lockstep/error.h"
#include "runtime/chat/jinja/interpreter.h"

namespace lockstep::jinja {

class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter& interpreter) : interpreter_(interpreter) {
    const int limit = interpreter.workspace_.limits().depth;
    if (interpreter_.depth_ == limit) {
      throw Error(
          ErrorCode::bad_model,
          fmt::format("the chat template nests macros and expressions deeper than {} levels "
                      "at line {}",
                      limit, interpreter.workspace_.line));
    }
    ++interpreter_.depth_;
  }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --interpreter_.depth_; }

 private:
  Interpreter& interpreter_;
};

class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.out_, &text_)) {}
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { interpreter_.out_ = outer_; }

  std::string take() { return std::move(text_); }

 private:
  Interpreter& interpreter_;
  std::string text_;
  std::string* outer_;
};

}  // namespace lockstep::jinja
