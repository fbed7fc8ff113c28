// A session: the cache of its sequences, one plan per step shape, and one arena that all plans
// share.
#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/lockstep.h"
#include "runtime/engine.h"
#include "runtime/fusions.h"
#include "runtime/kv_cache.h"
#include "runtime/model.h"
#include "runtime/plan.h"
#include "runtime/profile.h"

namespace lockstep {
namespace {

// Plans kept, least recently used first out. Chunk sizes and the number of rows that want logits
// vary, but a long run settles on few shapes.
constexpr std::size_t kMaxPlans = 64;
constexpr std::size_t kMaxBatch = 65536;
constexpr std::size_t kMaxSlots = 65536;
constexpr std::size_t kMaxContext = std::size_t{1} << 24;

struct StepShape {
  std::size_t tokens = 0;
  std::size_t logits = 0;
  auto operator<=>(const StepShape&) const = default;
};

// The sums of squares of one value that matrices are multiplied with.
struct ObservedValue {
  ops::Value x;
  ops::Value squares;
  std::vector<std::string> matrices;
};

// A graph with its plan. The graph owns the ops that the plan runs.
struct PlannedStep {
  explicit PlannedStep(quant::Isa isa) : graph(isa) {}
  ops::Graph graph;
  StepInputs inputs;
  ops::Value logits;
  std::vector<ObservedValue> observed;
  Plan plan;
  std::optional<RunTimes> times;  // if the barriers or all is to be timed
  std::size_t profile_entry = 0;
  std::uint64_t last_use = 0;

  Job job() { return {&plan, times ? &*times : nullptr}; }
};

// Matrices that share an input share its sums.
void observe(PlannedStep& step) {
  step.graph.observe_matmuls([&step](ops::Value x, const ops::ShardedMatrix& matrix) {
    for (ObservedValue& known : step.observed) {
      if (known.x == x) return known.matrices.push_back(matrix.name);
    }
    const ops::Value squares = ops::column_squares(step.graph, x);
    step.graph.mark_output(squares);
    step.observed.push_back({x, squares, {matrix.name}});
  });
}

void check_option(const char* name, std::size_t value, std::size_t low, std::size_t high) {
  if (value >= low && value <= high) return;
  throw Error(ErrorCode::usage, std::string(name) + " must be " + std::to_string(low) + " to " +
                                    std::to_string(high) + ", got " + std::to_string(value));
}

}  // namespace

struct Session::Impl {
  Impl(const Model& for_model, const SessionOptions& wanted)
      : model(for_model),
        options(checked(for_model, wanted)),
        cache(for_model.impl().config, block_options(options), options.kv_type,
              for_model.engine().impl().page_policy(), for_model.engine().placement()),
        next_position(options.slots) {
    if (options.profile) profile = std::make_unique<Profile>();
  }

  static SessionOptions checked(const Model& model, SessionOptions options) {
    if (options.context == 0) options.context = model.info().context;
    check_option("context", options.context, 1, kMaxContext);
    check_option("slots", options.slots, 1, kMaxSlots);
    check_option("max_batch", options.max_batch, 1, kMaxBatch);
    for (const std::string& name : options.unfused) check_fusion_name(name);
    return options;
  }

  static KvBlocks::Options block_options(const SessionOptions& options) {
    const bool share = options.share_prefixes;
    const std::size_t least = kv_blocks_for(1, options.context, share);
    const std::size_t most = kv_blocks_for(options.slots, options.context, share);
    std::size_t blocks = most;
    if (options.cache_positions > 0) {
      blocks = std::min(most, options.cache_positions / kKvBlock);
      check_option("cache_positions", blocks * kKvBlock, least * kKvBlock, most * kKvBlock);
    }
    return {options.slots, options.context, blocks, kKvBlock, share};
  }

  // Before and after a run of the step for this batch. finish() throws if it was cancelled.
  PlannedStep& begin(std::span<const BatchEntry> batch);
  void finish(PlannedStep& step, const RunResult& result);

  void check(std::span<const BatchEntry> batch);
  void check_positions(std::span<const BatchEntry> batch);
  void book(std::span<const BatchEntry> batch);
  PlannedStep& step_for(StepShape shape);
  void drop_oldest_plan();
  void fill_inputs(PlannedStep& step, std::span<const BatchEntry> batch);
  void add_squares(const PlannedStep& step);

