// Dates as C's strftime writes them in the C locale. The date is the job's, never the clock's: what
// a template writes must not depend on the day.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::jinja {

// Of the Gregorian calendar, at midnight.
struct Date {
  int year = 1970;  // 1000 .. 9999
  int month = 1;    // 1 .. 12
  int day = 1;
};

// "2025-01-31"; nothing for anything else, such as a day that does not exist.
std::optional<Date> parse_date(std::string_view text);

// Nothing if the format has a directive that is not known; `unknown` is that directive's letter.
std::optional<std::string> format_date(const Date& date, std::string_view format, char& unknown);

}  // namespace lockstep::jinja
