// A compute graph: typed values and nodes in topological order. Plain data, no threads, no memory
// of its own. Built by the functions of ops.h, turned into a Plan by runtime/plan.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/op.h"
#include "quant/isa.h"
#include "quant/rows.h"

namespace lockstep::ops {

struct ShardedMatrix;

// A handle to a value of one Graph.
struct Value {
  std::uint32_t id = UINT32_MAX;
  bool operator==(const Value&) const noexcept = default;
};

struct ValueInfo {
  enum class Kind : std::uint8_t { input, external, computed };
  Kind kind = Kind::computed;
  std::string name;
  TensorType type;
  Tensor memory;               // external only
  std::uint32_t producer = 0;  // computed only: index into nodes()
  bool output = false;         // must survive the whole run
};

struct Node {
  std::unique_ptr<Op> op;
  std::vector<Value> inputs;
  Value output;
  std::uint32_t section = 0;  // index into Graph::sections()
};

class Graph {
 public:
  // Nodes use the row arithmetic of `isa` (quant::row_kernels), which must have been built.
  explicit Graph(quant::Isa isa);

  // A value that the caller fills before each run (Plan::tensor gives its memory).
  Value input(std::string name, TensorType type);
  // A value whose memory the caller owns and keeps while plans of this graph live: weights, caches.
  Value external(std::string name, const Tensor& memory);
  // Appends a node. Throws ShapeError from the op's infer().
  Value add(std::unique_ptr<Op> op, std::vector<Value> inputs);
  // Nodes added from now on belong to this part of the model ("layer 3"): a name for people who
  // read plans and profiles, without influence on anything. Before the first call it is "".
  void section(std::string name);
  // Keeps the value's memory intact until the run ends, so that it can be read afterwards.
  void mark_output(Value value);

  // Called by matmul() before it appends itself, with its f32 input: may append nodes that look at
  // it. Whoever builds a graph can so learn what its matrices are multiplied with, without the
  // model knowing.
  using MatmulObserver = std::function<void(Value x, const ShardedMatrix& matrix)>;
  void observe_matmuls(MatmulObserver observer) { matmul_observer_ = std::move(observer); }
  const MatmulObserver& matmul_observer() const noexcept { return matmul_observer_; }

  const TensorType& type(Value value) const { return values_.at(value.id).type; }
  const std::vector<ValueInfo>& values() const noexcept { return values_; }
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  const std::vector<std::string>& sections() const noexcept { return sections_; }
  quant::Isa isa() const noexcept { return isa_; }
  const quant::RowKernels& rows() const noexcept { return *rows_; }

 private:
  quant::Isa isa_;
  const quant::RowKernels* rows_;
  std::vector<ValueInfo> values_;
  std::vector<Node> nodes_;
  std::vector<std::string> sections_{""};
  MatmulObserver matmul_observer_;
};

}  // namespace lockstep::ops
