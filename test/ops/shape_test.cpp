// Shapes, tensor sizes, and the graph's bookkeeping.
#include "ops/shape.h"

#include "ops/ops.h"
#include "ops/region.h"
#include "quant/kernels.h"
#include "support/catch.h"

using namespace lockstep;
using ops::DType;
using ops::Shape;
using ops::TensorType;

TEST_CASE("shapes count rows and columns", "[shape]") {
  CHECK(Shape{}.rows() == 1);
  CHECK(Shape{}.columns() == 1);
  CHECK(Shape{5}.rows() == 1);
  CHECK(Shape{5}.columns() == 5);
  CHECK(Shape{2, 3, 5}.rows() == 6);
  CHECK(Shape{2, 3, 5}.elements() == 30);
  CHECK(Shape{0, 4}.elements() == 0);
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  CHECK_FALSE(Shape{3} == Shape{3, 0});
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5}), ops::ShapeError);
  CHECK(to_string(Shape{3, 64}) == "[3, 64]");
  CHECK(to_string(Shape{7}) == "[7]");
  CHECK(to_string(Shape{}) == "[]");
}

TEST_CASE("rows have the bytes of their type", "[shape]") {
  CHECK(TensorType{DType::f32, {3, 5}}.row_bytes() == 20);
  CHECK(TensorType{DType::f16, {3, 5}}.row_bytes() == 10);
  CHECK(TensorType{DType::i32, {5}}.bytes() == 20);
  CHECK(TensorType{DType::f32, {3, 5}}.bytes() == 60);
  const auto layout = quant::ActivationLayout::of(quant::Format::q8_k, 512);
  CHECK(TensorType{DType::act_q8_k, {3, 512}}.row_bytes() == layout.bytes);
  CHECK(layout.bytes >= 512 + 2 * 32 + 4 * 2);
  CHECK(name_of(DType::act_q8_0) == "act_q8_0");
}

TEST_CASE("a dense tensor has rows one after another", "[shape]") {
  float data[6] = {0, 1, 2, 3, 4, 5};
  const ops::Tensor tensor = ops::make_tensor({DType::f32, {2, 3}}, data);
  CHECK(tensor.rows() == 2);
  CHECK(tensor.columns() == 3);
  CHECK(tensor.row_stride == 12);
  CHECK(tensor.copy_stride == 0);
  CHECK(tensor.row<float>(1)[2] == 5.0f);
}

TEST_CASE("the graph records values and nodes in order", "[graph]") {
  ops::Graph graph(quant::Isa::scalar);
  const ops::Value x = graph.input("x", {DType::f32, {2, 3}});
  const ops::Value y = graph.input("y", {DType::f32, {3}});
  const ops::Value z = ops::add(graph, x, y);
  graph.mark_output(z);
  CHECK(graph.isa() == quant::Isa::scalar);
  REQUIRE(graph.values().size() == 3);
  REQUIRE(graph.nodes().size() == 1);
  CHECK(graph.values()[x.id].kind == ops::ValueInfo::Kind::input);
  CHECK(graph.values()[x.id].name == "x");
  CHECK(graph.values()[z.id].kind == ops::ValueInfo::Kind::computed);
  CHECK(graph.values()[z.id].producer == 0);
  CHECK(graph.values()[z.id].output);
  CHECK_FALSE(graph.values()[x.id].output);
  CHECK(graph.nodes()[0].inputs == std::vector<ops::Value>{x, y});
  CHECK(graph.nodes()[0].output == z);
  CHECK(graph.type(z) == TensorType{DType::f32, {2, 3}});
  CHECK_THROWS_AS(graph.type(ops::Value{}), std::out_of_range);
}

TEST_CASE("a node that is refused leaves no trace", "[graph]") {
  ops::Graph graph(quant::Isa::scalar);
  const ops::Value x = graph.input("x", {DType::f32, {2, 3}});
  const ops::Value y = graph.input("y", {DType::f32, {2, 4}});
  CHECK_THROWS_AS(ops::add(graph, x, y), ops::ShapeError);
  CHECK(graph.values().size() == 2);
  CHECK(graph.nodes().empty());
}

TEST_CASE("a region is the rectangle of a part", "[graph]") {
  using ops::Slice;
  const auto of = [](const ops::Partition& partition, Slice part) {
    return ops::region({.inputs = {}, .output = {}, .partition = partition, .part = part}, 10, 6);
  };
  const auto rows = of(ops::by_rows(10), {5, 10});
  CHECK(rows.rows == Slice{5, 10});
  CHECK(rows.columns == Slice{0, 6});
  const auto columns = of(ops::by_columns(6, 4), {4, 6});
  CHECK(columns.rows == Slice{0, 10});
  CHECK(columns.columns == Slice{4, 6});
  const auto all = of({ops::Partition::Kind::replicated, 0, 1}, {});
  CHECK(all.rows == Slice{0, 10});
  CHECK(all.columns == Slice{0, 6});
}
