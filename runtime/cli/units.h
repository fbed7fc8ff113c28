// Numbers as people read them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace lockstep::cli {

// "1,234,567"
inline std::string grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

// Three significant digits up to thousands: "0.25", "3.10", "42.0", "310", "12345".
inline std::string short_number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 10 ? 1 : 2);
}

// "7 s", "3 min 20 s", "2 h 05 min": whole seconds, rounded up.
inline std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::min(std::ceil(seconds), 1e9));
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

// "637 MB in 0.21 s, 3.03 GB/s"
inline std::string humane_rate(std::uint64_t bytes, double seconds) {
  const auto amount = static_cast<double>(bytes);
  return fmt::format("{:.4g} MB in {:.2f} s, {:.2f} GB/s", amount / 1e6, seconds,
                     seconds > 0 ? amount / 1e9 / seconds : 0.0);
}

// Three significant digits and a unit: "512 B", "1.50 MiB", "98.6 GiB".
inline std::string humane_bytes(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

// "512", "3.41 M", "1.10 B": how model sizes are spoken of.
inline std::string humane_count(std::uint64_t count) {
  static constexpr const char* kUnits[] = {"k", "M", "B", "T"};
  if (count < 1000) return std::to_string(count);
  double value = static_cast<double>(count) / 1000;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace lockstep::cli
