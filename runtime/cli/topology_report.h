// What `lockstep topology` shows: the machine as a tree with the workers on it, the limits that
// decided their number, and the rows of a matrix that each of them has.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/lockstep.h"

namespace lockstep::cli {

// A matrix whose rows are divided as an example.
struct ExampleMatrix {
  std::string name;
  std::size_t rows = 0;
  std::size_t align = 1;  // rows that stay together
};

nlohmann::ordered_json topology_json(const Engine& engine, const ExampleMatrix& matrix);
std::string topology_text(const Engine& engine, const ExampleMatrix& matrix);

}  // namespace lockstep::cli
