// See json_values.h.
#include "runtime/chat/jinja/json_values.h"

#include <limits>
#include <memory>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::jinja {

using nlohmann::ordered_json;

Value from_json(Workspace& workspace, const ordered_json& json) {
  switch (json.type()) {
    case ordered_json::value_t::boolean:
      return Value(json.get<bool>());
    case ordered_json::value_t::number_integer:
      return Value(json.get<std::int64_t>());
    case ordered_json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw Error(ErrorCode::bad_input, "a chat holds an integer of more than 64 bits");
      }
      return Value(json.get<std::int64_t>());
    case ordered_json::value_t::number_float:
      return Value(json.get<double>());
    case ordered_json::value_t::string:
      return workspace.text(json.get_ref<const std::string&>());
    case ordered_json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const ordered_json& item : json) items.push_back(from_json(workspace, item));
      return workspace.list(std::move(items));
    }
    case ordered_json::value_t::object: {
      auto dict = std::make_unique<Dict>();
      for (const auto& [key, value] : json.items()) {
        const Value key_text = workspace.text(key);
        workspace.set(*dict, key_text, from_json(workspace, value));
      }
      return workspace.dict(std::move(dict));
    }
    default:
      return Value();
  }
}

}  // namespace lockstep::jinja