  Model model;
  SessionOptions options;
  KvCache cache;
  std::map<StepShape, std::unique_ptr<PlannedStep>> plans;
  topology::NodeBuffer arena;
  std::uint64_t uses = 0;
  std::vector<std::size_t> next_position;  // scratch of check(): where each slot will stand
  std::vector<std::pair<std::size_t, std::size_t>>
      booked;                     // scratch of book(): slot, length before
  std::span<const float> logits;  // [logit_count, vocabulary] of the last step
  std::size_t logit_count = 0;
  StepStats stats;
  std::vector<ActivationSquares> squares;
  std::unique_ptr<Profile> profile;
  std::atomic<bool> cancel{false};
};

// Everything that an op trusts is checked here, before anything changes.
void Session::Impl::check(std::span<const BatchEntry> batch) {
  check_option("the number of tokens in a batch", batch.size(), 1, options.max_batch);
  for (const BatchEntry& entry : batch) {
    const auto refuse = [](const char* what, std::int64_t value, std::size_t limit) {
      throw Error(ErrorCode::usage, std::string(what) + " " + std::to_string(value) +
                                        " is not in 0 to " + std::to_string(limit - 1));
    };
    const ModelInfo& info = model.info();
    const auto beyond = [](std::int32_t value, std::size_t limit) {
      return value < 0 || static_cast<std::size_t>(value) >= limit;
    };
    if (beyond(entry.token, info.vocabulary)) refuse("token", entry.token, info.vocabulary);
    if (beyond(entry.slot, options.slots)) refuse("slot", entry.slot, options.slots);
    if (beyond(entry.position, options.context))
      refuse("position", entry.position, options.context);
  }
  check_positions(batch);
}

void Session::Impl::check_positions(std::span<const BatchEntry> batch) {
  const KvBlocks& blocks = cache.blocks();
  const auto refuse = [](const BatchEntry& entry, const char* what, std::int64_t wanted,
                         std::int64_t found) {
    throw Error(ErrorCode::usage, "slot " + std::to_string(entry.slot) + what +
                                      std::to_string(wanted) + ", the batch has " +
                                      std::to_string(found));
  };
  for (const BatchEntry& entry : batch) {
    const auto slot = static_cast<std::size_t>(entry.slot);
    next_position[slot] = blocks.evaluated(slot);
  }
  for (const BatchEntry& entry : batch) {
    const auto slot = static_cast<std::size_t>(entry.slot);
    const auto position = static_cast<std::size_t>(entry.position);
    std::size_t& next = next_position[slot];
    if (position != next) {
      refuse(entry, " continues at position ", static_cast<std::int64_t>(next), entry.position);
    }
    if (position < blocks.length(slot) && entry.token != blocks.token(slot, position)) {
      refuse(entry, " was booked for token ", blocks.token(slot, position), entry.token);
    }
    ++next;
  }
  for (const std::size_t slot : blocks.touched()) {
    // A slot that was emptied again has nothing to wait for.
    const bool in_batch = std::any_of(batch.begin(), batch.end(), [slot](const BatchEntry& entry) {
      return static_cast<std::size_t>(entry.slot) == slot;
    });
    const std::size_t end = in_batch ? next_position[slot] : blocks.evaluated(slot);
    if (end >= blocks.length(slot)) continue;
    throw Error(ErrorCode::usage, "slot " + std::to_string(slot) + " was booked up to position " +
                                      std::to_string(blocks.length(slot)) + ", the batch ends at " +
                                      std::to_string(end));
  }
}

// Makes room for the entries that were not booked.
void Session::Impl::book(std::span<const BatchEntry> batch) {
  KvBlocks& blocks = cache.blocks();
  std::vector<std::pair<std::size_t, std::size_t>>& before = booked;
  before.clear();
  for (const BatchEntry& entry : batch) {
    const auto slot = static_cast<std::size_t>(entry.slot);
    if (static_cast<std::size_t>(entry.position) < blocks.length(slot)) continue;
    before.emplace_back(slot, blocks.length(slot));
    if (blocks.reserve(slot, {&entry.token, 1})) continue;
    for (auto undo = before.rbegin(); undo != before.rend(); ++undo) {
      blocks.truncate(undo->first, undo->second);
    }
    throw Error(ErrorCode::no_resource, "the key/value cache is used up: its " +
                                            std::to_string(blocks.options().blocks * kKvBlock) +
                                            " positions are too few for this batch");
  }
}

void Session::Impl::drop_oldest_plan() {
  const auto oldest = std::min_element(
      plans.begin(), plans.end(),
      [](const auto& a, const auto& b) { return a.second->last_use < b.second->last_use; });
  plans.erase(oldest);
}

PlannedStep& Session::Impl::step_for(StepShape shape) {
  std::unique_ptr<PlannedStep>& slot = plans[shape];
  if (!slot) {
    const Engine::Impl& engine = model.engine().impl();
    auto step = std::make_unique<PlannedStep>(engine.isa);
    ops::Graph& graph = step->graph;
    const auto ids = [&](const char* name, std::size_t n) {
      return graph.input(name, {ops::DType::i32, {n}});
    };
    step->inputs = {ids("tokens", shape.tokens), ids("positions", shape.tokens),
                    ids("slots", shape.tokens), ids("logit_rows", shape.logits),
                    graph.external("blocks", cache.table())};
    if (options.activation_squares) observe(*step);
    step->logits = model.impl().architecture->forward(graph, step->inputs, cache.layers());
    graph.mark_output(step->logits);
    step->plan = Plan::make(graph, {.workers = engine.executor->workers(),
                                    .numa_nodes = engine.rows_nodes(),
                                    .schedule = options.schedule,
                                    .unfused = options.unfused,
                                    .reference = options.reference});
    if (options.time_barriers || options.profile) {
      step->times.emplace(step->plan.workers(), step->plan.stages().size(),
                          options.profile ? step->plan.nodes().size() : 0);
    }
    if (profile) step->profile_entry = profile->add_plan(step->plan, shape.tokens, shape.logits);
    slot = std::move(step);
    if (plans.size() > kMaxPlans) {
      slot->last_use = ++uses;
      drop_oldest_plan();
    }
  }
  PlannedStep& step = *plans[shape];
  step.last_use = ++uses;
  if (step.plan.arena_bytes() > arena.size()) arena = topology::NodeBuffer(step.plan.arena_bytes());
  if (step.plan.bound_arena() != arena.data()) step.plan.bind(arena.data());
  return step;
}

void Session::Impl::fill_inputs(PlannedStep& step, std::span<const BatchEntry> batch) {
  const auto ids = [&](ops::Value value) { return step.plan.tensor(value).row<std::int32_t>(0); };
  std::int32_t* tokens = ids(step.inputs.tokens);
  std::int32_t* positions = ids(step.inputs.positions);
  std::int32_t* slots = ids(step.inputs.slots);
  std::int32_t* rows = ids(step.inputs.logit_rows);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    tokens[i] = batch[i].token;
    positions[i] = batch[i].position;
    slots[i] = batch[i].slot;
    if (batch[i].logits) *rows++ = static_cast<std::int32_t>(i);
  }
}

