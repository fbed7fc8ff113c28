// The size of a batch job: how many sequences at once, how much of the memory.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "lockstep/lockstep.h"
#include "runtime/cli/options.h"
#include "runtime/memory_plan.h"

namespace lockstep::cli {

struct JobSizeArguments {
  std::size_t slots = 0;         // 0: kDefaultSlots
  std::size_t batch_tokens = 0;  // 0: the library's default, and at least the slots
  std::uint64_t kv_memory = 0;   // bytes; 0: what can be of use and is there
  bool no_prefix_reuse = false;
  bool ignore_memory = false;

  void add_to(CLI::App& app);
  // Fits a session into the memory there is, before the model is read (ModelOptions::before_load),
  // and shows the plan on stderr. `processes`: that share the memory. Throws Error(usage),
  // Error(no_resource).
  SessionOptions fit(const SessionArguments& session, const Model& model, unsigned processes) const;

 private:
  MemoryWish wish(const SessionArguments& session, const ModelInfo& model) const;
};

// "memory: 2.41 GiB of 20.1 GiB (memory of the machine): weights 0.70 GiB, cache 1.62 GiB for
// 8,192 positions, activations 92 MiB"
std::string memory_text(const MemoryPlan& plan, const SessionOptions& session);

}  // namespace lockstep::cli
