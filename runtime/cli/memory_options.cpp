// See memory_options.h.
#include "runtime/cli/memory_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "runtime/cli/console.h"
#include "runtime/cli/units.h"

namespace lockstep::cli {

namespace {

constexpr std::size_t kDefaultSlots = 32;
constexpr std::size_t kMaxSlots = 4096;

}  // namespace

void JobSizeArguments::add_to(CLI::App& app) {
  app.add_option("--slots", slots,
                 fmt::format("Sequences computed together, 1 to {} (default {}); changes no row",
                             kMaxSlots, kDefaultSlots))
      ->type_name("N")
      ->check(whole_number(1, kMaxSlots));
  app.add_option("--batch-tokens", batch_tokens,
                 "Tokens of prompts and answers in a step at most (default 512, and at least the\n"
                 "slots); changes no row")
      ->type_name("N")
      ->check(whole_number(1, 65536));
  app.add_option(
         "--kv-memory", kv_memory,
         "Memory for keys and values, such as 800MiB or 20GiB (default: what all slots can\n"
         "need, or what there is); changes no row")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--no-prefix-reuse", no_prefix_reuse,
               "Compute every prompt from its first token; changes no row");
  app.add_flag("--ignore-memory-limit", ignore_memory,
               "Start even if memory is short by what the system tells");
}

MemoryWish JobSizeArguments::wish(const SessionArguments& session, const ModelInfo& model) const {
  const std::size_t together = slots != 0 ? slots : kDefaultSlots;
  MemoryWish wish;
  wish.session = session.resolve(model, together);
  wish.session.share_prefixes = !no_prefix_reuse;
  if (batch_tokens != 0) {
    if (slots > batch_tokens) {
      throw Error(ErrorCode::usage,
                  fmt::format("--batch-tokens {} is less than --slots {}: every sequence needs one "
                              "token of a step",
                              batch_tokens, slots));
    }
    wish.session.max_batch = batch_tokens;
    wish.session.slots = std::min(together, batch_tokens);
  }
  wish.context_fixed = session.context != 0;
  if (kv_memory != 0) wish.cache_bytes = kv_memory;
  return wish;
}

SessionOptions JobSizeArguments::fit(const SessionArguments& session, const Model& model,
                                     unsigned processes) const {
  const MemoryWish wanted = wish(session, model.info());
  const MemoryDemand demand = measure_demand(model, wanted.session);
  topology::MemoryBudget budget;
  if (!ignore_memory) budget = memory_budget_of(model.engine());
  if (processes > 1 && budget.bytes != UINT64_MAX) {
    budget.bytes /= processes;
    budget.reason += fmt::format(", divided among {} processes", processes);
  }
  const MemoryPlan plan = plan_memory(demand, wanted, budget);
  SessionOptions options = wanted.session;
  options.context = plan.context;
  options.cache_positions = plan.cache_positions;
  show_note(memory_text(plan, options));
  return options;
}

std::string memory_text(const MemoryPlan& plan, const SessionOptions& session) {
  const std::string available =
      plan.budget.bytes == UINT64_MAX
          ? ""
          : fmt::format(" of {} ({})", humane_bytes(plan.budget.bytes), plan.budget.reason);
  std::string text = fmt::format(
      "memory: {}{}: weights {}, keys and values {} for {} positions ({} slots of at most {}), "
      "activations {}",
      humane_bytes(plan.total()), available, humane_bytes(plan.weights), humane_bytes(plan.cache),
      grouped(plan.cache_positions), session.slots, grouped(plan.context),
      humane_bytes(plan.activations));
  if (plan.context_cut) text += "; the context was cut to what fits";
  if (plan.cache_cut) text += "; if all slots grow to the full, some wait";
  return text;
}

}  // namespace lockstep::cli
