// Rows and their renderings.
#include "runtime/cli/bench_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <utility>

#include "runtime/cli/machine_report.h"
#include "runtime/cli/placement_options.h"
#include "topology/placement.h"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kNanosecond = 1e9;

struct NamedFormat {
  std::string_view name;
  BenchFormat format;
};
constexpr NamedFormat kFormats[] = {{"md", BenchFormat::md},
                                    {"csv", BenchFormat::csv},
                                    {"json", BenchFormat::json},
                                    {"jsonl", BenchFormat::jsonl},
                                    {"sql", BenchFormat::sql}};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name"))
      return line.substr(std::min(line.find(": ") + 2, line.size()));
  }
  return "unknown";
}

ordered_json common_fields(const BenchedModel& model) {
  const ModelInfo& info = model.model->info();
  const Engine& engine = model.model->engine();
  return {{"build_commit", LOCKSTEP_VERSION},
          {"build_number", 0},
          {"cpu_info", processor_name()},
          {"gpu_info", ""},
          {"backends", "CPU"},
          {"model_filename", model.path},
          {"model_type", model_type(info)},
          {"model_size", model.file_bytes},
          {"model_n_params", info.parameters},
          {"n_threads", engine.threads()},
          {"type_k", model.kv_type},
          {"type_v", model.kv_type},
          {"isa", engine.isa()},
          {"openmp", engine.openmp_runtime()},
          {"wait_policy", engine.wait_policy()},
          {"numa", name_of(engine.numa())},
          {"numa_nodes", engine.placement().nodes},
          {"numa_balancing", numa_balancing()},
          {"remote_bytes_per_token", model.memory.remote()},
          {"load_bytes_per_s",
           info.load_seconds > 0 ? static_cast<double>(info.load_bytes) / info.load_seconds : 0.0},
          {"huge_page_bytes", model.memory.huge_pages},
          {"kernels", fmt::format("{}", fmt::join(info.kernels, " "))}};
}

// Columns of llama-bench that mean nothing here, with the values it has for a run on the processor
// alone, so that scripts which select them find them.
void add_fixed_fields(ordered_json& row, std::size_t batch) {
  row["n_batch"] = batch;
  row["n_ubatch"] = batch;
  row["n_gpu_layers"] = 0;
  row["flash_attn"] = 1;
}

std::string now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

std::string quoted(std::string text, char quote) {
  for (std::size_t at = 0; (at = text.find(quote, at)) != std::string::npos; at += 2) {
    text.insert(at, 1, quote);
  }
  return quote + text + quote;
}

// Lists become one text, as one cell has to hold them.
std::string cell_text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const ordered_json& one : value) text += (text.empty() ? "" : " ") + one.dump();
  return text;
}

std::string csv(const ordered_json& row, bool names) {
  std::string line;
  for (const auto& [name, value] : row.items()) {
    line += (line.empty() ? "" : ",") + (names ? name : quoted(cell_text(value), '"'));
  }
  return line + "\n";
}

std::string sql_type(const ordered_json& value) {
  if (value.is_number_float()) return "REAL";
  return value.is_number() ? "INTEGER" : "TEXT";
}

std::string sql(const ordered_json& row, bool create) {
  std::string fields, names, values;
  for (const auto& [name, value] : row.items()) {
    const char* const comma = names.empty() ? "" : ", ";
    fields += fmt::format("{}{} {}", comma, name, sql_type(value));
    names += comma + name;
    values += comma + quoted(cell_text(value), '\'');
  }
  std::string text;
  if (create) text = fmt::format("CREATE TABLE IF NOT EXISTS llama_bench ({});\n\n", fields);
  return text + fmt::format("INSERT INTO llama_bench ({}) VALUES ({});\n", names, values);
}

std::string test_name(const ordered_json& row) {
  const auto prompt = row["n_prompt"].get<std::size_t>();
  const auto generate = row["n_gen"].get<std::size_t>();
  const auto depth = row["n_depth"].get<std::size_t>();
  std::string name = generate == 0 ? fmt::format("pp{}", prompt)
                     : prompt == 0 ? fmt::format("tg{}", generate)
                                   : fmt::format("pp{}+tg{}", prompt, generate);
  if (depth > 0) name += fmt::format(" @ d{}", depth);
  return name;
}

std::string markdown(const ordered_json& row) {
  return fmt::format(
      "| {:<24} | {:>7.2f} GiB | {:>7.2f} M | {:>7} | {:>14} | {:>9.2f} \u00b1 {:.2f} | {:>9.2f} | "
      "{:>6.2f} | {:>5.1f} % | {:>6.1f} | {:>5.1f} % | {:>4.1f} % |\n",
      row["model_type"].get<std::string>(), row["model_size"].get<double>() / (1u << 30),
      row["model_n_params"].get<double>() * 1e-6, row["n_threads"].get<unsigned>(), test_name(row),
      row["avg_ts"].get<double>(), row["stddev_ts"].get<double>(), row["median_ts"].get<double>(),
      row["weight_bytes_per_s"].get<double>() * 1e-9, 100 * row["share_of_stream"].get<double>(),
      row["macs_per_s"].get<double>() * 1e-9, 100 * row["share_of_peak"].get<double>(),
      100 * row["barrier_share"].get<double>());
}

constexpr const char* kMarkdownHead =
    "| model | size | params | threads | test | t/s | median | GB/s | of stream | GMAC/s | of peak "
    "| barriers |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

