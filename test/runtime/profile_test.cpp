// Plans as sessions make them, fusions by name, and profiles: what is told must be what is run.
#include <algorithm>
#include <set>

#include "runtime/fusions.h"
#include "runtime/plan.h"
#include "runtime/profile.h"
#include "support/catch.h"
#include "support/model_run.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::vector<std::int32_t> kTokens{1, 556, 557, 262, 406, 13, 99};

std::set<std::string> names_of_fusions() {
  std::set<std::string> names;
  for (const Fusion& fusion : fusions()) names.emplace(fusion.name);
  return names;
}

}  // namespace

TEST_CASE("decoding has five barriers a layer, planned and counted") {
  for (const unsigned threads : {1u, 2u, 3u}) {
    const Engine engine = make_engine(threads);
    const Model model = Model::load(engine, demo_model());
    Session session(model, {.context = 8});
    const std::size_t planned = session.plan(1, 1).stages().size();
    CHECK(planned == 5 * model.info().layers + 1);
    session.evaluate(std::vector<BatchEntry>{{1, 0, 0, true}});
    CHECK(session.stats().barriers == planned);
  }
}

TEST_CASE("a plan is made once for a shape, and asking for it changes nothing") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session session(model, {.context = 16, .max_batch = 4});
  const Plan* const plan = &session.plan(3, 1);
  CHECK(&session.plan(3, 1) == plan);
  CHECK(&session.plan(3, 0) != plan);
  CHECK(session.length(0) == 0);
  CHECK_THROWS_AS(session.plan(0, 0), Error);
  CHECK_THROWS_AS(session.plan(5, 1), Error);
  CHECK_THROWS_AS(session.plan(2, 3), Error);
  CHECK(session.profile() == nullptr);
}

TEST_CASE("every fusion can be switched off by name: more stages or other splits, the same bits") {
  const Engine engine = make_engine(3);
  const Model model = Model::load(engine, demo_model());
  Session fused(model, {.context = 16});
  const std::uint64_t expected = hash_logits(feed(fused, kTokens, 3, true));
  std::vector<std::string> all;
  for (const std::string& name : names_of_fusions()) {
    INFO(name);
    Session session(model, {.context = 16, .unfused = {name}});
    CHECK(hash_logits(feed(session, kTokens, 3, true)) == expected);
    all.push_back(name);
  }
  Session session(model, {.context = 16, .unfused = all});
  CHECK(hash_logits(feed(session, kTokens, 3, true)) == expected);
  CHECK(session.plan(1, 1).stages().size() > fused.plan(1, 1).stages().size());
  // No pair that has a name is left in one stage.
  const Plan& plan = session.plan(1, 1);
  for (const Stage& stage : plan.stages()) {
    for (std::size_t consumer = stage.first; consumer < stage.last; ++consumer) {
      for (std::size_t producer = stage.first; producer < consumer; ++producer) {
        const std::vector<std::uint32_t>& inputs = plan.nodes()[consumer].inputs;
        if (std::ranges::find(inputs, plan.nodes()[producer].output) == inputs.end()) continue;
        CHECK(find_fusion(plan.nodes()[producer].op->name(), plan.nodes()[consumer].op->name()) ==
              nullptr);
      }
    }
  }
}

TEST_CASE("a fusion that does not exist is refused with those that do") {
  const Engine engine = make_engine(1);
  const Model model = Model::load(engine, demo_model());
  try {
    const Session session(model, {.context = 8, .unfused = {"everything"}});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK(std::string(error.what()).find("\"everything\"") != std::string::npos);
    for (const std::string& name : names_of_fusions()) {
      CHECK(std::string(error.what()).find(name) != std::string::npos);
    }
  }
}

TEST_CASE("a profile holds every run, stage and node, and changes no bit") {
  const Engine engine = make_engine(2);
  const Model model = Model::load(engine, demo_model());
  Session plain(model, {.context = 16});
  Session session(model, {.context = 16, .profile = true});
  CHECK(hash_logits(feed(session, kTokens, 1, true)) == hash_logits(feed(plain, kTokens, 1, true)));
  REQUIRE(session.profile() != nullptr);
  const Profile& profile = *session.profile();
  REQUIRE(profile.plans().size() == 1);
  const PlanProfile& plan = profile.plans()[0];
  const Plan& made = session.plan(1, 1);
  CHECK(plan.runs == kTokens.size());
  CHECK(plan.tokens == 1);
  CHECK(plan.workers == engine.threads());
  REQUIRE(plan.stages.size() == made.stages().size());
  REQUIRE(plan.nodes.size() == made.nodes().size());
  std::uint64_t bytes = 0;
  for (const PlanProfile::NodeTotal& node : plan.nodes) {
    CHECK(node.stage < plan.stages.size());
    bytes += node.weight_bytes;
  }
  CHECK(bytes == made.weight_bytes());
  for (const PlanProfile::StageTotal& stage : plan.stages) {
    CHECK(stage.slowest > 0);
    CHECK(stage.seconds >= stage.slowest);
    CHECK(stage.waited >= 0);
  }
  CHECK(profile.events().size() == plan.runs * plan.stages.size() * plan.workers);
  for (const ProfileEvent& event : profile.events()) {
    CHECK(event.times.begin <= event.times.done);
    CHECK(event.times.done <= event.times.left);
  }
}