void Session::Impl::add_squares(const PlannedStep& step) {
  for (const ObservedValue& observed : step.observed) {
    const float* const sums = step.plan.tensor(observed.squares).row<const float>(0);
    for (const std::string& name : observed.matrices) {
      auto found =
          std::find_if(squares.begin(), squares.end(),
                       [&](const ActivationSquares& known) { return known.matrix == name; });
      if (found == squares.end()) found = squares.insert(found, {name, {}, 0});
      found->sums.resize(step.graph.type(observed.squares).shape.columns());
      for (std::size_t i = 0; i < found->sums.size(); ++i) found->sums[i] += sums[i];
      found->tokens += step.graph.type(observed.x).shape[0];
    }
  }
}

Session::Session(const Model& model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(model, options)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

PlannedStep& Session::Impl::begin(std::span<const BatchEntry> batch) {
  check(batch);
  const auto wanted = static_cast<std::size_t>(std::count_if(
      batch.begin(), batch.end(), [](const BatchEntry& entry) { return entry.logits; }));
  logit_count = 0;
  try {
    PlannedStep& step = step_for({batch.size(), wanted});
    book(batch);
    cache.copy_blocks();
    fill_inputs(step, batch);
    return step;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::no_resource,
                "no memory for the activations of " + std::to_string(batch.size()) + " tokens");
  }
}

void Session::Impl::finish(PlannedStep& step, const RunResult& result) {
  stats = {result.barriers, step.plan.weight_bytes(), 0};
  if (result.cancelled) {
    if (step.times) step.times->clear_nodes();
    cache.blocks().rollback();
    throw Error(ErrorCode::interrupted, "cancelled");
  }
  if (step.times) stats.barrier_seconds = step.times->waited();
  if (profile) profile->add_run(step.profile_entry, *step.times);
  cache.blocks().commit();
  add_squares(step);
  const ops::Tensor& rows = step.plan.tensor(step.logits);
  logit_count = step.graph.type(step.inputs.logit_rows).shape.elements();
  if (logit_count > 0) {
    logits = {rows.row<const float>(0), logit_count * model.info().vocabulary};
  }
}

