// Python's operators on template values. What Python raises an error for is an error here.
#pragma once

#include <cstdint>

#include "runtime/chat/jinja/workspace.h"

namespace lockstep::jinja {

enum class BinaryOp : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class CompareOp : std::uint8_t {
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};

Value binary(Workspace& workspace, BinaryOp op, Value left, Value right);
Value negate(Workspace& workspace, Value value);
Value plus(Workspace& workspace, Value value);

bool equal(Workspace& workspace, Value left, Value right);
// Fails for values that have no order.
bool is_less(Workspace& workspace, Value left, Value right);
bool contains(Workspace& workspace, Value container, Value item);
bool compare(Workspace& workspace, CompareOp op, Value left, Value right);

// The items of anything that can be iterated over, in order; an iterator is used up.
std::vector<Value> items_of(Workspace& workspace, Value value);

}  // namespace lockstep::jinja
