// The public API: Engine (a team of pinned workers), Model (weights placed for that team), Session
// (sequences with their KV cache, advanced one batch at a time).
//
//   auto engine = lockstep::Engine::create({});
//   auto model = lockstep::Model::load(engine, "model.gguf");
//   lockstep::Session session(model, {.context = 256, .slots = 4});
//   session.evaluate(batch);          // Batch: tokens of one or many sequences
//   session.logits(0);                // f32 [vocabulary] of the first entry that asked for them
//
// The library never prints, exits or sets environment variables. Loading and building throw
// lockstep::Error. The logits of a sequence depend on the model file, the kernel set and that
// sequence's tokens alone: not on threads, batch mates, chunking or placement. An Engine must not
// be used in a child of fork(): OpenMP teams do not survive it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/error.h"

namespace lockstep {

class Tokenizer;
class GgufFile;

namespace topology {
struct Machine;
struct ThreadBudget;
struct Placement;
}  // namespace topology

// Where weights and caches lie on a machine with several NUMA nodes. All give the same bits.
enum class NumaPolicy : std::uint8_t {
  rows,        // a worker's rows, and the heads that it reads, on its own node
  one_node,    // workers and memory of one node alone
  interleave,  // page by page on all nodes that have workers
  none,        // wherever the loading thread touches them first, as most programs have it
  replicate,   // as rows, with a copy of all weights on every node: any worker reads any row nearby
};

// What belongs together: workers are spread over these, and one_node means one of them.
enum class NumaLevel : std::uint8_t { socket, node, cache };

struct EngineOptions {
  unsigned threads = 0;  // 0: the thread budget (affinity mask, cgroup quota, physical cores)
  // Force an instruction set by name; empty: the LOCKSTEP_ISA variable, else the best.
  std::string isa = {};
  bool pin = true;  // one worker per core, unless the user bound OpenMP himself
  NumaPolicy numa = NumaPolicy::rows;
  NumaLevel level = NumaLevel::node;
  std::vector<unsigned> nodes = {};       // use these NUMA nodes (OS indices) alone; empty: all
  std::vector<unsigned> processors = {};  // and these processors
  bool smt = false;                       // a worker on every hardware thread of a core
  bool huge_pages = true;                 // advise them for weights and caches
};

// Bytes of memory that workers of one node read, and where they really lie.
struct NodeBytes {
  unsigned node = 0;        // OS index
  std::uint64_t owned = 0;  // read by the workers of this node, touched pages
  std::uint64_t local = 0;  // of these, on this node
};

struct MemoryReport {
  std::vector<NodeBytes> nodes;  // those that have workers
  std::uint64_t untouched = 0;   // bytes without a page yet
  std::uint64_t huge_pages = 0;  // bytes in huge pages
  std::string unknown = {};      // why the system does not tell; "" if it does

  std::uint64_t owned() const noexcept;
  std::uint64_t remote() const noexcept;  // owned, not local
};

// Seconds, summed over the workers.
struct WorkerTime {
  double running = 0;  // on a processor, waiting at barriers included
  double starved = 0;  // ready to run while something else had the processor

  double starved_share() const noexcept { return starved > 0 ? starved / (running + starved) : 0; }
};

// A team of workers. Copies share it. Calls on one Engine must come from one thread at a time.
class Engine {
 public:
  // Throws Error(usage) for an unknown instruction set or an absurd thread count,
  // Error(no_resource).
  static Engine create(const EngineOptions& options);

  unsigned threads() const noexcept;            // workers that OpenMP really granted
  unsigned requested_threads() const noexcept;  // what was asked for
  std::string_view isa() const noexcept;
  std::string_view openmp_runtime() const noexcept;
  // How this runtime waits at barriers, as the environment told it: "spins 200 ms, then sleeps".
  std::string_view wait_policy() const noexcept;
  NumaPolicy numa() const noexcept;
  // What the system gave the workers since the engine was made; zeros where it does not tell.
  WorkerTime worker_time() const;
  const topology::Machine& machine() const noexcept;
  const topology::ThreadBudget& budget() const noexcept;
  const topology::Placement& placement() const noexcept;
  // One line each: fewer threads granted than asked, oversubscription, two workers on one core, ...
  const std::vector<std::string>& warnings() const noexcept;