void Session::evaluate(std::span<const BatchEntry> batch) {
  PlannedStep& step = impl_->begin(batch);
  Executor& executor = *impl_->model.engine().impl().executor;
  const Job job = step.job();
  impl_->finish(step, executor.run(*job.plan, &impl_->cancel, job.times));
}

void Session::evaluate_each(const NextBatch& next) {
  std::span<const BatchEntry> batch = next();
  if (batch.empty()) return;
  PlannedStep* step = &impl_->begin(batch);
  std::exception_ptr failure;  // nothing may leave the region by itself
  Executor& executor = *impl_->model.engine().impl().executor;
  const RunResult last =
      executor.run_each(step->job(), &impl_->cancel, [&](const RunResult& result) noexcept -> Job {
        try {
          impl_->finish(*std::exchange(step, nullptr), result);
          batch = next();
          if (batch.empty()) return {};
          step = &impl_->begin(batch);
          return step->job();
        } catch (...) {
          failure = std::current_exception();
          return {};
        }
      });
  if (failure) std::rethrow_exception(failure);
  if (step != nullptr) impl_->finish(*step, last);  // cancelled
}

const Plan& Session::plan(std::size_t tokens, std::size_t logits) {
  check_option("the number of tokens in a batch", tokens, 1, impl_->options.max_batch);
  check_option("the number of rows of logits", logits, 0, tokens);
  impl_->logit_count = 0;  // planning may move the arena
  return impl_->step_for({tokens, logits}).plan;
}

const Profile* Session::profile() const noexcept { return impl_->profile.get(); }

std::span<const float> Session::logits(std::size_t i) const {
  if (i >= impl_->logit_count) {
    throw Error(ErrorCode::usage, "the last batch asked for " + std::to_string(impl_->logit_count) +
                                      " rows of logits, row " + std::to_string(i) + " was read");
  }
  const std::size_t vocabulary = impl_->model.info().vocabulary;
  return impl_->logits.subspan(i * vocabulary, vocabulary);
}

std::size_t Session::length(std::size_t slot) const {
  check_option("slot", slot, 0, impl_->options.slots - 1);
  return impl_->cache.blocks().evaluated(slot);
}

void Session::truncate(std::size_t slot, std::size_t length) {
  check_option("slot", slot, 0, impl_->options.slots - 1);
  check_option("length", length, 0, impl_->cache.blocks().length(slot));
  impl_->cache.blocks().truncate(slot, length);
}

std::size_t Session::adopt(std::size_t slot, std::span<const std::int32_t> tokens) {
  check_option("slot", slot, 0, impl_->options.slots - 1);
  if (impl_->cache.blocks().length(slot) != 0) {
    throw Error(ErrorCode::usage,
                "slot " + std::to_string(slot) + " is not empty and cannot adopt a beginning");
  }
  return impl_->cache.blocks().adopt(slot, tokens);
}

bool Session::reserve(std::size_t slot, std::span<const std::int32_t> tokens) {
  check_option("slot", slot, 0, impl_->options.slots - 1);
  const std::size_t length = impl_->cache.blocks().length(slot);
  check_option("the number of positions of a slot", length + tokens.size(), 0,
               impl_->options.context);
  return impl_->cache.blocks().reserve(slot, tokens);
}

std::size_t Session::room(std::size_t slot) const {
  check_option("slot", slot, 0, impl_->options.slots - 1);
  return impl_->cache.blocks().room(slot);
}

CacheRoom Session::cache_room() const noexcept {
  const KvBlocks& blocks = impl_->cache.blocks();
  return {blocks.options().blocks * kKvBlock, blocks.available() * kKvBlock,
          blocks.idle() * kKvBlock, kKvBlock};
}

std::atomic<bool>& Session::cancel_flag() noexcept { return impl_->cancel; }
const SessionOptions& Session::options() const noexcept { return impl_->options; }
std::size_t Session::cache_bytes() const noexcept { return impl_->cache.bytes(); }
MemoryReport Session::cache_memory() const {
  MemoryCount count(impl_->model.engine().impl().page_policy().nodes());
  for (const KvCache::Part& part : impl_->cache.parts()) {
    count.add(part.data, part.bytes, part.os_node);
  }
  return count.report();
}
const StepStats& Session::stats() const noexcept { return impl_->stats; }
std::span<const ActivationSquares> Session::activation_squares() const noexcept {
  return impl_->squares;
}
const Model& Session::model() const noexcept { return impl_->model; }

}  // namespace lockstep
