// Field access with messages that a user can act on. nlohmann/json's own messages are not used:
// they quote raw input bytes, which need not be valid UTF-8.
#include "runtime/batch/json_fields.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/batch/request.h"

namespace lockstep::batch {

using nlohmann::json;

namespace {

struct TooDeep {};

std::string range_text(const NumberRange& range) {
  const std::string low = fmt::format("{}{}", range.open_low ? "above " : "at least ", range.low);
  if (range.high == std::numeric_limits<double>::infinity()) return low;
  return fmt::format("{} and at most {}", low, range.high);
}

}  // namespace

json parse_json(std::string_view text) {
  const auto limit_depth = [](int depth, json::parse_event_t, json&) {
    if (depth > kMaxJsonDepth) throw TooDeep{};
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), limit_depth);
  } catch (const TooDeep&) {
    throw Refusal("invalid_json", fmt::format("nested deeper than {} levels", kMaxJsonDepth));
  } catch (const json::parse_error& error) {
    throw Refusal("invalid_json", fmt::format("not valid JSON at byte {} of the line", error.byte));
  } catch (const json::exception&) {  // a number beyond the range of a double
    throw Refusal("invalid_json", "a number is out of range");
  }
}

std::string describe(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
    case json::value_t::number_float:
      return value.dump();
    case json::value_t::string:
      return "a string";
    case json::value_t::array:
      return "an array";
    case json::value_t::object:
      return "an object";
    default:
      return "something else";
  }
}

Fields::Fields(const json& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const json* Fields::find(std::string_view key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

std::optional<std::string> Fields::string(std::string_view key) const {
  const json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_string()) refuse(key, "must be a string, not " + describe(*value));
  return value->get<std::string>();
}

std::optional<bool> Fields::boolean(std::string_view key) const {
  const json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) refuse(key, "must be true or false, not " + describe(*value));
  return value->get<bool>();
}

std::optional<std::uint64_t> Fields::integer(std::string_view key, std::uint64_t low,
                                             std::uint64_t high) const {
  const json* value = find(key);
  if (!value) return std::nullopt;
  const bool fits = value->is_number_unsigned() && value->get<std::uint64_t>() >= low &&
                    value->get<std::uint64_t>() <= high;
  if (!fits)
    refuse(key, fmt::format("must be an integer of {} to {}, not {}", low, high, describe(*value)));
  return value->get<std::uint64_t>();
}

std::optional<std::uint64_t> Fields::bits(std::string_view key) const {
  const json* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  if (value->is_number_integer()) return static_cast<std::uint64_t>(value->get<std::int64_t>());
  refuse(key, "must be a 64-bit integer, not " + describe(*value));
}

std::optional<float> Fields::number(std::string_view key, const NumberRange& range) const {
  const json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_number()) refuse(key, "must be a number, not " + describe(*value));
  const float number = value->get<float>();
  const bool above = range.open_low ? number > range.low : number >= range.low;
  const bool below = number <= range.high;
  if (!above || !below)
    refuse(key, fmt::format("must be {}, not {}", range_text(range), describe(*value)));
  return number;
}

void Fields::refuse(std::string_view key, const std::string& what) const {
  throw Refusal("invalid_request", name(key) + ": " + what);
}

}  // namespace lockstep::batch
