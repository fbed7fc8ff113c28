// The tables of filters; their functions are in filters_*.cpp by what they work on.
#include "runtime/chat/jinja/filters.h"

#include <algorithm>
#include <iterator>

#include "runtime/chat/jinja/filter_lists.h"

namespace lockstep::jinja {
namespace {

constexpr std::string_view kOtherJinjaFilters[] = {
    "attr",      "filesizeformat", "forceescape", "groupby", "pprint",   "random",
    "striptags", "truncate",       "urlencode",   "urlize",  "wordwrap", "xmlattr"};

Filter find_in(std::span<const NamedFilter> filters, std::string_view name) noexcept {
  const auto at = std::find_if(filters.begin(), filters.end(),
                               [&](const NamedFilter& filter) { return filter.name == name; });
  return at == filters.end() ? nullptr : at->function;
}

}  // namespace

Filter find_filter(std::string_view name) noexcept {
  for (const auto filters : {text_filters(), number_filters(), sequence_filters()}) {
    if (const Filter filter = find_in(filters, name)) return filter;
  }
  return nullptr;
}

bool is_other_jinja_filter(std::string_view name) noexcept {
  return std::find(std::begin(kOtherJinjaFilters), std::end(kOtherJinjaFilters), name) !=
         std::end(kOtherJinjaFilters);
}

}  // namespace lockstep::jinja
