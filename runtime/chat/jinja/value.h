// What a template computes with: Python's values, as far as templates meet them. A Value is two
// words and owns nothing; texts, lists and the like lie in the Workspace of one rendering (or, for
// literals, in the syntax tree) and never change once made. Namespaces alone can be written to. So
// nothing is counted, nothing can form a cycle that leaks, and freeing it never recurses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep::jinja {

struct Callable;
struct Cursor;
struct Dict;
struct Loop;
struct Sequence;
struct String;
struct Undefined;

enum class Kind : std::uint8_t {
  missing,  // a variable that nothing was stored in yet; never leaves the interpreter
  undefined,
  none,
  boolean,
  integer,  // 64 bits; leaving them is an error
  real,
  string,
  list,
  tuple,
  range,
  view,      // of a dict: its keys, values or items
  iterator,  // what map, select, ... give: can be walked through once
  dict,
  name_space,
  loop,
  callable,
};

class Value {
 public:
  constexpr Value() noexcept : kind_(Kind::none), integer_(0) {}
  static constexpr Value missing() noexcept { return Value(Kind::missing); }
  explicit constexpr Value(bool value) noexcept : kind_(Kind::boolean), boolean_(value) {}
  explicit constexpr Value(std::int64_t value) noexcept : kind_(Kind::integer), integer_(value) {}
  explicit constexpr Value(double value) noexcept : kind_(Kind::real), real_(value) {}
  explicit constexpr Value(const String* value) noexcept : kind_(Kind::string), object_(value) {}
  // `kind`: list, tuple, range or view.
  constexpr Value(Kind kind, const Sequence* value) noexcept : kind_(kind), object_(value) {}
  explicit constexpr Value(const Undefined* value) noexcept
      : kind_(Kind::undefined), object_(value) {}
  explicit constexpr Value(Cursor* value) noexcept : kind_(Kind::iterator), object_(value) {}
  explicit constexpr Value(const Dict* value) noexcept : kind_(Kind::dict), object_(value) {}
  static constexpr Value name_space(Dict* value) noexcept {
    Value result(Kind::name_space);
    result.object_ = value;
    return result;
  }
  explicit constexpr Value(Loop* value) noexcept : kind_(Kind::loop), object_(value) {}
  explicit constexpr Value(const Callable* value) noexcept
      : kind_(Kind::callable), object_(value) {}

  constexpr Kind kind() const noexcept { return kind_; }
  constexpr bool is(Kind kind) const noexcept { return kind_ == kind; }
  // Lists, tuples, ranges and views: what has a Sequence.
  constexpr bool is_sequence() const noexcept {
    return kind_ == Kind::list || kind_ == Kind::tuple || kind_ == Kind::range ||
           kind_ == Kind::view;
  }
  // Python's bool is an int: True + 1 is 2.
  constexpr bool is_integral() const noexcept {
    return kind_ == Kind::integer || kind_ == Kind::boolean;
  }
  constexpr bool is_number() const noexcept { return is_integral() || kind_ == Kind::real; }

  // Each is valid for its kind alone.
  constexpr bool boolean() const noexcept { return boolean_; }
  constexpr std::int64_t integer() const noexcept {
    return kind_ == Kind::boolean ? (boolean_ ? 1 : 0) : integer_;
  }
  constexpr double real() const noexcept {
    return kind_ == Kind::real ? real_ : static_cast<double>(integer());
  }
  const String& string() const noexcept { return object<String>(); }
  std::string_view text() const noexcept;
  const Sequence& sequence() const noexcept { return object<Sequence>(); }
  const Undefined& undefined() const noexcept { return object<Undefined>(); }
  const Dict& dict() const noexcept { return object<Dict>(); }  // also of a namespace
  const Callable& callable() const noexcept { return object<Callable>(); }
  // What was made writable and changes while a template runs.
  Cursor& cursor() const noexcept { return const_cast<Cursor&>(object<Cursor>()); }
  Dict& space() const noexcept { return const_cast<Dict&>(object<Dict>()); }
  Loop& loop() const noexcept { return const_cast<Loop&>(object<Loop>()); }
  // Where the value lies: two values that are the same object have the same.
  const void* address() const noexcept { return object_; }

 private:
  explicit constexpr Value(Kind kind) noexcept : kind_(kind), integer_(0) {}

  template <typename Object>
  const Object& object() const noexcept {
    return *static_cast<const Object*>(object_);
  }

  Kind kind_;
  union {
    bool boolean_;
    std::int64_t integer_;
    double real_;
    const void* object_;
  };
};

struct String {
  std::string text;        // valid UTF-8
  std::size_t length = 0;  // in code points
  bool markup = false;     // marked by `safe` or `escape`: adding text to it escapes the text

  bool is_ascii() const noexcept { return length == text.size(); }
};

// What reading something that is not there gives. Most uses of it are errors, which say `what`.
struct Undefined {
  std::string what;
};

struct Sequence {
  std::vector<Value> items;
  int depth = 1;               // of lists in lists; bounded, so that walking one may recurse
  std::string_view view_name;  // of a view: "dict_keys", ...
  std::int64_t start = 0, stop = 0, step = 1;  // of a range
};

struct Cursor {
  const Sequence* items = nullptr;
  std::size_t next = 0;
};

// In the order of insertion. Keys are texts, numbers, none or undefined; numbers are the same key
// if they are equal.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;

  const Value* find(Value key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);

 private:
  static constexpr std::size_t kSmall = 8;  // entries up to which looking at each is faster
  std::size_t position(Value key) const;

  std::unordered_multimap<std::size_t, std::size_t> by_hash_;  // once there are more than kSmall
};

// Whether a dict takes the value as a key.
bool is_key(Value value) noexcept;

enum class CallableKind : std::uint8_t { global, method, macro };

struct Macro;
struct Activation;

struct Callable {
  CallableKind kind = CallableKind::global;
  std::string_view name;
  Value self;                     // of a method
  const Macro* macro = nullptr;   // of a macro, with
  Activation* closure = nullptr;  // the variables around its definition
};

// Python's truth of a value.
bool is_true(Value value) noexcept;
// How many items the value has, -1 for those without len(). A loop is asked itself (loop.h).
std::int64_t length_of(Value value) noexcept;
// "a list", "an int": what a value is, for messages.
std::string_view describe(Value value) noexcept;
// The order of two numbers by value, exactly also between integers and reals: -1, 0, 1, or 2 if one
// is NaN.
int compare_numbers(Value a, Value b) noexcept;

}  // namespace lockstep::jinja
