// What one rendering owns: every value that it makes, what it may still spend, and the line that
// messages name. All values are freed together, when the rendering ends.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/jinja/limits.h"
#include "runtime/chat/jinja/value.h"

namespace lockstep::jinja {

struct Activation;

class Workspace {
 public:
  explicit Workspace(const Limits& limits);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  // The line of the template that is being evaluated.
  std::size_t line = 1;

  // Throws Error(bad_input): "the chat template fails at line N: ...".
  [[noreturn]] void fail(std::string_view what) const;
  // Throws Error(bad_model): "the chat template uses ... at line N, which is not supported".
  [[noreturn]] void unsupported(std::string_view construct) const;

  // Both throw Error(bad_model) when a limit is reached. What is made is charged by the functions
  // below; what merely takes time, or is about to become large, is charged before.
  void charge_steps(std::uint64_t steps = 1);
  void charge_bytes(std::uint64_t bytes);
  // Throws if a text of so many bytes would be too long.
  void check_text(std::uint64_t bytes) const;
  // For reading through text: 16 bytes are one step.
  void charge_reading(std::size_t bytes) { charge_steps(1 + bytes / 16); }

  Value text(std::string text, bool markup = false);
  Value list(std::vector<Value> items) { return sequence(Kind::list, std::move(items)); }
  Value tuple(std::vector<Value> items) { return sequence(Kind::tuple, std::move(items)); }
  Value view(std::string_view name, std::vector<Value> items);
  Value range(std::int64_t start, std::int64_t stop, std::int64_t step);
  Value iterator(std::vector<Value> items);
  Value undefined(std::string what);
  Value callable(const Callable& function);
  // Dicts are filled first, then made a value: they do not change afterwards.
  Value dict(std::unique_ptr<Dict> entries);
  // Sets an entry. Fails for a value that is no key.
  void set(Dict& dict, Value key, Value value);
  Dict& new_namespace(std::unique_ptr<Dict> entries);
  Cursor& new_cursor(const Sequence& items);
  Loop& new_loop();
  Activation& new_activation(Activation* parent, std::size_t slots);

  const Limits& limits() const noexcept { return limits_; }

 private:
  Value sequence(Kind kind, std::vector<Value> items);
  void check_depth(int depth) const;

  struct Storage;
  Limits limits_;
  std::uint64_t steps_ = 0, bytes_ = 0;
  std::unique_ptr<Storage> storage_;
};

}  // namespace lockstep::jinja
