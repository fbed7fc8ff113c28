// Builder mistakes must be reported with the op's name and both extents.
#pragma once

#include <initializer_list>
#include <string>

#include "ops/shape.h"
#include "support/catch.h"

namespace lockstep::test {

template <class Build>
void check_shape_error(Build&& build, std::initializer_list<const char*> parts) {
  std::string message;
  try {
    build();
  } catch (const ops::ShapeError& error) {
    message = error.what();
  }
  CAPTURE(message);
  CHECK_FALSE(message.empty());
  for (const char* part : parts) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace lockstep::test
