// See workspace.h. Budgets are sums that only grow: what a template throws away counts too, so one
// number bounds both memory and the time to fill it.
#include "runtime/chat/jinja/workspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"
#include "runtime/chat/jinja/loop.h"
#include "runtime/chat/jinja/unicode.h"

namespace lockstep::jinja {
namespace {

constexpr std::size_t kObjectBytes = 64;  // of the frame around a text or list, roughly

int depth_of(Value value) noexcept {
  if (value.is_sequence()) return value.sequence().depth;
  if (value.is(Kind::dict)) return value.dict().depth;
  if (value.is(Kind::iterator)) return value.cursor().items->depth;
  return 0;
}

}  // namespace

// Deques, so that what is made stays where it is.
struct Workspace::Storage {
  std::deque<String> texts;
  std::deque<Sequence> sequences;
  std::deque<std::unique_ptr<Dict>> dicts;
  std::deque<Cursor> cursors;
  std::deque<Undefined> undefined;
  std::deque<Callable> callables;
  std::deque<Loop> loops;
  std::deque<Activation> activations;
};

Workspace::Workspace(const Limits& limits)
    : limits_(limits), storage_(std::make_unique<Storage>()) {}

Workspace::~Workspace() = default;

void Workspace::fail(std::string_view what) const {
  throw Error(ErrorCode::bad_input,
              fmt::format("the chat template fails at line {}: {}", line, what));
}

void Workspace::unsupported(std::string_view construct) const {
  throw Error(
      ErrorCode::bad_model,
      fmt::format("the chat template uses {} at line {}, which is not supported", construct, line));
}

void Workspace::charge_steps(std::uint64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.steps) {
    throw Error(ErrorCode::bad_model,
                fmt::format("the chat template does too much: stopped at line {} after {} steps",
                            line, limits_.steps));
  }
}

void Workspace::charge_bytes(std::uint64_t bytes) {
  bytes_ += bytes;
  if (bytes > limits_.bytes || bytes_ > limits_.bytes) {
    throw Error(ErrorCode::bad_model,
                fmt::format("the chat template makes too much: stopped at line {} after {} MiB of "
                            "text and lists",
                            line, limits_.bytes >> 20));
  }
}

void Workspace::check_text(std::uint64_t bytes) const {
  if (bytes > limits_.text_bytes) {
    throw Error(ErrorCode::bad_model,
                fmt::format("the chat template makes a text longer than {} MiB at line {}",
                            limits_.text_bytes >> 20, line));
  }
}

void Workspace::check_depth(int depth) const {
  if (depth > kMaxValueDepth) {
    throw Error(ErrorCode::bad_model,
                fmt::format("the chat template nests lists deeper than {} levels at line {}",
                            kMaxValueDepth, line));
  }
}

Value Workspace::text(std::string text, bool markup) {
  check_text(text.size());
  charge_bytes(kObjectBytes + text.size());
  const std::size_t length = count_characters(text);
  storage_->texts.push_back({std::move(text), length, markup});
  return Value(&storage_->texts.back());
}

Value Workspace::sequence(Kind kind, std::vector<Value> items) {
  charge_bytes(kObjectBytes + items.size() * sizeof(Value));
  Sequence sequence;
  for (const Value item : items) sequence.depth = std::max(sequence.depth, depth_of(item) + 1);
  check_depth(sequence.depth);
  sequence.items = std::move(items);
  storage_->sequences.push_back(std::move(sequence));
  return Value(kind, &storage_->sequences.back());
}

Value Workspace::view(std::string_view name, std::vector<Value> items) {
  const Value result = sequence(Kind::view, std::move(items));
  storage_->sequences.back().view_name = name;
  return result;
}

Value Workspace::range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  // In unsigned numbers, which may wrap: the distance of two 64-bit integers fits.
  const auto distance = static_cast<std::uint64_t>(step > 0 ? stop : start) -
                        static_cast<std::uint64_t>(step > 0 ? start : stop);
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const bool empty = step > 0 ? start >= stop : start <= stop;
  const std::uint64_t count = empty ? 0 : (distance - 1) / stride + 1;
  if (count > static_cast<std::uint64_t>(kMaxRange)) {
    fail(fmt::format("a range of more than {} items", kMaxRange));
  }
  std::vector<Value> items;
  items.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    items.emplace_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                                 i * static_cast<std::uint64_t>(step)));
  }
  const Value result = sequence(Kind::range, std::move(items));
  Sequence& made = storage_->sequences.back();
  made.start = start, made.stop = stop, made.step = step;
  return result;
}

Value Workspace::iterator(std::vector<Value> items) {
  return Value(&new_cursor(sequence(Kind::list, std::move(items)).sequence()));
}

Value Workspace::undefined(std::string what) {
  charge_bytes(kObjectBytes + what.size());
  storage_->undefined.push_back({std::move(what)});
  return Value(&storage_->undefined.back());
}

Value Workspace::callable(const Callable& function) {
  charge_bytes(kObjectBytes);
  storage_->callables.push_back(function);
  return Value(&storage_->callables.back());
}

void Workspace::set(Dict& dict, Value key, Value value) {
  if (!is_key(key)) {
    if (key.is(Kind::list) || key.is(Kind::dict)) {
      fail(fmt::format("{} as a key of a dict", describe(key)));
    }
    unsupported(fmt::format("{} as a key of a dict", describe(key)));
  }
  charge_bytes(4 * sizeof(Value));
  if (key.is(Kind::string)) charge_reading(key.text().size());
  dict.set(key, value);
  dict.depth = std::max(dict.depth, depth_of(value) + 1);
}

Value Workspace::dict(std::unique_ptr<Dict> entries) {
  charge_bytes(kObjectBytes);
  check_depth(entries->depth);
  storage_->dicts.push_back(std::move(entries));
  return Value(static_cast<const Dict*>(storage_->dicts.back().get()));
}

Dict& Workspace::new_namespace(std::unique_ptr<Dict> entries) {
  charge_bytes(kObjectBytes);
  storage_->dicts.push_back(std::move(entries));
  return *storage_->dicts.back();
}

Cursor& Workspace::new_cursor(const Sequence& items) {
  charge_bytes(kObjectBytes);
  storage_->cursors.push_back({&items, 0});
  return storage_->cursors.back();
}

Loop& Workspace::new_loop() {
  charge_bytes(4 * kObjectBytes);
  return storage_->loops.emplace_back();
}

Activation& Workspace::new_activation(Activation* parent, std::size_t slots) {
  charge_bytes(kObjectBytes + slots * sizeof(Value));
  storage_->activations.push_back({parent, std::vector<Value>(slots, Value::missing())});
  return storage_->activations.back();
}

}  // namespace lockstep::jinja
