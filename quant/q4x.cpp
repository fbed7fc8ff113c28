// Learning is a few passes over a sample of at most 4096 groups; more groups do not lower the error
// of the whole tensor by a thousandth. Encoding is the search of q4x_search.h and the packing of
// its result.
#include "quant/q4x.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

namespace lockstep::quant::q4x {
namespace {

constexpr std::size_t kSample = 4096;  // groups
constexpr int kRounds = 8;             // with levels that are no integers yet
constexpr int kIntegerRounds = 3;
constexpr unsigned kMaxLearnedShift = 7;  // ten octaves of scales, down to the smallest

using Book = std::array<double, kLevels>;
using BookSet = std::array<Book, kBooks>;

Search find_search(Isa isa) noexcept {
#if defined(LOCKSTEP_HAS_AVX2)
  if (includes(isa, Isa::avx2)) return search_avx2;
#endif
  (void)isa;
  return search_scalar;
}

// Of a value in units of the base: twice what can be reached. Larger ones are cut off anyway, and
// their squares would hide the errors of all others.
float limit_of(const SearchTables& tables) noexcept {
  return 2 * kMaxLevel * tables.scale[kCodes - 1];
}

void set_scales(SearchTables& tables, unsigned shift) noexcept {
  for (unsigned code = 0; code < kCodes; ++code) {
    tables.scale[code] = f16_to_f32(static_cast<std::uint16_t>(code << shift));
  }
}

template <class Level>
void set_levels(SearchTables& tables, Level level) noexcept {
  for (std::size_t book = 0; book < kBooks; ++book) {
    for (std::size_t i = 0; i < kLevels; ++i) {
      tables.level[book][i] = static_cast<float>(level(book, i));
    }
    for (std::size_t i = 0; i + 1 < kLevels; ++i) {
      tables.threshold[book][i] = 0.5f * (tables.level[book][i] + tables.level[book][i + 1]);
    }
  }
}

// Four shapes to start from, over u = -1 .. 1: even; denser in the middle; denser in the middle and
// off it to one side, once a little and once more. Mirrored shapes come with the sign of a scale.
BookSet first_books() noexcept {
  constexpr double kCubic[kBooks] = {0.1, 0.55, 0.3, 0.3};
  constexpr double kSkew[kBooks] = {0.0, 0.0, 0.06, 0.16};
  BookSet books{};
  for (std::size_t book = 0; book < kBooks; ++book) {
    for (std::size_t i = 0; i < kLevels; ++i) {
      const double u = (static_cast<double>(i) - 7.5) / 7.5;
      const double shape = u * (1 - kCubic[book] + kCubic[book] * u * u);
      books[book][i] = kMaxLevel * (shape + kSkew[book] * (1 - u * u));
    }
  }
  return books;
}

// The sample in units of the base, and the choices of the round.
struct Round {
  std::vector<float> values;
  const std::vector<float>& weights;
  std::vector<Choice> choices;
  Search search;

