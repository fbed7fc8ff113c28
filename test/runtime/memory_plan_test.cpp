// Fitting a session into memory: sums, cuts and refusals.
#include "runtime/memory_plan.h"

#include "runtime/tokenizer/tokenizer.h"
#include "support/catch.h"
#include "support/model_run.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// 64 MiB are kept for what nobody counts.
topology::MemoryBudget with(std::uint64_t mebibytes) { return {(mebibytes + 64) * kMiB, "a fake"}; }

constexpr MemoryDemand kDemand{
    .weights = 500 * kMiB, .activations = 20 * kMiB, .cache_block = kMiB};

MemoryWish wish(std::size_t slots, std::size_t context, bool fixed = false) {
  MemoryWish wished;
  wished.session.slots = slots;
  wished.session.context = context;
  wished.session.share_prefixes = true;
  wished.context_fixed = fixed;
  return wished;
}

std::string refusal(const MemoryWish& wished, const topology::MemoryBudget& budget,
                    ErrorCode code = ErrorCode::no_resource) {
  try {
    plan_memory(kDemand, wished, budget);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("where there is enough, every slot gets its full context and one block is for copies") {
  const MemoryPlan plan = plan_memory(kDemand, wish(4, 1000), with(5000));
  CHECK(plan.context == 1000);
  CHECK(plan.cache_positions == (4 * 32 + 1) * 32);
  CHECK(plan.cache == 129 * kMiB);
  CHECK(plan.total() == (500 + 20 + 129) * kMiB);
  CHECK_FALSE(plan.cache_cut);
  CHECK_FALSE(plan.context_cut);
  CHECK(plan_memory(kDemand, wish(4, 1000), {}).cache == 129 * kMiB);  // nothing tells
}

TEST_CASE("where there is less, slots share what there is") {
  const MemoryPlan plan = plan_memory(kDemand, wish(4, 1000), with(520 + 50));
  CHECK(plan.context == 1000);
  CHECK(plan.cache == 50 * kMiB);
  CHECK(plan.cache_positions == 50 * 32);
  CHECK(plan.cache_cut);
  MemoryWish small = wish(4, 1000);
  small.cache_bytes = 40 * kMiB + 5;
  CHECK(plan_memory(kDemand, small, with(5000)).cache == 40 * kMiB);
}

TEST_CASE("a context that nobody insists on is cut to what fits, within reason") {
  const MemoryPlan plan = plan_memory(kDemand, wish(4, 1000), with(520 + 12));
  CHECK(plan.context == 11 * 32);
  CHECK(plan.context_cut);
  CHECK(plan.cache_positions == 12 * 32);
  const std::string text = refusal(wish(4, 1000), with(520 + 8));
  CHECK(has(text, "one sequence of 256 positions"));
  CHECK(has(text, "a fake leaves"));
  CHECK(plan_memory(kDemand, wish(4, 100), with(520 + 5)).context == 100);
  CHECK(has(refusal(wish(4, 100), with(520 + 4)), "one sequence of 100 positions"));
}

TEST_CASE("what is insisted on and does not fit is refused with all figures") {
  const std::string text = refusal(wish(4, 1000, true), with(520 + 32));
  CHECK(has(text, "weights 500.0 MiB"));
  CHECK(has(text, "activations 20.0 MiB"));
  CHECK(has(text, "one sequence of 1000 positions 33.0 MiB"));
  CHECK(has(text, "64.0 MiB for stacks and buffers come to 617.0 MiB"));
  CHECK(plan_memory(kDemand, wish(4, 1000, true), with(520 + 33)).context == 1000);
  CHECK(has(refusal(wish(1, 1000), with(100)), "come to"));
  MemoryWish small = wish(4, 1000, true);
  small.cache_bytes = 32 * kMiB;
  CHECK(has(refusal(small, with(5000), ErrorCode::usage), "too small"));
}

TEST_CASE("what a model demands is measured before it is read") {
  const Engine engine = make_engine(2);
  SessionOptions options{
      .context = 256, .slots = 8, .kv_type = KvType::f16, .share_prefixes = true};
  MemoryDemand before;
  bool called = false;
  ModelOptions load;
  load.before_load = [&](const Model& model) {
    called = true;
    CHECK(model.info().load_bytes == 0);
    CHECK(model.tokenizer().size() == model.info().vocabulary);
    before = measure_demand(model, options);
  };
  const Model model = Model::load(engine, demo_model(), load);
  REQUIRE(called);
  CHECK(model.info().load_bytes > 0);
  const MemoryDemand after = measure_demand(model, options);
  CHECK(before.weights == model.info().weight_bytes);
  CHECK(before.activations == after.activations);
  CHECK(before.activations > 512 * model.info().width * sizeof(float));
  options.cache_positions = 32 * 40;
  const Session session(model, options);
  CHECK(session.cache_bytes() == 40 * before.cache_block);
  CHECK(memory_budget_of(engine).bytes > kMiB);
}

TEST_CASE("a refusal before the load leaves nothing read") {
  const Engine engine = make_engine(1);
  ModelOptions load;
  bool read = false;
  load.progress = [](void* flag, std::uint64_t, std::uint64_t) {
    *static_cast<bool*>(flag) = true;
  };
  load.progress_context = &read;
  load.before_load = [](const Model&) { throw Error(ErrorCode::no_resource, "no"); };
  CHECK_THROWS_AS(Model::load(engine, demo_model(), load), Error);
  CHECK_FALSE(read);
}
