// Runs small graphs without threads, in every way that their ops allow, and insists that all of
// them give the same bits: any instruction set, any number of workers, any division of the work.
//
// Workers take their turns one after another, last one first, so an op that reads what another
// worker writes within the same node fails here. Memory is poisoned and rows are padded, so that
// writing outside one's place is noticed.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "support/catch.h"

namespace lockstep::test {

// Zero-terminated proof that nobody wrote here.
inline constexpr unsigned char kPoison = 0xA5;

// Memory of one tensor: rows padded to a stride, `copies` of it, all poisoned.
class PaddedTensor {
 public:
  PaddedTensor(const ops::TensorType& type, unsigned copies, std::size_t padding)
      : stride_((type.row_bytes() + 63) / 64 * 64 + padding),
        copy_(stride_ * type.shape.rows()),
        copies_(copies),
        words_((copy_ * copies + kAlign) / sizeof(std::uint64_t) + 1) {
    std::memset(words_.data(), kPoison, words_.size() * sizeof(std::uint64_t));
    void* start = words_.data();
    std::size_t space = words_.size() * sizeof(std::uint64_t);
    std::align(kAlign, 1, start, space);
    tensor_ = ops::make_tensor(type, start);
    tensor_.row_stride = stride_;
    tensor_.copy_stride = copies > 1 ? copy_ : 0;
  }

  const ops::Tensor& tensor() const noexcept { return tensor_; }
  ops::Tensor copy(unsigned worker) const noexcept {
    ops::Tensor tensor = tensor_;
    tensor.data += tensor.copy_stride * worker;
    return tensor;
  }

  void write(const std::vector<std::byte>& dense) const {
    const std::size_t bytes = tensor_.type.row_bytes();
    REQUIRE(dense.size() == tensor_.type.bytes());
    for (unsigned c = 0; c < copies_; ++c) {
      for (std::size_t i = 0; i < tensor_.rows() && bytes > 0; ++i) {
        std::memcpy(copy(c).row<std::byte>(i), dense.data() + i * bytes, bytes);
      }
    }
  }

  // The values without the padding. All copies must agree, and the padding be untouched.
  std::vector<std::byte> read() const {
    const std::size_t bytes = tensor_.type.row_bytes();
    std::vector<std::byte> first;
    for (unsigned c = 0; c < copies_; ++c) {
      std::vector<std::byte> dense;
      for (std::size_t i = 0; i < tensor_.rows(); ++i) {
        const std::byte* const row = copy(c).row<std::byte>(i);
        dense.insert(dense.end(), row, row + bytes);
        for (std::size_t j = bytes; j < stride_; ++j) {
          if (row[j] != std::byte{kPoison}) FAIL("padding of row " << i << " was written");
        }
      }
      if (c == 0) first = dense;
      REQUIRE(first == dense);
    }
    return first;
  }