  struct Impl;
  Impl& impl() const noexcept { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// Called while weights load, from the loading thread: bytes read so far and in all. What it throws
// ends the loading and comes out of Model::load().
using LoadProgress = void (*)(void* context, std::uint64_t done, std::uint64_t total);

class Model;

struct ModelOptions {
  // Called when all is known and nothing is read: the model has its info and tokenizer, a session
  // can be made and planned, but not evaluated. May throw to refuse.
  std::function<void(const Model& model)> before_load = {};
  LoadProgress progress = nullptr;
  void* progress_context = nullptr;
};

struct ModelInfo {
  std::string architecture;
  std::string name;
  std::size_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0;
  std::size_t vocabulary = 0;
  std::size_t context = 0;  // trained context
  std::uint64_t parameters = 0;
  std::uint64_t weight_bytes = 0;    // packed, in memory
  std::uint64_t load_bytes = 0;      // of weights, read from the file
  double load_seconds = 0;           // reading, placing and packing them
  std::uint64_t decode_bytes = 0;    // weight bytes read for one token: the figure behind GB/s
  std::vector<std::string> kernels;  // distinct kernel names in use
  std::string chat_template;         // "" if the file has none
};

// Immutable weights, placed for one engine. Copies share them.
class Model {
 public:
  // Throws Error: no_input, bad_model (file, tensor or key, offset, reason), no_resource.
  static Model load(const Engine& engine, const std::filesystem::path& path,
                    const ModelOptions& options = {});

  const ModelInfo& info() const noexcept;
  // Asks the system where every page of the weights is: remote() is what decoding a token reads
  // from other nodes.
  MemoryReport memory() const;
  const Tokenizer& tokenizer() const noexcept;
  const Engine& engine() const noexcept;

  struct Impl;
  Impl& impl() const noexcept { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// How keys and values are kept. q8_0: blocks of 32 values of 8 bits with one f16 scale, a quarter
// of f32; the heads of the model must be whole blocks.
enum class KvType : std::uint8_t { f16, f32, q8_0 };

// How the rows of a node are divided among the workers; all give the same bits. automatic: the
// slices of static_rows, and on a single NUMA node chunks at their ends that other workers may take
// over, where that pays. dynamic: such chunks everywhere.
enum class Schedule : std::uint8_t { automatic, static_rows, dynamic };

class Plan;
class Profile;

struct SessionOptions {
  std::size_t context = 0;      // positions per slot; 0: the model's trained context
  std::size_t slots = 1;        // sequences that can be alive at once
  std::size_t max_batch = 512;  // tokens per evaluate()
  KvType kv_type = KvType::f32;
  // Positions that the cache holds for all slots together, rounded down to whole blocks; 0: as many
  // as all slots can have. With fewer, sequences share what there is, and evaluate() and reserve()
  // tell when it is used up.
  std::size_t cache_positions = 0;
  bool share_prefixes = false;  // keep what was computed, so that adopt() finds it
  bool reference = false;       // scalar row-wise kernels, no fusions: the definition of right
  Schedule schedule = Schedule::automatic;
  std::vector<std::string> unfused =
      {};  // names of fusions (runtime/fusions.h) that are switched off
  // Sum up the squares of what every weight matrix is multiplied with; changes no logits.
  bool activation_squares = false;
  bool time_barriers = false;  // fill StepStats::barrier_seconds
  bool profile = false;        // keep a profile of all steps
};

// What one weight matrix was multiplied with so far: for each of its columns the sum of squares
// over the tokens, in the order of the steps.
struct ActivationSquares {
  std::string matrix;  // name of the weight tensor
  std::vector<double> sums;
  std::uint64_t tokens = 0;
};

// One token to process.
struct BatchEntry {
  std::int32_t token = 0;
  std::int32_t position = 0;  // 0-based; positions of a slot must be evaluated in order
  std::int32_t slot = 0;
  bool logits = false;  // want the logits after this token
};

// Positions of the cache, in whole blocks.
struct CacheRoom {
  std::size_t total = 0;
  std::size_t available = 0;  // not used by a slot
  std::size_t kept = 0;       // of these, still known to adopt()
  std::size_t block = 0;      // positions that are given to a slot at once
};

struct StepStats {
  std::uint64_t barriers = 0;      // barriers executed in the last evaluate()
  std::uint64_t weight_bytes = 0;  // weight bytes read by it
  double barrier_seconds = 0;      // time that a worker waited at the barriers, mean over workers
};

class Session {
 public:
  // Throws Error(no_resource) if the cache does not fit, Error(usage) for impossible options.
  Session(const Model& model, const SessionOptions& options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Advances sequences by the tokens of `batch` (1 .. max_batch entries, positions consecutive per
  // slot, starting where the slot ends). Throws Error(usage) and changes nothing if an entry is out
  // of range, Error(no_resource) if the cache is used up.
  void evaluate(std::span<const BatchEntry> batch);
  // The same for batch after batch in one parallel region, so that the team stays awake between
  // steps: `next` gives each batch, which must live until the call after it, and may read logits()
  // of the one before; an empty one ends the series. `next` runs on the calling thread and must not
  // use this engine otherwise. What it throws, and what evaluate() would throw, ends the series.
  using NextBatch = std::function<std::span<const BatchEntry>()>;
  void evaluate_each(const NextBatch& next);
  // Logits of the i-th entry of the last batch that asked for them: f32 [vocabulary].
  std::span<const float> logits(std::size_t i) const;

  // The plan of evaluate() for batches of `tokens` entries of which `logits` want logits, as
  // runtime/plan.h describes it. Valid until the next call of this or of evaluate().
  const Plan& plan(std::size_t tokens, std::size_t logits);
  // Null unless the options ask for it. See runtime/profile.h.
  const Profile* profile() const noexcept;

  // Positions held by a slot, and forgetting all from `length` on (0 empties the slot).
  std::size_t length(std::size_t slot) const;
  void truncate(std::size_t slot, std::size_t length);

  // Gives an empty slot the longest beginning of `tokens` that the cache still has from any slot,
  // of the next evaluate() included, but not all of them. Returns its length: the slot goes on from
  // there, with the same bits as if it had evaluated the beginning itself. 0 without
  // share_prefixes.
  std::size_t adopt(std::size_t slot, std::span<const std::int32_t> tokens);
  // Books room for tokens that the next evaluate() will have, behind those that the slot has or has
  // booked. False, and nothing is changed, if the cache is used up. evaluate() books what it is
  // given and was not booked; all that was booked must be in its batch. Throws Error(usage) for
  // more than the context.
  bool reserve(std::size_t slot, std::span<const std::int32_t> tokens);
  // How many tokens reserve() would take.
  std::size_t room(std::size_t slot) const;
  CacheRoom cache_room() const noexcept;

  // May be set from any thread or signal handler: evaluate() stops after at most one more stage and
  // throws Error(interrupted); the slots stay as long as they were before, what was booked and
  // adopted for that step is gone. Lower it to go on.
  std::atomic<bool>& cancel_flag() noexcept;

  const SessionOptions& options() const noexcept;
  std::size_t cache_bytes() const noexcept;
  // Where the pages of the cache are, head by head against the workers that read them in decoding.
  MemoryReport cache_memory() const;
  const StepStats& stats() const noexcept;
  // Empty unless the options ask for it. A step that was cancelled does not count; the output
  // matrix sees only tokens that want logits.
  std::span<const ActivationSquares> activation_squares() const noexcept;
  const Model& model() const noexcept;

  struct Impl;
  Impl& impl() const noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
