// Collects a summary of a GGUF file once and renders it twice.
#include "runtime/cli/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>
#include <variant>
#include <vector>

#include "runtime/cli/table.h"
#include "runtime/cli/units.h"
#include "runtime/models/architecture.h"
#include "runtime/printable.h"
#include "runtime/utf8.h"

namespace lockstep::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kJsonArray = 64;  // longer arrays are cut
constexpr std::size_t kTextValue = 72;  // characters of a value

struct FormatTotal {
  const quant::FormatTraits* format = nullptr;  // null: of all formats
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;

  void add(const GgufTensor& tensor) {
    ++tensors;
    elements += tensor.elements;
    bytes += tensor.bytes;
  }
  double bits() const {
    return elements == 0 ? 0 : 8 * static_cast<double>(bytes) / static_cast<double>(elements);
  }
  std::string name() const { return format == nullptr ? "total" : std::string(format->name); }
};

struct Totals {
  std::vector<FormatTotal> formats;  // the largest first
  FormatTotal all;
};

Totals totals_of(const GgufFile& file) {
  Totals totals;
  for (const GgufTensor& tensor : file.tensors()) {
    const auto same = [&](const FormatTotal& total) { return total.format == tensor.format; };
    auto found = std::find_if(totals.formats.begin(), totals.formats.end(), same);
    if (found == totals.formats.end()) {
      found = totals.formats.insert(found, FormatTotal{tensor.format});
    }
    found->add(tensor);
    totals.all.add(tensor);
  }
  std::stable_sort(totals.formats.begin(), totals.formats.end(),
                   [](const FormatTotal& a, const FormatTotal& b) { return a.bytes > b.bytes; });
  return totals;
}

// The string under `key`, or "" if there is none.
std::string text_of(const GgufFile& file, std::string_view key) {
  const MetadataValue* value = file.find(key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->value);
  return text == nullptr ? std::string() : *text;
}

// A file with formats of this project names its real architecture under a key of its own.
std::string architecture_text(const GgufFile& file) {
  const std::string name = text_of(file, "general.architecture");
  const std::string real = name == kOwnArchitecture ? text_of(file, kRealArchitectureKey) : "";
  return real.empty() ? name : fmt::format("{} (in formats of {})", real, name);
}

// A number with the fewest digits that give it back in its own type: 1e-05,
// not 9.999999747378752e-06.
std::string digits(double value, MetadataType type) {
  return type == MetadataType::f32 ? fmt::format("{}", static_cast<float>(value))
                                   : fmt::format("{}", value);
}

// ---- text

std::string short_string(const std::string& text) {
  const std::string shown = printable(text, kTextValue);
  if (text.empty()) return "\"\"";
  if (shown.size() > 3 && printable(text, kTextValue + 3) != shown) {
    return fmt::format("{} ({} bytes)", shown, grouped(text.size()));
  }
  return shown;
}

template <typename T>
std::string short_element(const T& value, MetadataType type) {
  if constexpr (std::is_same_v<T, std::string>) {
    return fmt::format("\"{}\"", printable(value, 24));
  } else if constexpr (std::is_same_v<T, double>) {
    return digits(value, type);
  } else {
    if (type == MetadataType::boolean) return value != 0 ? "true" : "false";
    return fmt::format("{}", value);
  }
}

template <typename T>
std::string short_array(const std::vector<T>& values, MetadataType element) {
  std::string out;
  for (const T& value : values) {
    const std::string next = short_element(value, element);
    if (out.size() + next.size() > kTextValue) return out + (out.empty() ? "..." : ", ...");
    out += (out.empty() ? "" : ", ") + next;
  }
  return out.empty() ? "(empty)" : out;
}

struct Described {
  std::string type;
  std::string value;
};

Described describe(const MetadataValue& value) {
  return std::visit(
      [&]<typename T>(const T& stored) -> Described {
        if constexpr (std::is_same_v<T, std::string>) {
          return {"string", short_string(stored)};
        } else if constexpr (std::is_same_v<T, bool>) {
          return {"bool", stored ? "true" : "false"};
        } else if constexpr (std::is_arithmetic_v<T>) {
          return {std::string(name_of(value.type)), short_element(stored, value.type)};
        } else {
          return {fmt::format("{}[{}]", name_of(value.element), stored.size()),
                  short_array(stored, value.element)};
        }
      },
      value.value);
}

void render_summary(const GgufFile& file, const Totals& totals, std::string& out) {
  out += fmt::format("{}\n", printable(file.path().string(), 4096));
  Table table("ll");
  const std::string name = text_of(file, "general.name");
  if (!name.empty()) table.add({"model", printable(name, kTextValue)});
  const std::string architecture = architecture_text(file);
  table.add(
      {"architecture", architecture.empty() ? "(none)" : printable(architecture, kTextValue)});
  table.add({"parameters", fmt::format("{} ({})", humane_count(totals.all.elements),
                                       grouped(totals.all.elements))});
  if (totals.all.elements > 0) {
    table.add({"weights", fmt::format("{}, {:.2f} bits per weight", humane_bytes(totals.all.bytes),
                                      totals.all.bits())});
  }
  table.add({"file", fmt::format("GGUF version {}, {}, {} metadata entries, {} tensors",
                                 file.version(), humane_bytes(file.file_bytes()),
                                 grouped(file.metadata().size()), grouped(file.tensors().size()))});
  table.add({"data", fmt::format("from byte {}, aligned to {}", grouped(file.data_offset()),
                                 grouped(file.alignment()))});
  table.render(out);
}

