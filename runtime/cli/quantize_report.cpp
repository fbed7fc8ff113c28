// See quantize_report.h.
#include "runtime/cli/quantize_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/cli/table.h"
#include "runtime/cli/units.h"
#include "runtime/printable.h"
#include "runtime/utf8.h"

namespace lockstep::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBarWidth = 20;

double bits(std::uint64_t bytes, std::uint64_t elements) {
  return elements == 0 ? 0 : 8 * static_cast<double>(bytes) / static_cast<double>(elements);
}

double megabytes_per_second(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / 1e6 / seconds : 0;
}

struct FormatTotal {
  const quant::FormatTraits* format = nullptr;
  std::uint64_t tensors = 0, elements = 0, bytes = 0;
};

// The largest first.
std::vector<FormatTotal> totals_of(const quantize::FilePlan& plan) {
  std::vector<FormatTotal> totals;
  for (const quantize::PlannedTensor& tensor : plan.tensors) {
    auto found = std::find_if(totals.begin(), totals.end(), [&](const FormatTotal& total) {
      return total.format == tensor.target;
    });
    if (found == totals.end()) found = totals.insert(found, FormatTotal{tensor.target});
    ++found->tensors;
    found->elements += tensor.source->elements;
    found->bytes += tensor.bytes;
  }
  std::stable_sort(totals.begin(), totals.end(),
                   [](const FormatTotal& a, const FormatTotal& b) { return a.bytes > b.bytes; });
  return totals;
}

std::size_t encoded(const quantize::FilePlan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.tensors.begin(), plan.tensors.end(),
                    [](const quantize::PlannedTensor& tensor) { return !tensor.is_copy(); }));
}

}  // namespace

std::string plan_text(const quantize::FilePlan& plan) {
  std::string out;
  Table tensors("lllrlr");
  tensors.add({"tensor", "shape", "from", "bytes", "to", "bytes"});
  for (const quantize::PlannedTensor& tensor : plan.tensors) {
    tensors.add({printable(tensor.source->name),
                 fmt::format("{}", fmt::join(tensor.source->dims, " x ")),
                 std::string(tensor.source->format->name), grouped(tensor.source->bytes),
                 std::string(tensor.target->name), grouped(tensor.bytes)});
  }
  tensors.render(out);
  out += "\n";
  Table totals("lrrrr");
  totals.add({"format", "tensors", "elements", "bytes", "bits per weight"});
  for (const FormatTotal& total : totals_of(plan)) {
    totals.add({std::string(total.format->name), grouped(total.tensors), grouped(total.elements),
                humane_bytes(total.bytes),
                fmt::format("{:.2f}", bits(total.bytes, total.elements))});
  }
  totals.add({"total", grouped(plan.tensors.size()), grouped(plan.elements),
              humane_bytes(plan.bytes), fmt::format("{:.2f}", bits(plan.bytes, plan.elements))});
  totals.add({"before", grouped(plan.tensors.size()), grouped(plan.elements),
              humane_bytes(plan.source_bytes),
              fmt::format("{:.2f}", bits(plan.source_bytes, plan.elements))});
  totals.render(out);
  return out;
}

Json plan_json(const quantize::FilePlan& plan, const quantize::Request& request,
               const QuantizeRun& run) {
  Json out;
  out["input"] = sanitize_utf8(run.input);
  out["output"] = sanitize_utf8(run.output);
  out["type"] = request.mix->name;
  out["file_type"] = request.mix->file_type;
  out["dry_run"] = run.seconds <= 0;
  out["elements"] = plan.elements;
  out["input_bytes"] = plan.source_bytes;
  out["output_bytes"] = plan.bytes;
  out["input_bits_per_weight"] = bits(plan.source_bytes, plan.elements);
  out["output_bits_per_weight"] = bits(plan.bytes, plan.elements);
  out["encoded_tensors"] = encoded(plan);
  out["requantized_tensors"] = plan.requantized;
  if (run.seconds > 0) {
    out["threads"] = run.threads;
    out["seconds"] = run.seconds;
    out["input_megabytes_per_second"] = megabytes_per_second(plan.source_bytes, run.seconds);
  }
  out["tensors"] = Json::array();
  for (const quantize::PlannedTensor& tensor : plan.tensors) {
    Json row = {{"name", sanitize_utf8(tensor.source->name)}, {"shape", tensor.source->dims},
                {"from", tensor.source->format->name},        {"to", tensor.target->name},
                {"input_bytes", tensor.source->bytes},        {"output_bytes", tensor.bytes},
                {"importance", !tensor.importance.empty()}};
    if (tensor.fell_back()) row["instead_of"] = tensor.wanted->name;
    out["tensors"].push_back(std::move(row));
  }
  return out;
}

std::string summary_text(const quantize::FilePlan& plan, const quantize::Request& request,
                         const QuantizeRun& run) {
  return fmt::format(
      "{}: {}: {} ({:.2f} bits per weight) -> {} ({:.2f}) in {:.2f} s, {:.0f} MB/s read; {} of {} "
      "tensors encoded; {} {}",
      run.output, request.mix->name, humane_bytes(plan.source_bytes),
      bits(plan.source_bytes, plan.elements), humane_bytes(plan.bytes),
      bits(plan.bytes, plan.elements), run.seconds,
      megabytes_per_second(plan.source_bytes, run.seconds), encoded(plan), plan.tensors.size(),
      run.threads, run.threads == 1 ? "thread" : "threads");
}

std::string fallback_text(const quantize::PlannedTensor& tensor) {
  return fmt::format("{}: rows of {} values are no whole blocks of {} ({}): {} instead",
                     printable(tensor.source->name), tensor.source->dims[0], tensor.wanted->name,
                     tensor.wanted->block_values, tensor.target->name);
}

std::string progress_text(const quantize::WriteProgress& progress, double seconds) {
  const double done = static_cast<double>(progress.done);
  const double total = static_cast<double>(std::max<std::uint64_t>(progress.total, 1));
  const auto filled = static_cast<std::size_t>(std::min(1.0, done / total) * kBarWidth);
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar += '>';
  bar.resize(kBarWidth, ' ');
  const std::string left =
      done > 0
          ? fmt::format("{:.0f} s", std::ceil(seconds * (total - std::min(done, total)) / done))
          : "?";
  return fmt::format("[{}] {} of {}, {:.0f} MB/s, ETA {}  {}", bar, humane_bytes(progress.done),
                     humane_bytes(progress.total), megabytes_per_second(progress.done, seconds),
                     left, printable(progress.tensor));
}

}  // namespace lockstep::cli
