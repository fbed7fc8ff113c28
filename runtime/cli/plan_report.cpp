// A plan as text and as JSON.
#include "runtime/cli/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/cli/table.h"
#include "runtime/cli/units.h"
#include "runtime/fusions.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(ops::Partition::Kind kind) {
  static constexpr const char* kNames[] = {"rows", "columns", "units", "replicated"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(Schedule schedule) {
  static constexpr const char* kNames[] = {"automatic", "static", "dynamic"};
  return kNames[static_cast<std::size_t>(schedule)];
}

// What the report needs and the plan does not store.
class Facts {
 public:
  explicit Facts(const Plan& plan) : plan_(plan), stage_of_(plan.nodes().size()) {
    for (std::size_t stage = 0; stage < plan.stages().size(); ++stage) {
      const Stage& of = plan.stages()[stage];
      for (std::size_t node = of.first; node < of.last; ++node) stage_of_[node] = stage;
      // A stage counts for the part of the model that ends it.
      barriers_[plan.section(plan.nodes()[of.last - 1])] += 1;
    }
    for (std::uint32_t node = 0; node < plan.nodes().size(); ++node) {
      maker_[plan.nodes()[node].output] = node;
    }
  }

  std::size_t stage_of(std::size_t node) const { return stage_of_[node]; }
  const std::string& section_of(const Stage& stage) const {
    return plan_.section(plan_.nodes()[stage.last - 1]);
  }
  const std::map<std::string, std::size_t>& barriers() const { return barriers_; }
  // The most that any layer has, 0 without layers.
  std::size_t barriers_per_layer() const {
    std::size_t most = 0;
    for (const auto& [section, count] : barriers_) {
      if (section.starts_with("layer ")) most = std::max(most, count);
    }
    return most;
  }
  std::size_t layers() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        barriers_, [](const auto& entry) { return entry.first.starts_with("layer "); }));
  }
  std::uint64_t weight_bytes(const Stage& stage) const {
    std::uint64_t bytes = 0;
    for (std::size_t node = stage.first; node < stage.last; ++node) {
      bytes += plan_.nodes()[node].op->weight_bytes();
    }
    return bytes;
  }
  // Names of the fusions by which the node runs in the stage of what it reads.
  std::vector<std::string> fusions_of(std::size_t node) const {
    std::vector<std::string> names;
    for (const std::uint32_t input : plan_.nodes()[node].inputs) {
      const auto maker = maker_.find(input);
      if (maker == maker_.end() || stage_of_[maker->second] != stage_of_[node]) continue;
      const Fusion* fusion =
          find_fusion(plan_.nodes()[maker->second].op->name(), plan_.nodes()[node].op->name());
      if (fusion && std::ranges::find(names, fusion->name) == names.end()) {
        names.emplace_back(fusion->name);
      }
    }
    return names;
  }
  std::set<std::string> fusions() const {
    std::set<std::string> names;
    for (std::size_t node = 0; node < plan_.nodes().size(); ++node) {
      for (std::string& name : fusions_of(node)) names.insert(std::move(name));
    }
    return names;
  }

 private:
  const Plan& plan_;
  std::vector<std::size_t> stage_of_;
  std::map<std::string, std::size_t> barriers_;
  std::map<std::uint32_t, std::uint32_t> maker_;
};

std::string text_of(const ops::TensorType& type) {
  return fmt::format("{} {}", ops::name_of(type.dtype), ops::to_string(type.shape));
}

Json slice_json(const ops::Slice& slice) { return Json::array({slice.begin, slice.end}); }

Json stage_json(const Plan& plan, const Facts& facts, std::size_t index) {
  const Stage& stage = plan.stages()[index];
  Json chains = Json::array();
  for (const Chain& chain : stage.chains) {
    Json own = Json::array();
    for (const ops::Slice& slice : chain.own) own.push_back(slice_json(slice));
    chains.push_back({{"nodes", chain.nodes},
                      {"split", name_of(chain.partition.kind)},
                      {"extent", chain.partition.extent},
                      {"align", chain.partition.align},
                      {"own", std::move(own)}});
  }
  Json chunks = Json::array();
  for (std::size_t worker = 0; worker < stage.chunks.size(); ++worker) {
    for (const Chunk& chunk : stage.chunks[worker]) {
      chunks.push_back(
          {{"worker", worker}, {"chain", chunk.chain}, {"part", slice_json(chunk.part)}});
    }
  }
  return {{"stage", index},
          {"section", facts.section_of(stage)},
          {"weight_bytes", facts.weight_bytes(stage)},
          {"schedule", stage.chunks.empty() ? "static" : "dynamic"},
          {"replicated", stage.replicated},
          {"chains", std::move(chains)},
          {"chunks", std::move(chunks)}};
}

