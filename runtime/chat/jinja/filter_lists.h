// The parts of the table of filters. Internal to filters*.cpp.
#pragma once

#include <span>

#include "runtime/chat/jinja/filters.h"

namespace lockstep::jinja {

std::span<const NamedFilter> text_filters() noexcept;
std::span<const NamedFilter> number_filters() noexcept;
std::span<const NamedFilter> sequence_filters() noexcept;

}  // namespace lockstep::jinja
