// Typed, range-checked access to the fields of a request's JSON object. Every refusal names the
// field, what was expected and what was found. Internal to runtime/batch: keeps nlohmann/json out
// of the other headers.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep::batch {

// Thrown while a request is taken apart; parse_request turns it into a RequestError.
struct Refusal : std::runtime_error {
  Refusal(std::string_view error_code, const std::string& message)
      : std::runtime_error(message), code(error_code) {}
  std::string code;
};

// Parses one line. Throws Refusal("invalid_json") with the byte position for anything that is no
// JSON (invalid UTF-8 included) and for nesting deeper than kMaxJsonDepth.
nlohmann::json parse_json(std::string_view text);

// "a string", "an array", ...: what a value is, for messages.
std::string describe(const nlohmann::json& value);

struct NumberRange {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false;  // low itself is outside
};

class Fields {
 public:
  // `prefix` goes before every field name in messages: "body." or "".
  Fields(const nlohmann::json& object, std::string prefix);

  // Null if the field is missing or JSON null: clients send null for "not set".
  const nlohmann::json* find(std::string_view key) const;

  std::optional<std::string> string(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::uint64_t> integer(std::string_view key, std::uint64_t low,
                                       std::uint64_t high) const;
  // Any 64-bit integer, negative ones by their two's complement bits: seeds are bit patterns.
  std::optional<std::uint64_t> bits(std::string_view key) const;
  // The range is checked after rounding to f32, which is what the sampler computes with.
  std::optional<float> number(std::string_view key, const NumberRange& range) const;

  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;

 private:
  const nlohmann::json& object_;
  std::string prefix_;
};

}  // namespace lockstep::batch