 private:
  static constexpr std::size_t kAlign = 64;
  std::size_t stride_;
  std::size_t copy_;
  unsigned copies_;
  std::vector<std::uint64_t> words_;
  ops::Tensor tensor_;
};

template <class T>
std::vector<std::byte> to_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> from_bytes(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// A graph with the contents of its inputs and externals.
class TestGraph {
 public:
  explicit TestGraph(quant::Isa isa) : graph(isa) {}

  template <class T>
  ops::Value input(const ops::TensorType& type, const std::vector<T>& values) {
    const ops::Value value = graph.input("input", type);
    contents_.emplace_back(value, to_bytes(values));
    return value;
  }
  // An external value with padded rows, restored before every run.
  template <class T>
  ops::Value external(const ops::TensorType& type, const std::vector<T>& values) {
    memory_.push_back(std::make_unique<PaddedTensor>(type, 1, 128));
    const ops::Value value = graph.external("external", memory_.back()->tensor());
    externals_.emplace_back(value, to_bytes(values));
    restore();
    return value;
  }
  void restore() const {
    for (std::size_t i = 0; i < externals_.size(); ++i) memory_[i]->write(externals_[i].second);
  }
  const auto& contents() const noexcept { return contents_; }
  const PaddedTensor* external_memory(ops::Value value) const {
    for (std::size_t i = 0; i < externals_.size(); ++i) {
      if (externals_[i].first == value) return memory_[i].get();
    }
    return nullptr;
  }

  ops::Graph graph;

 private:
  std::vector<std::pair<ops::Value, std::vector<std::byte>>> contents_;
  std::vector<std::pair<ops::Value, std::vector<std::byte>>> externals_;
  std::vector<std::unique_ptr<PaddedTensor>> memory_;
};

inline std::vector<ops::TensorType> input_types(const ops::Graph& graph, const ops::Node& node) {
  std::vector<ops::TensorType> types;
  for (const ops::Value input : node.inputs) types.push_back(graph.type(input));
  return types;
}

// Every division that the node's op agrees to, the preferred one first.
inline std::vector<ops::Partition> partitions_of(const ops::Graph& graph, const ops::Node& node) {
  using Kind = ops::Partition::Kind;
  const std::vector<ops::TensorType> types = input_types(graph, node);
  const ops::TensorType& output = graph.type(node.output);
  std::vector<ops::Partition> all{node.op->partition(types, output)};
  const auto offer = [&](const ops::Partition& candidate) {
    if (node.op->accepts(candidate) && std::find(all.begin(), all.end(), candidate) == all.end()) {
      all.push_back(candidate);
    }
  };
  for (const ops::Shape& shape : {output.shape, types[0].shape}) {
    offer({Kind::rows, shape.rows(), 1});
    offer({Kind::rows, shape.rows(), 2});
    for (const std::size_t align : {1, 2, 7, 8, 24, 32, 64, 120, 256}) {
      offer({Kind::columns, shape.columns(), align});
    }
  }
  if (node.op->replicable()) all.push_back({Kind::replicated, all[0].extent, all[0].align});
  return all;
}

// One run of the graph by a team of `workers`, each node under its `choice`-th division (counted
// round). Returns the bytes of `result`.
class GraphRun {
 public:
  GraphRun(const TestGraph& test, unsigned workers, std::size_t choice)
      : test_(test), workers_(workers) {
    test.restore();
    const auto& values = test.graph.values();
    memory_.resize(values.size());
    for (const auto& [value, bytes] : test.contents()) {
      memory_[value.id] = std::make_unique<PaddedTensor>(values[value.id].type, 1, 64);
      memory_[value.id]->write(bytes);
    }
    for (const ops::Node& node : test.graph.nodes()) run(node, choice);
  }

  std::vector<std::byte> read(ops::Value value) const { return memory_of(value).read(); }

 private:
  const PaddedTensor& memory_of(ops::Value value) const {
    const PaddedTensor* external = test_.external_memory(value);
    if (external != nullptr) return *external;
    const ops::ValueInfo& info = test_.graph.values().at(value.id);
    if (info.kind == ops::ValueInfo::Kind::computed) {
      const ops::Node& node = test_.graph.nodes().at(info.producer);
      if (node.op->alias() >= 0) {
        return memory_of(node.inputs.at(static_cast<std::size_t>(node.op->alias())));
      }
    }
    REQUIRE(memory_.at(value.id) != nullptr);
    return *memory_[value.id];
  }

  void run(const ops::Node& node, std::size_t choice) {
    const ops::Graph& graph = test_.graph;
    const std::vector<ops::Partition> choices = partitions_of(graph, node);
    const ops::Partition partition = choices[choice % choices.size()];
    const bool replicated = partition.kind == ops::Partition::Kind::replicated;
    const ops::TensorType& type = graph.type(node.output);
    if (node.op->alias() < 0) {
      memory_[node.output.id] = std::make_unique<PaddedTensor>(type, replicated ? workers_ : 1, 64);
    }
    const std::size_t scratch_bytes =
        node.op->scratch_bytes(input_types(graph, node), type, workers_);
    const ops::TensorType scratch_type{ops::DType::i32, {1, (scratch_bytes + 3) / 4}};
    for (unsigned worker = workers_; worker-- > 0;) {
      std::vector<ops::Tensor> inputs;
      for (const ops::Value input : node.inputs) inputs.push_back(memory_of(input).copy(worker));
      const PaddedTensor scratch(scratch_type, 1, 64);
      node.op->run(
          {.inputs = inputs,
           .output = memory_of(node.output).copy(worker),
           .partition = partition,
           .part = partition.slice({.worker = worker, .workers = workers_, .node = 0, .nodes = 1}),
           .scratch = scratch.tensor().data});
      (void)scratch.read();
    }
  }

  const TestGraph& test_;
  unsigned workers_;
  std::vector<std::unique_ptr<PaddedTensor>> memory_;
};

// The instruction sets that were built and that this processor can run.
inline std::vector<quant::Isa> runnable_isas() {
  const quant::IsaSet usable = quant::built_isas() & quant::detect_isas();
  std::vector<quant::Isa> isas;
  for (const quant::Isa isa : quant::kAllIsas) {
    if (usable.has(isa)) isas.push_back(isa);
  }
  return isas;
}

// Builds the graph for every instruction set, runs it by teams of 1 to 4 under every division, and
// returns the one result that all of these must have.
template <class T>
std::vector<T> run_every_way(const std::function<ops::Value(TestGraph&)>& build) {
  std::vector<std::byte> expected;
  bool first = true;
  for (const quant::Isa isa : runnable_isas()) {
    TestGraph test(isa);
    const ops::Value result = build(test);
    std::size_t choices = 1;
    for (const ops::Node& node : test.graph.nodes()) {
      choices = std::max(choices, partitions_of(test.graph, node).size());
    }
    for (unsigned workers = 1; workers <= 4; ++workers) {
      for (std::size_t choice = 0; choice < choices; ++choice) {
        const std::vector<std::byte> bytes = GraphRun(test, workers, choice).read(result);
        if (first) expected = bytes;
        first = false;
        if (bytes != expected) {
          FAIL("other bits from " << quant::name_of(isa) << ", " << workers << " workers, division "
                                  << choice);
        }
      }
    }
  }
  return from_bytes<T>(expected);
}

}  // namespace lockstep::test
