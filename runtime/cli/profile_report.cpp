// Tables and timeline of a profile.
#include "runtime/cli/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "runtime/cli/console.h"
#include "runtime/cli/table.h"
#include "runtime/output_file.h"

namespace lockstep::cli {
namespace {

// "matmul attn_q": without the number of the layer and the end of the tensor's name.
std::string short_name(const PlanProfile::NodeTotal& node) {
  if (node.op != "matmul") return node.op;
  std::string tensor = node.detail.substr(0, node.detail.find(' '));
  if (tensor.starts_with("blk.")) tensor.erase(0, tensor.find('.', 4) + 1);
  if (tensor.ends_with(".weight")) tensor.resize(tensor.size() - 7);
  return "matmul " + tensor;
}

// By stage, what is done in it: its matmuls, or else all it does.
std::vector<std::string> stage_names(const PlanProfile& plan) {
  std::vector<std::string> names(plan.stages.size());
  std::vector<std::string> matmuls(plan.stages.size());
  const auto append = [](std::string& text, std::string_view name) {
    text.append(text.empty() ? "" : " + ").append(name);
  };
  for (const PlanProfile::NodeTotal& node : plan.nodes) {
    const std::string name = short_name(node);
    append(names[node.stage], name);
    if (node.op == "matmul") append(matmuls[node.stage], std::string_view(name).substr(7));
  }
  for (std::size_t stage = 0; stage < names.size(); ++stage) {
    if (!matmuls[stage].empty()) names[stage] = std::move(matmuls[stage]);
  }
  return names;
}

struct Line {
  std::string name;
  std::size_t count = 0;  // stages or nodes
  std::uint64_t weight_bytes = 0;
  double seconds = 0, slowest = 0, waited = 0;
};

Line& line_of(std::vector<Line>& lines, const std::string& name) {
  const auto found = std::ranges::find(lines, name, &Line::name);
  if (found != lines.end()) return *found;
  lines.push_back(
      {.name = name, .count = 0, .weight_bytes = 0, .seconds = 0, .slowest = 0, .waited = 0});
  return lines.back();
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

std::string rate(double bytes, double seconds) {
  return bytes > 0 && seconds > 0 ? fmt::format("{:.1f}", bytes / seconds / 1e9) : "-";
}

void add_stages(const PlanProfile& plan, std::string& text) {
  const std::vector<std::string> names = stage_names(plan);
  std::vector<Line> lines;
  double seconds = 0;
  double waited = 0;
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    Line& line = line_of(lines, names[stage]);
    const PlanProfile::StageTotal& total = plan.stages[stage];
    ++line.count;
    line.seconds += total.seconds;
    line.slowest += total.slowest;
    line.waited += total.waited;
    seconds += total.seconds;
    waited += total.waited;
  }
  for (const PlanProfile::NodeTotal& node : plan.nodes) {
    line_of(lines, names[node.stage]).weight_bytes += node.weight_bytes;
  }
  const auto runs = static_cast<double>(plan.runs);
  Table table("lrrrrrr");
  table.add({"stage", "barriers", "ms", "share", "slowest ms", "waiting", "GB/s"});
  for (const Line& line : lines) {
    table.add({line.name, std::to_string(line.count),
               fmt::format("{:.3f}", 1e3 * line.seconds / runs), percent(line.seconds, seconds),
               fmt::format("{:.3f}", 1e3 * line.slowest / runs), percent(line.waited, line.seconds),
               rate(static_cast<double>(line.weight_bytes) * runs, line.seconds)});
  }
  table.add({"all", std::to_string(plan.stages.size()), fmt::format("{:.3f}", 1e3 * seconds / runs),
             percent(seconds, seconds), "", percent(waited, seconds), ""});
  table.render(text);
}

void add_ops(const PlanProfile& plan, std::string& text) {
  std::vector<Line> lines;
  double seconds = 0;
  for (const PlanProfile::NodeTotal& node : plan.nodes) {
    Line& line = line_of(lines, short_name(node));
    ++line.count;
    line.seconds += node.seconds;
    line.weight_bytes += node.weight_bytes;
    seconds += node.seconds;
  }
  std::ranges::stable_sort(lines, std::ranges::greater(), &Line::seconds);
  const auto runs = static_cast<double>(plan.runs);
  Table table("lrrrr");
  table.add({"op", "nodes", "ms of all workers", "share", "GB/s a worker"});
  for (const Line& line : lines) {
    table.add({line.name, std::to_string(line.count),
               fmt::format("{:.3f}", 1e3 * line.seconds / runs), percent(line.seconds, seconds),
               rate(static_cast<double>(line.weight_bytes) * runs, line.seconds)});
  }
  table.render(text);
}

double seconds_of(const PlanProfile* plan) {
  double seconds = 0;
  for (const PlanProfile::StageTotal& stage : plan->stages) seconds += stage.seconds;
  return seconds;
}

}  // namespace

std::string profile_text(const Profile& profile) {
  constexpr std::size_t kShown = 4;
  std::vector<const PlanProfile*> plans;
  for (const PlanProfile& plan : profile.plans()) plans.push_back(&plan);
  std::ranges::stable_sort(plans, std::ranges::greater(), seconds_of);
  double rest = 0;
  for (std::size_t i = kShown; i < plans.size(); ++i) rest += seconds_of(plans[i]);
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, plans.size()); ++i) {
    const PlanProfile& plan = *plans[i];
    if (plan.runs == 0) continue;
    text += fmt::format("{} step{} of {} token{}, {} workers; times are means of a step\n",
                        plan.runs, plan.runs == 1 ? "" : "s", plan.tokens,
                        plan.tokens == 1 ? "" : "s", plan.workers);
    add_stages(plan, text);
    text += "\n";
    add_ops(plan, text);
    text += "\n";
  }
  if (plans.size() > kShown) {
    text += fmt::format("{} other shapes of step: {:.1f} ms in all\n", plans.size() - kShown,
                        1e3 * rest);
  }
  return text;
}

std::string profile_trace(const Profile& profile) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  std::vector<std::vector<std::string>> names;
  for (const PlanProfile& plan : profile.plans()) {
    names.push_back(stage_names(plan));
    for (std::string& name : names.back()) name = nlohmann::json(name).dump();
  }
  const double zero = profile.events().empty() ? 0 : profile.events().front().times.begin;
  const auto add = [&](const std::string& name, const ProfileEvent& event, double from, double to) {
    text += fmt::format(
        "{}{{\"name\":{},\"ph\":\"X\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
        "\"args\":{{\"stage\":{},\"tokens\":{}}}}}",
        text.back() == '\n' && text[text.size() - 2] == '[' ? "" : ",\n", name, event.worker,
        1e6 * (from - zero), 1e6 * (to - from), event.stage, profile.plans()[event.plan].tokens);
  };
  for (const ProfileEvent& event : profile.events()) {
    add(names[event.plan][event.stage], event, event.times.begin, event.times.done);
    add("\"barrier\"", event, event.times.done, event.times.left);
  }
  return text + "\n]}\n";
}

void report_profile(const Profile& profile, const std::filesystem::path& trace) {
  show_text(profile_text(profile));
  if (trace.empty()) return;
  OutputFile file(trace);
  const std::string text = profile_trace(profile);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
  if (profile.events().size() == Profile::kMaxEvents) {
    show_note(
        fmt::format("{} holds the first {} events only", trace.string(), Profile::kMaxEvents));
  }
}

}  // namespace lockstep::cli
