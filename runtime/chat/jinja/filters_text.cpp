// Filters that give text.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/chat/jinja/filter_lists.h"
#include "runtime/chat/jinja/formatting.h"
#include "runtime/chat/jinja/print.h"
#include "runtime/chat/jinja/text.h"
#include "runtime/chat/jinja/unicode.h"

namespace lockstep::jinja {

Value as_string(Workspace& workspace, Value value) {
  if (value.is(Kind::string)) return value;
  return workspace.text(to_text(workspace, value));
}

Value without_case(Workspace& workspace, Value value) {
  if (!value.is(Kind::string)) return value;
  auto text = lower(value.text());
  if (!text) workspace.unsupported("the lower case of characters without a simple one");
  return workspace.text(std::move(*text));
}

namespace {

// The value as plain text. What is done to escaped text would have to keep its mark.
Value plain_text(Workspace& workspace, Value value, std::string_view filter) {
  const Value text = as_string(workspace, value);
  if (text.string().markup) {
    workspace.unsupported(fmt::format("the filter '{}' on escaped text", filter));
  }
  workspace.charge_reading(text.text().size());
  return text;
}

Value cased(Workspace& workspace, Value value, std::string_view filter,
            std::optional<std::string> (*map)(std::string_view)) {
  auto text = map(plain_text(workspace, value, filter).text());
  if (!text) {
    workspace.unsupported(
        fmt::format("the filter '{}' on characters without a simple other case", filter));
  }
  return workspace.text(std::move(*text));
}

Value filter_upper(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'upper'", arguments, {});
  return cased(workspace, value, "upper", upper);
}

Value filter_lower(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'lower'", arguments, {});
  return cased(workspace, value, "lower", lower);
}

Value filter_capitalize(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'capitalize'", arguments, {});
  return cased(workspace, value, "capitalize", capitalize);
}

Value filter_title(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'title'", arguments, {});
  return cased(workspace, value, "title", title_words);
}

Value filter_trim(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'trim'", arguments, {"chars"});
  const Value text = as_string(workspace, value);
  const auto characters = bound.optional_text(0);
  workspace.charge_reading(text.text().size() + characters.value_or("").size());
  const std::string_view trimmed = strip(text.text(), characters, Side::both);
  return workspace.text(std::string(trimmed), text.string().markup);
}

Value filter_string(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'string'", arguments, {});
  return as_string(workspace, value);
}

Value filter_safe(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'safe'", arguments, {});
  return workspace.text(to_text(workspace, value), true);
}

Value filter_escape(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound none(workspace, "the filter 'escape'", arguments, {});
  if (value.is(Kind::string) && value.string().markup) return value;
  return workspace.text(escape_html(to_text(workspace, value)), true);
}

Value filter_replace(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'replace'", arguments, {"old", "new", "count"}, 2);
  const Value text = as_string(workspace, value);
  const Value old = as_string(workspace, bound.get(0));
  const Value with = as_string(workspace, bound.get(1));
  const std::int64_t limit = bound.get(2).is(Kind::none) ? -1 : bound.integer(2, -1);
  workspace.charge_reading(text.text().size() + old.text().size());
  std::uint64_t places = count_parts(text.text(), old.text());
  if (limit >= 0) places = std::min(places, static_cast<std::uint64_t>(limit));
  workspace.check_text(text.text().size() + places * with.text().size());
  return workspace.text(replace(text.text(), old.text(), with.text(), limit));
}

Value filter_center(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'center'", arguments, {"width"});
  const Value text = plain_text(workspace, value, "center");
  const auto length = static_cast<std::int64_t>(text.string().length);
  const std::int64_t width = bound.integer(0, 80);
  if (width <= length) return text;
  workspace.check_text(static_cast<std::uint64_t>(width));
  const std::int64_t pad = width - length;
  // Python puts the odd space on the left if the width is odd.
  const std::int64_t left = pad / 2 + (pad & width & 1);
  return workspace.text(std::string(static_cast<std::size_t>(left), ' ') + text.string().text +
                        std::string(static_cast<std::size_t>(pad - left), ' '));
}

Value filter_indent(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'indent'", arguments, {"width", "first", "blank"});
  if (!value.is(Kind::string)) {
    workspace.fail(fmt::format("the filter 'indent' on {}", describe(value)));
  }
  const Value text = plain_text(workspace, value, "indent");
  std::string by;
  if (bound.has(0) && bound.get(0).is(Kind::string)) {
    by = bound.text(0, {});
  } else {
    const std::int64_t width = bound.integer(0, 4);
    workspace.check_text(width < 0 ? 0 : static_cast<std::uint64_t>(width));
    by.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  const bool blank = bound.truth(2, false);
  const std::string source = text.string().text + "\n";
  const std::vector<std::string_view> lines = split_lines(workspace, source, false);
  workspace.check_text(source.size() + lines.size() * std::uint64_t{by.size()});
  std::string out = bound.truth(1, false) ? by : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (blank || !lines[i].empty())) out += by;
    out += lines[i];
  }
  return workspace.text(std::move(out));
}

Value filter_format(Workspace& workspace, Value value, const Arguments& arguments) {
  const Value format = as_string(workspace, value);
  if (arguments.named.empty()) {
    return format_percent(workspace, format, workspace.tuple(arguments.positional));
  }
  if (!arguments.positional.empty()) {
    workspace.fail("the filter 'format' takes positions or names, not both");
  }
  auto values = std::make_unique<Dict>();
  for (const auto& [name, entry] : arguments.named) {
    workspace.set(*values, workspace.text(std::string(name)), entry);
  }
  return format_percent(workspace, format, workspace.dict(std::move(values)));
}

Value filter_tojson(Workspace& workspace, Value value, const Arguments& arguments) {
  const Bound bound(workspace, "the filter 'tojson'", arguments,
                    {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = bound.truth(0, false);
  style.sort_keys = bound.truth(3, false);
  if (const Value indent = bound.get(1); indent.is(Kind::string)) {
    style.indent = indent.string().text;
  } else if (!indent.is(Kind::none)) {
    const std::int64_t width = std::max<std::int64_t>(bound.integer(1, 0), 0);
    workspace.check_text(static_cast<std::uint64_t>(width));
    style.indent = std::string(static_cast<std::size_t>(width), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (const Value separators = bound.get(2); !separators.is(Kind::none)) {
    const bool pair = (separators.is(Kind::tuple) || separators.is(Kind::list)) &&
                      separators.sequence().items.size() == 2 &&
                      separators.sequence().items[0].is(Kind::string) &&
                      separators.sequence().items[1].is(Kind::string);
    if (!pair) workspace.fail("the filter 'tojson' takes two strings as 'separators'");
    style.item_separator = separators.sequence().items[0].text();
    style.key_separator = separators.sequence().items[1].text();
  }
  return workspace.text(to_json(workspace, value, style));
}

}  // namespace

std::span<const NamedFilter> text_filters() noexcept {
  static constexpr NamedFilter kFilters[] = {
      {"capitalize", filter_capitalize},
      {"center", filter_center},
      {"e", filter_escape},
      {"escape", filter_escape},
      {"format", filter_format},
      {"indent", filter_indent},
      {"lower", filter_lower},
      {"replace", filter_replace},
      {"safe", filter_safe},
      {"string", filter_string},
      {"title", filter_title},
      {"tojson", filter_tojson},
      {"trim", filter_trim},
      {"upper", filter_upper},
  };
  return kFilters;
}

}  // namespace lockstep::jinja
