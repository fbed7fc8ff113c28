// y = x W^T where every token chooses its matrices. Rows that chose the same expert are multiplied
// together: they are gathered, and what comes out is scattered. A kernel gives a token the same
// bits in any company, so the grouping does not show.
#include <algorithm>
#include <cstring>
#include <memory>

#include "ops/check.h"
#include "ops/multiply.h"
#include "ops/ops.h"
#include "ops/region.h"

namespace lockstep::ops {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t align_up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

class ExpertMatmul final : public Op {
 public:
  ExpertMatmul(std::span<const ShardedMatrix> experts, const Shape& ids)
      : experts_(experts), tokens_(ids.rows()), used_(ids.columns()) {}

  std::string_view name() const noexcept override { return "expert_matmul"; }
  std::string detail() const override {
    return experts_[0].name + " " + std::string(experts_[0].kernel->name) + ", " +
           std::to_string(used_) + " of " + std::to_string(experts_.size()) + " experts";
  }

  TensorType infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    const DType dtype = activation_dtype(experts_[0]);
    const bool each = x.shape == Shape{tokens_, used_, experts_[0].columns};
    if (x.dtype != dtype || !(each || x.shape == Shape{tokens_, experts_[0].columns})) {
      const std::string columns = std::to_string(experts_[0].columns) + "]";
      const std::string tokens = "[" + std::to_string(tokens_) + ", ";
      shape_error("expert_matmul", "x", x,
                  std::string(name_of(dtype)) + " " + tokens + columns + " or " + tokens +
                      std::to_string(used_) + ", " + columns + " for " + experts_[0].name);
    }
    return {DType::f32, {tokens_, used_, experts_[0].rows}};
  }
  Partition partition(std::span<const TensorType>, const TensorType&) const override {
    return by_columns(experts_[0].rows, experts_[0].align);
  }
  bool accepts(const Partition& other) const override {
    return is_columns(other, experts_[0].rows, experts_[0].kernel->panel_rows);
  }
  Reach reach(std::size_t) const override { return Reach::all; }
  std::size_t scratch_bytes(std::span<const TensorType> inputs, const TensorType& output,
                            unsigned) const override {
    return Scratch(*this, inputs[0], output).bytes;
  }
  // At most: tokens may agree.
  std::size_t weight_bytes() const noexcept override {
    return std::min(experts_.size(), tokens_ * used_) * experts_[0].bytes();
  }

  void run(const Io& io) const noexcept override {
    const Scratch scratch(*this, io.inputs[0].type, io.output.type);
    auto* const firsts = reinterpret_cast<std::uint32_t*>(io.scratch);
    auto* const order = reinterpret_cast<std::uint32_t*>(io.scratch + scratch.order);
    sort_by_expert(io.inputs[1], firsts, order);
    for (std::size_t e = 0; e < experts_.size(); ++e) {
      for (std::size_t at = firsts[e]; at < firsts[e + 1]; at += kGroup) {
        const std::size_t count = std::min<std::size_t>(kGroup, firsts[e + 1] - at);
        multiply_group(io, scratch, experts_[e], {order + at, count});
      }
    }
  }

 private:
  // Rows that are gathered at once: as many as share the unpacking of a panel well.
  static constexpr std::size_t kGroup = 64;

  // Where the parts of a worker's scratch begin.
  struct Scratch {
    std::size_t order, x, y, bytes;
    Scratch(const ExpertMatmul& op, const TensorType& x_type, const TensorType& y_type) {
      const std::size_t rows = op.tokens_ * op.used_;
      const std::size_t group = std::min(kGroup, rows);
      order = align_up((op.experts_.size() + 1) * sizeof(std::uint32_t));
      x = order + align_up(rows * sizeof(std::uint32_t));
      y = x + group * align_up(x_type.row_bytes());
      bytes = y + group * align_up(y_type.row_bytes());
    }
  };