void render_tensors(const GgufFile& file, const Totals& totals, std::string& out) {
  out += "\nTensors\n";
  Table tensors("lllrr");
  tensors.add({"name", "shape", "format", "offset", "bytes"});
  for (const GgufTensor& tensor : file.tensors()) {
    tensors.add({printable(tensor.name), fmt::format("{}", fmt::join(tensor.dims, " x ")),
                 std::string(tensor.format->name), grouped(tensor.offset), grouped(tensor.bytes)});
  }
  tensors.render(out);
  out += "\nFormats\n";
  Table formats("lrrrr");
  formats.add({"format", "tensors", "elements", "bytes", "bits per weight"});
  const auto row = [&](const FormatTotal& total) {
    formats.add({total.name(), grouped(total.tensors), grouped(total.elements),
                 humane_bytes(total.bytes), fmt::format("{:.2f}", total.bits())});
  };
  for (const FormatTotal& total : totals.formats) row(total);
  if (totals.formats.size() > 1) row(totals.all);
  formats.render(out);
}

// ---- JSON

Json json_number(double value, MetadataType type) {
  // Through its shortest digits, so that an f32 does not show the digits of a double.
  return type == MetadataType::f32 ? std::strtod(digits(value, type).c_str(), nullptr) : value;
}

template <typename T>
Json json_element(const T& value, MetadataType type) {
  if constexpr (std::is_same_v<T, std::string>) {
    return sanitize_utf8(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return json_number(value, type);
  } else {
    if (type == MetadataType::boolean) return value != 0;
    return value;
  }
}

Json json_value(const MetadataValue& value) {
  Json out;
  out["type"] = name_of(value.type);
  std::visit(
      [&]<typename T>(const T& stored) {
        if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>) {
          out["value"] = json_element(stored, value.type);
        } else {
          out["element"] = name_of(value.element);
          out["count"] = stored.size();
          Json& elements = out[stored.size() > kJsonArray ? "first" : "value"] = Json::array();
          for (std::size_t i = 0; i < std::min(stored.size(), kJsonArray); ++i) {
            elements.push_back(json_element(stored[i], value.element));
          }
        }
      },
      value.value);
  return out;
}

Json json_total(const FormatTotal& total) {
  return {{"format", total.name()},
          {"tensors", total.tensors},
          {"elements", total.elements},
          {"bytes", total.bytes},
          {"bits_per_weight", total.bits()}};
}

}  // namespace

std::string inspect_text(const GgufFile& file) {
  const Totals totals = totals_of(file);
  std::string out;
  render_summary(file, totals, out);
  if (!file.metadata().empty()) {
    out += "\nMetadata\n";
    Table table("lll");
    for (const MetadataEntry& entry : file.metadata()) {
      Described described = describe(entry.value);
      table.add({printable(entry.key), std::move(described.type), std::move(described.value)});
    }
    table.render(out);
  }
  if (!file.tensors().empty()) render_tensors(file, totals, out);
  return out;
}

Json inspect_json(const GgufFile& file) {
  const Totals totals = totals_of(file);
  Json out;
  out["file"] = sanitize_utf8(file.path().string());
  out["version"] = file.version();
  out["file_bytes"] = file.file_bytes();
  out["alignment"] = file.alignment();
  out["data_offset"] = file.data_offset();
  out["architecture"] = sanitize_utf8(text_of(file, "general.architecture"));
  out["name"] = sanitize_utf8(text_of(file, "general.name"));
  out["parameters"] = totals.all.elements;
  out["tensor_bytes"] = totals.all.bytes;
  out["bits_per_weight"] = totals.all.bits();
  // Appended without the search for an equal key that operator[] makes for each: keys are unique.
  Json metadata = Json::object();
  auto& entries = metadata.get_ref<Json::object_t&>();
  for (const MetadataEntry& entry : file.metadata()) {
    entries.emplace_back(sanitize_utf8(entry.key), json_value(entry.value));
  }
  out["metadata"] = std::move(metadata);
  out["tensors"] = Json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    out["tensors"].push_back({{"name", sanitize_utf8(tensor.name)},
                              {"shape", tensor.dims},
                              {"format", tensor.format->name},
                              {"elements", tensor.elements},
                              {"offset", tensor.offset},
                              {"bytes", tensor.bytes}});
  }
  out["formats"] = Json::array();
  for (const FormatTotal& total : totals.formats) out["formats"].push_back(json_total(total));
  return out;
}

}  // namespace lockstep::cli