Json node_json(const Plan& plan, const Facts& facts, std::size_t index) {
  const PlannedNode& node = plan.nodes()[index];
  const ops::TensorType& type = plan.type(node.output);
  return {{"node", index},
          {"op", node.op->name()},
          {"detail", node.op->detail()},
          {"section", plan.section(node)},
          {"stage", facts.stage_of(index)},
          {"inputs", node.inputs},
          {"output", node.output},
          {"type", text_of(type)},
          {"split", name_of(node.partition.kind)},
          {"fusions", facts.fusions_of(index)},
          {"weight_bytes", node.op->weight_bytes()}};
}

std::string joined(const auto& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// "rows 0-1023, 1024-2047" of up to four workers.
std::string ranges(const Chain& chain) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t worker = 0; worker < std::min(kShown, chain.own.size()); ++worker) {
    const ops::Slice& own = chain.own[worker];
    text += worker == 0 ? "" : ", ";
    text += own.empty() ? "-" : fmt::format("{}-{}", own.begin, own.end - 1);
  }
  return text + (chain.own.size() > kShown ? ", ..." : "");
}

void add_node(Table& table, const Plan& plan, const Facts& facts, std::uint32_t index,
              const std::string& work) {
  const PlannedNode& node = plan.nodes()[index];
  const std::vector<std::string> fused = facts.fusions_of(index);
  table.add({"", std::string(node.op->name()), text_of(plan.type(node.output)), work,
             node.op->detail(), fused.empty() ? "" : "fused: " + joined(fused)});
}

void add_stage(std::string& text, const Plan& plan, const Facts& facts, std::size_t index) {
  const Stage& stage = plan.stages()[index];
  const std::uint64_t bytes = facts.weight_bytes(stage);
  text += fmt::format(" stage {}{}{}\n", index,
                      bytes == 0 ? "" : ", reads " + humane_bytes(bytes) + " of weights",
                      stage.chunks.empty() ? "" : ", with chunks");
  Table table("llllll");
  for (const std::uint32_t node : stage.replicated) {
    add_node(table, plan, facts, node, "everyone, all");
  }
  for (std::uint32_t c = 0; c < stage.chains.size(); ++c) {
    const Chain& chain = stage.chains[c];
    std::size_t given = 0;
    for (const std::vector<Chunk>& chunks : stage.chunks) {
      given += static_cast<std::size_t>(
          std::ranges::count_if(chunks, [&](const Chunk& chunk) { return chunk.chain == c; }));
    }
    const std::string work = fmt::format("{} {}{}", name_of(chain.partition.kind), ranges(chain),
                                         given == 0 ? "" : fmt::format("; {} chunks", given));
    for (const std::uint32_t node : chain.nodes) {
      add_node(table, plan, facts, node, node == chain.nodes.front() ? work : "the same");
    }
  }
  table.render(text);
}

// The text without the numbers of its layer and stages.
std::string signature(const std::string& text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    kept += text[at++];
    if (!kept.ends_with("blk.") && !kept.ends_with("stage ")) continue;
    at = std::min(text.find_first_not_of("0123456789", at), text.size());
  }
  return kept;
}

std::string after_blank(const std::string& text) { return text.substr(text.find(' ') + 1); }

