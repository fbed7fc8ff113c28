// JSON as Python's json.dumps() writes it: separators, escapes and numbers to the byte, since a
// model was trained on exactly that text of its tools.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/chat/jinja/operators.h"
#include "runtime/chat/jinja/print.h"
#include "runtime/chat/jinja/unicode.h"

namespace lockstep::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Workspace& workspace, const JsonStyle& style) : workspace_(workspace), style_(style) {}

  void write(Value value) {
    workspace_.charge_steps();
    workspace_.check_text(out_.size());
    switch (value.kind()) {
      case Kind::none:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += value.boolean() ? "true" : "false";
        break;
      case Kind::integer:
        out_ += std::to_string(value.integer());
        break;
      case Kind::real:
        out_ += real(value.real());
        break;
      case Kind::string:
        string(value.text());
        break;
      case Kind::list:
      case Kind::tuple:
        list(value.sequence());
        break;
      case Kind::dict:
        dict(value.dict());
        break;
      default:
        workspace_.fail(fmt::format("{} cannot be written as JSON", describe(value)));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_text(value);
  }

  void escape(std::uint32_t unit) { out_ += fmt::format("\\u{:04x}", unit); }

  void character(char32_t c, std::string_view bytes) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\b':
        out_ += "\\b";
        return;
      case '\f':
        out_ += "\\f";
        return;
      default:
        break;
    }
    const auto code = static_cast<std::uint32_t>(c);
    if (code < 0x20 || (style_.ascii && code >= 0x7F && code < 0x10000)) {
      escape(code);
    } else if (style_.ascii && code >= 0x10000) {
      escape(0xD800 + ((code - 0x10000) >> 10));
      escape(0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
      out_ += bytes;
    }
  }

  void string(std::string_view text) {
    workspace_.charge_reading(text.size());
    workspace_.check_text(out_.size() + text.size());
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const char32_t c = next_character(text, at);
      character(c, text.substr(begin, at - begin));
    }
    out_ += '"';
  }

  void line() {
    if (!style_.indent) return;
    const std::size_t bytes = style_.indent->size() * static_cast<std::size_t>(level_);
    workspace_.check_text(out_.size() + bytes);
    workspace_.charge_reading(bytes);
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  void list(const Sequence& items) {
    if (items.items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < items.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      line();
      write(items.items[i]);
    }
    --level_;
    line();
    out_ += ']';
  }

  std::string key_text(Value key) {
    switch (key.kind()) {
      case Kind::string:
        return std::string(key.text());
      case Kind::boolean:
        return key.boolean() ? "true" : "false";
      case Kind::none:
        return "null";
      case Kind::integer:
        return std::to_string(key.integer());
      case Kind::real:
        return real(key.real());
      default:
        workspace_.fail(fmt::format("{} cannot be a key in JSON", describe(key)));
    }
  }

  void dict(const Dict& dict) {
    if (dict.entries.empty()) {
      out_ += "{}";
      return;
    }
    auto entries = dict.entries;
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        return is_less(workspace_, a.first, b.first);
      });
    }
    out_ += '{';
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      line();
      string(key_text(entries[i].first));
      out_ += style_.key_separator;
      write(entries[i].second);
    }
    --level_;
    line();
    out_ += '}';
  }

  Workspace& workspace_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

std::string to_json(Workspace& workspace, Value value, const JsonStyle& style) {
  JsonWriter writer(workspace, style);
  writer.write(value);
  return writer.take();
}

}  // namespace lockstep::jinja
