// See strftime.h.
#include "runtime/chat/jinja/strftime.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace lockstep::jinja {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};

bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int days_in(int year, int month) {
  constexpr std::array<int, 12> kLengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kLengths[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

// 1 for the first of January.
int day_of_year(const Date& date) {
  int days = date.day;
  for (int month = 1; month < date.month; ++month) days += days_in(date.year, month);
  return days;
}

// 0 for Sunday.
int day_of_week(const Date& date) {
  const int past = date.year - 1;
  const int days = past * 365 + past / 4 - past / 100 + past / 400 + day_of_year(date);
  return days % 7;  // the first day of year 1 was a Monday
}

// The week by ISO 8601 and the year it belongs to.
struct IsoWeek {
  int year, week;
};
IsoWeek iso_week(const Date& date) {
  const int weekday = (day_of_week(date) + 6) % 7;  // 0 for Monday
  const int week = (day_of_year(date) - weekday + 9) / 7;
  const auto weeks_of = [](int year) {
    const int last = day_of_week({year, 12, 31});
    const int first = day_of_week({year, 1, 1});
    return first == 4 || last == 4 ? 53 : 52;
  };
  if (week < 1) return {date.year - 1, weeks_of(date.year - 1)};
  if (week > weeks_of(date.year)) return {date.year + 1, 1};
  return {date.year, week};
}

// What is the same on every day, at midnight and without a time zone; null for other letters.
const char* fixed(char letter) {
  switch (letter) {
    case 'H':
    case 'M':
    case 'S':
      return "00";
    case 'I':
      return "12";
    case 'f':
      return "000000";
    case 'p':
      return "AM";
    case 'z':
    case 'Z':
      return "";
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return nullptr;
  }
}

std::optional<std::string> directive(const Date& date, char letter) {
  if (const char* text = fixed(letter)) return std::string(text);
  const auto weekday = static_cast<std::size_t>(day_of_week(date));
  const auto month = static_cast<std::size_t>(date.month - 1);
  const int year_day = day_of_year(date);
  switch (letter) {
    case 'a':
      return std::string(kDays[weekday].substr(0, 3));
    case 'A':
      return std::string(kDays[weekday]);
    case 'b':
    case 'h':
      return std::string(kMonths[month].substr(0, 3));
    case 'B':
      return std::string(kMonths[month]);
    case 'C':
      return fmt::format("{:02}", date.year / 100);
    case 'd':
      return fmt::format("{:02}", date.day);
    case 'e':
      return fmt::format("{:2}", date.day);
    case 'm':
      return fmt::format("{:02}", date.month);
    case 'y':
      return fmt::format("{:02}", date.year % 100);
    case 'Y':
      return std::to_string(date.year);
    case 'j':
      return fmt::format("{:03}", year_day);
    case 'u':
      return std::to_string(weekday == 0 ? 7 : weekday);
    case 'w':
      return std::to_string(weekday);
    case 'U':
      return fmt::format("{:02}", (year_day + 6 - static_cast<int>(weekday)) / 7);
    case 'W':
      return fmt::format("{:02}", (year_day + 6 - (static_cast<int>(weekday) + 6) % 7) / 7);
    case 'V':
      return fmt::format("{:02}", iso_week(date).week);
    case 'G':
      return std::to_string(iso_week(date).year);
    default:
      return std::nullopt;
  }
}

// What a directive stands for that is made of others.
std::string_view composite(char letter) {
  switch (letter) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'R':
      return "%H:%M";
    case 'r':
      return "%I:%M:%S %p";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    default:
      return {};
  }
}

}  // namespace

std::optional<Date> parse_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t length, int& value) {
    const std::string_view digits = text.substr(at, length);
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return false;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return true;
  };
  Date date;
  if (!number(0, 4, date.year) || !number(5, 2, date.month) || !number(8, 2, date.day)) {
    return std::nullopt;
  }
  if (date.year < 1000 || date.month < 1 || date.month > 12 || date.day < 1) return std::nullopt;
  if (date.day > days_in(date.year, date.month)) return std::nullopt;
  return date;
}

std::optional<std::string> format_date(const Date& date, std::string_view format, char& unknown) {
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    if (++i == format.size()) {
      out += '%';  // C libraries write a lone one at the end as it is
      break;
    }
    // "%-d" is "%d" without the zeros or spaces in front, where the C library is glibc.
    const bool unpadded = format[i] == '-' && i + 1 < format.size();
    if (unpadded) ++i;
    const std::string_view parts = composite(format[i]);
    auto text = parts.empty() ? directive(date, format[i]) : format_date(date, parts, unknown);
    if (!text || (unpadded && !parts.empty())) {
      unknown = format[i];
      return std::nullopt;
    }
    if (unpadded && !text->empty()) {
      const std::size_t keep = text->find_first_not_of("0 ");
      text->erase(0, keep == std::string::npos ? text->size() - 1 : keep);
    }
    out += *text;
  }
  return out;
}

}  // namespace lockstep::jinja
