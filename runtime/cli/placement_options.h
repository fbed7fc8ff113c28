// Options that say where workers and memory go.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "lockstep/lockstep.h"

namespace lockstep::cli {

// Which part of the machine is used, and where its memory lies. All choices give the same bits.
struct PlacementArguments {
  std::string numa = "rows", level = "node";
  std::string nodes, processors;
  bool smt = false, small_pages = false;

  void add_to(CLI::App& app);
  // Throws Error(usage) for a list that is none.
  void apply(EngineOptions& options) const;
};

std::string_view name_of(NumaPolicy policy) noexcept;

}  // namespace lockstep::cli