std::string batched_markdown(const ordered_json& row) {
  return fmt::format("| {:>5} | {:>5} | {:>3} | {:>8.2f} | {:>8.2f} | {:>8.2f} | {:>5.1f} % |\n",
                     row["pp"].get<std::size_t>(), row["tg"].get<std::size_t>(),
                     row["pl"].get<std::size_t>(), row["speed_pp"].get<double>(),
                     row["speed_tg"].get<double>(), row["speed_tg_sequence"].get<double>(),
                     100 * row["share_of_roof"].get<double>());
}

constexpr const char* kBatchedMarkdownHead =
    "| prompt | generated | sequences | prefill t/s | decode t/s | per sequence | of roof |\n"
    "|---:|---:|---:|---:|---:|---:|---:|\n";

}  // namespace

std::string model_type(const ModelInfo& info) {
  const auto parameters = static_cast<double>(info.parameters);
  const std::string size = parameters >= 1e9 ? fmt::format("{:.1f}B", parameters * 1e-9)
                                             : fmt::format("{:.0f}M", parameters * 1e-6);
  const std::string kernel = info.kernels.empty() ? "" : info.kernels.front();
  return fmt::format("{} {} {}", info.architecture, size, kernel.substr(0, kernel.find('/')));
}

std::vector<std::string> bench_format_names() {
  std::vector<std::string> names;
  for (const NamedFormat& known : kFormats) names.emplace_back(known.name);
  return names;
}

BenchFormat bench_format_named(std::string_view name) {
  for (const NamedFormat& known : kFormats) {
    if (known.name == name) return known.format;
  }
  return BenchFormat::md;
}

ordered_json bench_row(const BenchedModel& model, const bench::ModelResult& result) {
  ordered_json row = common_fields(model);
  const bench::Samples rates = result.tokens_per_s();
  std::vector<std::uint64_t> nanoseconds;
  for (const double time : result.seconds.values) {
    nanoseconds.push_back(static_cast<std::uint64_t>(time * kNanosecond));
  }
  const double stream = result.stream_bytes_per_s.median();
  const double peak = result.peak_macs_per_s.median();
  add_fixed_fields(row, result.test.batch);
  row["n_prompt"] = result.test.prompt;
  row["n_gen"] = result.test.generate;
  row["n_depth"] = result.test.depth;
  row["test_time"] = now();
  row["avg_ns"] = static_cast<std::uint64_t>(result.seconds.mean() * kNanosecond);
  row["stddev_ns"] = static_cast<std::uint64_t>(result.seconds.deviation() * kNanosecond);
  row["avg_ts"] = rates.mean();
  row["stddev_ts"] = rates.deviation();
  row["median_ts"] = rates.median();
  row["min_ts"] = rates.minimum();
  row["max_ts"] = rates.maximum();
  row["samples_ns"] = nanoseconds;
  row["samples_ts"] = rates.values;
  row["weight_bytes_per_s"] = result.bytes_per_s();
  row["stream_bytes_per_s"] = stream;
  row["share_of_stream"] = result.bytes_per_s() / stream;
  row["macs_per_s"] = result.macs_per_s();
  row["peak_macs_per_s"] = peak;
  row["share_of_peak"] = result.macs_per_s() / peak;
  row["barriers"] = result.barriers;
  row["barrier_share"] = result.barrier_share();
  row["logits_hash"] = fmt::format("{:016x}", result.logits_hash);
  return row;
}

// The short names are those of llama-batched-bench.
ordered_json batched_row(const BenchedModel& model, const bench::BatchedResult& result) {
  ordered_json row = common_fields(model);
  const auto sequences = static_cast<double>(result.test.sequences);
  add_fixed_fields(row, result.test.batch);
  row["pp"] = result.test.prompt;
  row["tg"] = result.test.generate;
  row["pl"] = result.test.sequences;
  row["n_kv"] = result.test.sequences * (result.test.prompt + result.test.generate);
  row["t_pp"] = result.prompt_seconds.median();
  row["speed_pp"] = result.prompt_tokens_per_s();
  row["t_tg"] = result.generate_seconds.median();
  row["speed_tg"] = result.generate_tokens_per_s();
  row["speed_tg_sequence"] = result.generate_tokens_per_s() / sequences;
  row["t"] = result.prompt_seconds.median() + result.generate_seconds.median();
  row["samples_t_pp"] = result.prompt_seconds.values;
  row["samples_t_tg"] = result.generate_seconds.values;
  row["stream_bytes_per_s"] = result.stream_bytes_per_s.median();
  row["peak_macs_per_s"] = result.peak_macs_per_s.median();
  row["share_of_roof"] = result.share_of_roof();
  return row;
}

std::string BenchWriter::begin() const {
  if (format_ == BenchFormat::json) return "[";
  if (format_ == BenchFormat::md) return batched_ ? kBatchedMarkdownHead : kMarkdownHead;
  return "";
}

std::string BenchWriter::row(const ordered_json& row) {
  const bool first = std::exchange(first_, false);
  switch (format_) {
    case BenchFormat::md:
      return batched_ ? batched_markdown(row) : markdown(row);
    case BenchFormat::csv:
      return (first ? csv(row, true) : "") + csv(row, false);
    case BenchFormat::json:
      return (first ? "\n" : ",\n") + row.dump(2);
    case BenchFormat::jsonl:
      return row.dump() + "\n";
    case BenchFormat::sql:
      return sql(row, first);
  }
  return "";
}

std::string BenchWriter::end() const { return format_ == BenchFormat::json ? "\n]\n" : ""; }

}  // namespace lockstep::cli