void add_stages(std::string& text, const Plan& plan, const Facts& facts) {
  std::string previous;
  std::string same_from;
  std::string same_to;
  const auto flush = [&] {
    if (same_from.empty()) return;
    // "layers 2 to 21"
    text += same_from == same_to ? fmt::format("{}: as the one before\n", same_from)
                                 : fmt::format("{}s {} to {}: as the one before\n",
                                               same_from.substr(0, same_from.find(' ')),
                                               after_blank(same_from), after_blank(same_to));
    same_from.clear();
  };
  const std::vector<Stage>& stages = plan.stages();
  for (std::size_t at = 0; at < stages.size();) {
    const std::string& section = facts.section_of(stages[at]);
    std::string part;
    for (; at < stages.size() && facts.section_of(stages[at]) == section; ++at) {
      add_stage(part, plan, facts, at);
    }
    if (signature(part) == previous) {
      if (same_from.empty()) same_from = section;
      same_to = section;
      continue;
    }
    flush();
    previous = signature(part);
    const std::size_t barriers = facts.barriers().at(section);
    text += fmt::format("{}, {} barrier{}\n", section.empty() ? "graph" : section, barriers,
                        barriers == 1 ? "" : "s") +
            part;
  }
  flush();
}

}  // namespace

Json plan_json(const PlanOf& of, const Plan& plan) {
  const Facts facts(plan);
  Json stages = Json::array();
  for (std::size_t i = 0; i < plan.stages().size(); ++i) {
    stages.push_back(stage_json(plan, facts, i));
  }
  Json nodes = Json::array();
  for (std::size_t i = 0; i < plan.nodes().size(); ++i) {
    nodes.push_back(node_json(plan, facts, i));
  }
  Json buffers = Json::array();
  for (const Plan::Buffer& buffer : plan.buffers()) {
    buffers.push_back({{"value", buffer.value},
                       {"name", buffer.name},
                       {"offset", buffer.offset},
                       {"bytes", buffer.bytes},
                       {"first_stage", buffer.first_stage},
                       {"last_stage", buffer.last_stage}});
  }
  return {{"model", of.model},
          {"tokens", of.tokens},
          {"logits", of.logits},
          {"workers", plan.workers()},
          {"numa_nodes", plan.options().numa_nodes},
          {"schedule", name_of(plan.options().schedule)},
          {"reference", plan.options().reference},
          {"fusions", facts.fusions()},
          {"unfused", plan.options().unfused},
          {"barriers", plan.stages().size()},
          {"layers", facts.layers()},
          {"barriers_per_layer", facts.barriers_per_layer()},
          {"weight_bytes", plan.weight_bytes()},
          {"arena_bytes", plan.arena_bytes()},
          {"scratch_bytes_per_worker", plan.scratch_bytes_per_worker()},
          {"stages", std::move(stages)},
          {"nodes", std::move(nodes)},
          {"buffers", std::move(buffers)}};
}

std::string plan_text(const PlanOf& of, const Plan& plan, bool buffers) {
  const Facts facts(plan);
  std::string text = fmt::format("{}: {} token{}, {} row{} of logits\n", of.model, of.tokens,
                                 of.tokens == 1 ? "" : "s", of.logits, of.logits == 1 ? "" : "s");
  text += fmt::format("  barriers  {} a run, {} a layer\n", plan.stages().size(),
                      facts.barriers_per_layer());
  text += fmt::format("  workers   {} on {} NUMA node{}, schedule {}\n", plan.workers(),
                      plan.options().numa_nodes, plan.options().numa_nodes == 1 ? "" : "s",
                      name_of(plan.options().schedule));
  text += fmt::format("  weights   {} a run\n", humane_bytes(plan.weight_bytes()));
  text +=
      fmt::format("  memory    arena {}, of which scratch {} a worker\n",
                  humane_bytes(plan.arena_bytes()), humane_bytes(plan.scratch_bytes_per_worker()));
  text += fmt::format("  fused     {}\n", joined(facts.fusions()));
  if (!plan.options().unfused.empty()) {
    text += fmt::format("  not fused {}\n", joined(plan.options().unfused));
  }
  text += "\n";
  add_stages(text, plan, facts);
  if (!buffers) return text;
  text += "\narena\n";
  Table table("lrrl");
  table.add({"value", "offset", "bytes", "stages"});
  for (const Plan::Buffer& buffer : plan.buffers()) {
    table.add({fmt::format("{} {}", buffer.value, buffer.name), grouped(buffer.offset),
               grouped(buffer.bytes), fmt::format("{}-{}", buffer.first_stage, buffer.last_stage)});
  }
  table.render(text);
  return text;
}

}  // namespace lockstep::cli
