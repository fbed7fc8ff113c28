// The graph's bookkeeping: values get their types here, from the caller or from the op that makes
// them.
#include "ops/graph.h"

#include <utility>

#include "quant/kernels.h"

namespace lockstep::ops {
namespace {

Value append(std::vector<ValueInfo>& values, ValueInfo info) {
  values.push_back(std::move(info));
  return {static_cast<std::uint32_t>(values.size() - 1)};
}

}  // namespace

Graph::Graph(quant::Isa isa) : isa_(isa), rows_(&quant::row_kernels(isa)) {}

Value Graph::input(std::string name, TensorType type) {
  ValueInfo info;
  info.kind = ValueInfo::Kind::input;
  info.name = std::move(name);
  info.type = type;
  return append(values_, std::move(info));
}

Value Graph::external(std::string name, const Tensor& memory) {
  ValueInfo info;
  info.kind = ValueInfo::Kind::external;
  info.name = std::move(name);
  info.type = memory.type;
  info.memory = memory;
  return append(values_, std::move(info));
}

Value Graph::add(std::unique_ptr<Op> op, std::vector<Value> inputs) {
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (const Value input : inputs) types.push_back(type(input));
  ValueInfo info;
  info.kind = ValueInfo::Kind::computed;
  info.name = op->name();
  info.type = op->infer(types);
  info.producer = static_cast<std::uint32_t>(nodes_.size());
  const Value output = append(values_, std::move(info));
  nodes_.push_back({.op = std::move(op),
                    .inputs = std::move(inputs),
                    .output = output,
                    .section = static_cast<std::uint32_t>(sections_.size() - 1)});
  return output;
}

void Graph::section(std::string name) { sections_.push_back(std::move(name)); }

void Graph::mark_output(Value value) { values_.at(value.id).output = true; }

}  // namespace lockstep::ops