  double run(const SearchTables& tables) {
    search(tables, values.data(), weights.data(), choices.size(), choices.data());
    double error = 0;
    for (const Choice& choice : choices) error += static_cast<double>(choice.error);
    return error;
  }
};

// Moves every level to where the weighted squared error of its values is least.
void move_levels(const Round& round, BookSet& books) noexcept {
  std::array<std::array<double, kLevels>, kBooks> sum{};
  std::array<std::array<double, kLevels>, kBooks> weight{};
  for (std::size_t g = 0; g < round.choices.size(); ++g) {
    const Choice& choice = round.choices[g];
    if (choice.code == 0) continue;
    const double scale = static_cast<double>(choice.scale);
    for (std::size_t i = 0; i < kGroup; ++i) {
      const auto at = static_cast<std::size_t>(choice.index[i]);
      const double factor = scale * static_cast<double>(round.weights[g * kGroup + i]);
      sum[choice.book][at] += factor * static_cast<double>(round.values[g * kGroup + i]);
      weight[choice.book][at] += factor * scale;
    }
  }
  for (std::size_t book = 0; book < kBooks; ++book) {
    for (std::size_t i = 0; i < kLevels; ++i) {
      // Not where too little weighs to divide by: the level keeps its place.
      const double moved = sum[book][i] / weight[book][i];
      if (weight[book][i] > 0 && std::isfinite(moved)) books[book][i] = moved;
    }
    std::sort(books[book].begin(), books[book].end());
  }
}

// Stretches every codebook to the full range of levels: its groups take smaller scales in turn.
void stretch(BookSet& books) noexcept {
  for (Book& book : books) {
    const double reach = std::max(std::fabs(book.front()), std::fabs(book.back()));
    if (!(reach > 0)) continue;
    for (double& level : book) level *= kMaxLevel / reach;
  }
}

void round_to_integers(BookSet& books) noexcept {
  for (Book& book : books) {
    for (double& level : book) {
      level = std::clamp(std::nearbyint(level), -double{kMaxLevel}, double{kMaxLevel});
    }
  }
}

// A base with which the largest code reaches `largest`.
float base_for(float largest, unsigned shift) noexcept {
  const float top = f16_to_f32(static_cast<std::uint16_t>((kCodes - 1) << shift));
  const float base = largest / (kMaxLevel * top);
  if (!(base >= 1e-30f)) return 1e-30f;  // of values that are as good as zero
  return std::min(base, FLT_MAX);
}

// What is being learned, and the sample in units of its base.
class Lesson {
 public:
  Lesson(float largest, const std::vector<float>& values, const std::vector<float>& weights,
         Search search)
      : largest_(largest), values_(values), round_{{}, weights, {}, search} {
    round_.values.resize(values.size());
    round_.choices.resize(values.size() / kGroup);
    set_shift(kMinShift + 1);
  }

  void set_shift(unsigned shift) {
    shift_ = shift;
    base_ = base_for(largest_, shift);
    set_scales(tables_, shift);
    const float limit = limit_of(tables_);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      round_.values[i] = std::clamp(values_[i] / base_, -limit, limit);
    }
  }
  // Lets the groups choose; the error of the sample, in its own units.
  double choose() {
    set_levels(tables_, [this](std::size_t book, std::size_t i) { return books_[book][i]; });
    return round_.run(tables_) * static_cast<double>(base_) * static_cast<double>(base_);
  }
  void improve() {
    choose();
    move_levels(round_, books_);
  }
  BookSet& books() noexcept { return books_; }
  void write(std::byte* side) const noexcept {
    std::memset(side, 0, kSideBytes);
    for (std::size_t book = 0; book < kBooks; ++book) {
      for (std::size_t i = 0; i < kLevels; ++i) {
        side[book * kLevels + i] = static_cast<std::byte>(static_cast<int>(books_[book][i]));
      }
    }
    store_field(side + kBase, base_);
    side[kShift] = static_cast<std::byte>(shift_);
  }

 private:
  float largest_;
  const std::vector<float>& values_;
  Round round_;
  BookSet books_ = first_books();
  SearchTables tables_{};
  unsigned shift_ = 0;
  float base_ = 0;
};

// One block; `values` in units of the base, `bad[j]`: group j cannot be encoded.
void store_block(const std::array<Choice, kGroups>& choices, const std::array<bool, kGroups>& bad,
                 std::byte* block) noexcept {
  std::memset(block, 0, kBytes);
  for (std::size_t j = 0; j < kGroups; ++j) {
    const Choice& choice = choices[j];
    if (bad[j]) {
      block[j] = static_cast<std::byte>(kBadScale);
      continue;
    }
    if (choice.code == 0) continue;
    block[j] = static_cast<std::byte>(choice.code | choice.sign << 6 | (choice.book & 1) << 7);
    block[kBooksHigh] |= static_cast<std::byte>(choice.book >> 1 << j);
    for (std::size_t i = 0; i < kGroup / 2; ++i) {
      block[kQuants + j * kGroup / 2 + i] =
          static_cast<std::byte>(choice.index[i] | choice.index[i + kGroup / 2] << 4);
    }
  }
}

void encode(Search search, const std::byte* side, const float* values, const float* importance,
            std::byte* blocks, std::size_t n) noexcept {
  SearchTables tables{};
  set_scales(tables, byte_at(side, kShift));
  set_levels(tables, [side](std::size_t book, std::size_t i) {
    return level(side, book, static_cast<unsigned>(i));
  });
  const float base = load_field<float>(side + kBase);
  const float limit = limit_of(tables);
  std::array<float, kValues> scaled{};
  std::array<float, kValues> weights{};
  weights.fill(1.0f);
  std::array<Choice, kGroups> choices{};
  std::array<bool, kGroups> bad{};
  for (std::size_t at = 0; at + kValues <= n; at += kValues, blocks += kBytes) {
    bad.fill(false);
    for (std::size_t i = 0; i < kValues; ++i) {
      const float value = values[at + i];
      const bool finite = std::isfinite(value);
      bad[i / kGroup] = bad[i / kGroup] || !finite;
      scaled[i] = finite ? std::clamp(value / base, -limit, limit) : 0.0f;
      if (importance != nullptr) weights[i] = importance[at + i];
    }
    search(tables, scaled.data(), weights.data(), kGroups, choices.data());
    store_block(choices, bad, blocks);
  }
}

void encode_scalar(const std::byte* side, const float* values, const float* importance,
                   std::byte* blocks, std::size_t n) noexcept {
  encode(search_scalar, side, values, importance, blocks, n);
}

#if defined(LOCKSTEP_HAS_AVX2)
void encode_avx2(const std::byte* side, const float* values, const float* importance,
                 std::byte* blocks, std::size_t n) noexcept {
  encode(search_avx2, side, values, importance, blocks, n);
}
#endif

}  // namespace