  // A counting sort: rows order[firsts[e] .. firsts[e + 1]) chose expert e, in their order.
  void sort_by_expert(const Tensor& ids, std::uint32_t* firsts,
                      std::uint32_t* order) const noexcept {
    std::fill(firsts, firsts + experts_.size() + 1, 0u);
    const auto expert_of = [&](std::size_t row) {
      return ids.row<const std::int32_t>(row / used_)[row % used_];
    };
    const std::size_t rows = tokens_ * used_;
    for (std::size_t row = 0; row < rows; ++row) ++firsts[expert_of(row) + 1];
    for (std::size_t e = 0; e < experts_.size(); ++e) firsts[e + 1] += firsts[e];
    for (std::size_t row = 0; row < rows; ++row) {
      order[firsts[expert_of(row)]++] = static_cast<std::uint32_t>(row);
    }
    for (std::size_t e = experts_.size(); e > 0; --e) firsts[e] = firsts[e - 1];
    firsts[0] = 0;
  }

  void multiply_group(const Io& io, const Scratch& scratch, const ShardedMatrix& expert,
                      std::span<const std::uint32_t> rows) const noexcept {
    const Tensor& x = io.inputs[0];
    const bool each = x.type.shape.rank() == 3;
    const auto x_row = [&](std::uint32_t row) {
      return x.row<const std::byte>(each ? row : row / used_);
    };
    if (rows.size() == 1) {
      return multiply(expert, io.part,
                      {.activations = x_row(rows[0]),
                       .activation_stride = x.row_stride,
                       .tokens = 1,
                       .y = io.output.row<float>(rows[0]),
                       .y_stride = io.output.row_stride / sizeof(float),
                       .node = io.node});
    }
    const std::size_t x_bytes = align_up(x.type.row_bytes());
    const std::size_t y_bytes = align_up(io.output.type.row_bytes());
    std::byte* const gathered = io.scratch + scratch.x;
    std::byte* const made = io.scratch + scratch.y;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(gathered + i * x_bytes, x_row(rows[i]), x.type.row_bytes());
    }
    multiply(expert, io.part,
             {.activations = gathered,
              .activation_stride = x_bytes,
              .tokens = rows.size(),
              .y = reinterpret_cast<float*>(made),
              .y_stride = y_bytes / sizeof(float),
              .node = io.node});
    const std::size_t first = io.part.begin * sizeof(float);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(io.output.row<std::byte>(rows[i]) + first, made + i * y_bytes + first,
                  io.part.size() * sizeof(float));
    }
  }

  std::span<const ShardedMatrix> experts_;
  std::size_t tokens_;
  std::size_t used_;
};

void check_experts(std::span<const ShardedMatrix> experts) {
  if (experts.empty()) throw ShapeError("expert_matmul: there are no experts");
  for (const ShardedMatrix& expert : experts) {
    check_matrix("expert_matmul", expert);
    const ShardedMatrix& first = experts[0];
    if (expert.rows != first.rows || expert.columns != first.columns ||
        expert.kernel != first.kernel || expert.align != first.align) {
      throw ShapeError(
          "expert_matmul: " + expert.name + " " + to_string(Shape{expert.rows, expert.columns}) +
          " " + std::string(expert.kernel->name) + " is not as " + first.name + " " +
          to_string(Shape{first.rows, first.columns}) + " " + std::string(first.kernel->name));
    }
  }
}

}  // namespace

Value expert_matmul(Graph& graph, Value x, std::span<const ShardedMatrix> experts, Value ids) {
  check_experts(experts);
  expect_matrix("expert_matmul", "ids", graph.type(ids), DType::i32);
  const TensorType& type = graph.type(x);
  const bool matches = type.shape.rank() >= 2 && type.shape.columns() == experts[0].columns;
  if (matches && type.dtype == DType::f32 && activation_dtype(experts[0]) != DType::f32) {
    x = quantize(graph, x, quant::traits(experts[0].kernel->format).activation);
  }
  return graph.add(std::make_unique<ExpertMatmul>(experts, graph.type(ids).shape), {x, ids});
}

}  // namespace lockstep::ops
