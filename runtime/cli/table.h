// Tables of text for people.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

// Rows of cells as aligned columns, two blanks apart, without blanks at the end of a line.
class Table {
 public:
  // One letter per column: 'l' or 'r', the side it is aligned to.
  explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  void render(std::string& out) const {
    std::vector<std::size_t> widths(alignment_.size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i + 1 < row.size() || (i < row.size() && alignment_[i] == 'r'); ++i) {
        widths[i] = std::max(widths[i], std::min(width_of(row[i]), kWidest));
      }
    }
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string pad(widths[i] - std::min(widths[i], width_of(row[i])), ' ');
        line.append(2, ' ').append(alignment_[i] == 'r' ? pad + row[i] : row[i] + pad);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
  }

 private:
  static constexpr std::size_t kWidest = 64;

  // Characters; wide ones count as one, which only shifts the rest of their line.
  static std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
  }

  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep::cli
