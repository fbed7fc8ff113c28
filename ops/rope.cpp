// Rotary position embedding, as two ops: the angles of a step are the same for all layers, queries
// and keys, so their cosines and sines are made once and every rotation reads them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <vector>

#include "ops/check.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

constexpr double kPi = std::numbers::pi;

// Radians for a step of one position, by pair.
std::vector<double> frequencies_of(const RopeParams& params) {
  const auto dims = static_cast<double>(params.rotary_dims);
  const RopeParams::Yarn& yarn = params.yarn;
  // The pair that turns `turns` times within the original context.
  const auto pair_of = [&](double turns) {
    return dims * std::log(static_cast<double>(yarn.original_context) / (turns * 2.0 * kPi)) /
           (2.0 * std::log(params.base));
  };
  const double first = std::max(0.0, std::floor(pair_of(yarn.fast)));
  const double last = std::min(dims - 1.0, std::ceil(pair_of(yarn.slow)));
  std::vector<double> frequencies;
  for (std::size_t p = 0; p < params.rotary_dims / 2; ++p) {
    const double exponent = static_cast<double>(2 * p) / dims;
    const double factor =
        params.frequency_factors.empty() ? 1.0 : static_cast<double>(params.frequency_factors[p]);
    const double full = std::pow(params.base, -exponent) / factor;
    double frequency = params.position_scale * full;
    if (yarn.original_context != 0) {
      const double along = (static_cast<double>(p) - first) / std::max(0.001, last - first);
      const double kept = (1.0 - std::clamp(along, 0.0, 1.0)) * yarn.extrapolation;
      frequency = frequency * (1.0 - kept) + full * kept;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

class RopeAngles final : public Op {
 public:
  RopeAngles(std::size_t tokens, const RopeParams& params)
      : tokens_(tokens), frequencies_(frequencies_of(params)) {
    if (params.yarn.original_context != 0) magnitude_ = params.yarn.magnitude;
  }

  std::string_view name() const noexcept override { return "rope_angles"; }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& positions = inputs[0];
    if (positions.dtype != DType::i32 || positions.shape.rank() != 1) {
      shape_error("rope_angles", "positions", positions, "i32 [tokens]");
    }
    return {DType::f32, {positions.shape[0], 2 * frequencies_.size()}};
  }

  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_rows(tokens_);
  }
  bool accepts(const Partition& other) const override { return is_rows(other, tokens_); }
  bool replicable() const noexcept override { return true; }
  Reach reach(std::size_t) const override { return Reach::all; }

  void run(const Io& io) const noexcept override {
    const auto* positions = io.inputs[0].row<const std::int32_t>(0);
    const std::size_t pairs = frequencies_.size();
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      float* const cosines = io.output.row<float>(i);
      float* const sines = cosines + pairs;
      for (std::size_t p = 0; p < pairs; ++p) {
        const double angle = static_cast<double>(positions[i]) * frequencies_[p];
        cosines[p] = static_cast<float>(std::cos(angle) * magnitude_);
        sines[p] = static_cast<float>(std::sin(angle) * magnitude_);
      }
    }
  }

 private:
  std::size_t tokens_;
  std::vector<double> frequencies_;
  double magnitude_ = 1.0;
};

class Rope final : public Op {
 public:
  Rope(const Shape& x, const RopeParams& params)
      : rows_(x.rows()),
        columns_(x.columns()),
        head_dim_(params.head_dim),
        pairs_(params.rotary_dims / 2),
        pairing_(params.pairing) {}

  std::string_view name() const noexcept override { return "rope"; }
  std::string detail() const override {
    return pairing_ == RopePairing::adjacent ? "adjacent" : "halves";
  }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    expect_matrix("rope", "x", x, DType::f32);
    if (x.shape.columns() % head_dim_ != 0) {
      shape_error("rope", "x", x, "columns in whole heads of " + std::to_string(head_dim_));
    }
    expect_type("rope", "angles", inputs[1], {DType::f32, {x.shape[0], 2 * pairs_}});
    return x;
  }

  // A pair never leaves its head, so any cut between heads will do.
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_columns(columns_, head_dim_);
  }
  bool accepts(const Partition& other) const override {
    return is_rows(other, rows_) || is_columns(other, columns_, head_dim_);
  }
  Reach reach(std::size_t input) const override { return input == 0 ? Reach::own : Reach::all; }

  void run(const Io& io) const noexcept override {
    const Region mine = region(io);
    for (std::size_t i = mine.rows.begin; i < mine.rows.end; ++i) {
      const float* const angles = io.inputs[1].row<const float>(i);
      for (std::size_t j = mine.columns.begin; j < mine.columns.end; j += head_dim_) {
        rotate(io.inputs[0].row<const float>(i) + j, angles, angles + pairs_,
               io.output.row<float>(i) + j);
      }
    }
  }

 private:
  // One head. Compiled once for all instruction sets: the bits cannot differ between them.
  void rotate(const float* x, const float* cosines, const float* sines, float* y) const noexcept {
    const bool adjacent = pairing_ == RopePairing::adjacent;
    const std::size_t step = adjacent ? 2 : 1;
    const std::size_t apart = adjacent ? 1 : pairs_;
    for (std::size_t p = 0; p < pairs_; ++p) {
      const float first = x[p * step];
      const float second = x[p * step + apart];
      y[p * step] = first * cosines[p] - second * sines[p];
      y[p * step + apart] = first * sines[p] + second * cosines[p];
    }
    std::memcpy(y + 2 * pairs_, x + 2 * pairs_, (head_dim_ - 2 * pairs_) * sizeof(float));
  }

  std::size_t rows_;
  std::size_t columns_;
  std::size_t head_dim_;
  std::size_t pairs_;
  RopePairing pairing_;
};

void check_params(std::string_view op, const RopeParams& params) {
  const std::size_t dims = params.rotary_dims;
  if (dims == 0 || dims > params.head_dim || dims % 2 != 0) {
    throw ShapeError(std::string(op) + ": " + std::to_string(dims) +
                     " rotary dimensions in heads of " + std::to_string(params.head_dim) +
                     ", expected an even number from 2 to the head's");
  }
  const std::size_t factors = params.frequency_factors.size();
  if (factors != 0 && factors != dims / 2) {
    throw ShapeError(std::string(op) + ": " + std::to_string(factors) +
                     " frequency factors, expected " + std::to_string(dims / 2));
  }
}

}  // namespace

double yarn_magnitude(double position_scale) noexcept {
  return position_scale < 1.0 ? 1.0 - 0.1 * std::log(position_scale) : 1.0;
}

std::vector<float> llama3_frequency_factors(std::size_t rotary_dims, double base, double factor,
                                            double low, double high, std::size_t original_context) {
  std::vector<float> factors;
  for (std::size_t p = 0; p < rotary_dims / 2; ++p) {
    const double exponent = static_cast<double>(2 * p) / static_cast<double>(rotary_dims);
    const double turns =
        static_cast<double>(original_context) / (2.0 * kPi * std::pow(base, exponent));
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1.0 / ((1.0 - kept) / factor + kept)));
  }
  return factors;
}

Value rope_angles(Graph& graph, Value positions, const RopeParams& params) {
  check_params("rope_angles", params);
  const std::size_t tokens = graph.type(positions).shape.elements();
  return graph.add(std::make_unique<RopeAngles>(tokens, params), {positions});
}

Value rope(Graph& graph, Value x, Value angles, const RopeParams& params) {
  check_params("rope", params);
  return graph.add(std::make_unique<Rope>(graph.type(x).shape, params), {x, angles});
}

}  // namespace lockstep::ops