SideEncoder find_encoder(Isa isa) noexcept {
#if defined(LOCKSTEP_HAS_AVX2)
  if (includes(isa, Isa::avx2)) return encode_avx2;
#endif
  (void)isa;
  return encode_scalar;
}

Learner::Learner(std::size_t rows, std::size_t columns)
    : columns_(columns),
      groups_(rows * (columns / kGroup)),
      sampled_(std::min(groups_, kSample)),
      values_(sampled_ * kGroup),
      weights_(sampled_ * kGroup) {}

// Sample i is group floor(i * groups / sampled): evenly spread, known without having seen the rest.
void Learner::take(std::size_t first_row, std::size_t count, const float* values,
                   const float* importance) {
  const std::size_t begin = first_row * (columns_ / kGroup);
  const std::size_t end = begin + count * (columns_ / kGroup);
  for (std::size_t i = 0; i < count * columns_; ++i) {
    const float size = std::fabs(values[i]);
    if (size > largest_ && size <= FLT_MAX) largest_ = size;
  }
  // The first sample at or after `begin`.
  std::size_t sample = groups_ == 0 ? 0 : (begin * sampled_ + groups_ - 1) / groups_;
  for (; sample < sampled_ && sample * groups_ / sampled_ < end; ++sample) {
    const std::size_t from = (sample * groups_ / sampled_ - begin) * kGroup;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const float value = values[from + i];
      values_[sample * kGroup + i] = std::isfinite(value) ? value : 0.0f;
      weights_[sample * kGroup + i] =
          importance == nullptr ? 1.0f : importance[(from + i) % columns_];
    }
  }
}

void Learner::merge(const SideLearner& learner) {
  const auto& other = static_cast<const Learner&>(learner);
  largest_ = std::max(largest_, other.largest_);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    values_[i] += other.values_[i];  // zero in the one that did not take it
    weights_[i] += other.weights_[i];
  }
}

void Learner::learn(Isa isa, std::byte* side) const {
  Lesson lesson(largest_, values_, weights_, find_search(isa));
  for (int i = 0; i < kRounds; ++i) {
    lesson.improve();
    stretch(lesson.books());
  }
  // The split of the scale code, best for levels that are nearly what they will be.
  unsigned best = kMinShift;
  double least = 0;
  for (unsigned shift = kMinShift; shift <= kMaxLearnedShift; ++shift) {
    lesson.set_shift(shift);
    const double error = lesson.choose();
    if (shift == kMinShift || error < least) {
      best = shift;
      least = error;
    }
  }
  lesson.set_shift(best);
  for (int i = 0; i < kIntegerRounds; ++i) {
    lesson.improve();
    if (i == 0) stretch(lesson.books());
    round_to_integers(lesson.books());
  }
  lesson.write(side);
}

}  // namespace lockstep::quant::q4x
