// bench: prefill and decode speed of one model, beside the streaming-read bandwidth measured in the
// same run, interleaved: roof, prefill, decode, roof, prefill, decode, ... Results on stdout, the
// rest on stderr.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/bench/roofs.h"
#include "runtime/bench/samples.h"
#include "runtime/fingerprint.h"

namespace lockstep::perf {
namespace {

using bench::Samples;
using bench::seconds;
using bench::StreamRoof;

struct Options {
  std::string model;
  unsigned threads = 0;
  std::size_t prompt = 512;
  std::size_t generate = 128;
  std::size_t repetitions = 5;
  std::size_t batch = 512;
  bool json = false;
};

struct Result {
  Samples prefill;  // tokens per second
  Samples decode;   // tokens per second
  Samples roof;     // bytes per second
  std::uint64_t decode_barriers = 0;
  std::uint64_t logits_hash = 0;
};

// A fixed sequence of ids: what the tokens are does not matter to the speed, that they repeat does.
std::int32_t token_at(std::size_t i, std::size_t vocabulary) {
  return static_cast<std::int32_t>((i * 7919 + 13) % vocabulary);
}

// Evaluates `count` tokens from position `begin` on, `chunk` at a time, logits for the last of each
// chunk.
double run_tokens(Session& session, std::size_t begin, std::size_t count, std::size_t chunk) {
  const std::size_t vocabulary = session.model().info().vocabulary;
  std::vector<BatchEntry> batch;
  const double start = seconds();
  for (std::size_t at = begin; at < begin + count; at += chunk) {
    batch.clear();
    const std::size_t end = std::min(begin + count, at + chunk);
    for (std::size_t i = at; i < end; ++i) {
      batch.push_back({token_at(i, vocabulary), static_cast<std::int32_t>(i), 0, i + 1 == end});
    }
    session.evaluate(batch);
  }
  return static_cast<double>(count) / (seconds() - start);
}

Result measure(const Model& model, const Options& options) {
  SessionOptions session_options;
  session_options.context = std::max(options.prompt, options.generate) + 16;
  session_options.max_batch = std::max(options.batch, std::size_t{1});
  Session session(model, session_options);
  StreamRoof roof(model.engine(),
                  std::max<std::size_t>(model.info().weight_bytes, std::size_t{256} << 20));
  Result result;
  // The first round warms caches, pages and plans and is not counted.
  for (std::size_t round = 0; round <= options.repetitions; ++round) {
    const double bandwidth = roof.measure();
    session.truncate(0, 0);
    const double prefill =
        options.prompt ? run_tokens(session, 0, options.prompt, options.batch) : 0.0;
    session.truncate(0, 0);
    const double decode = options.generate ? run_tokens(session, 0, options.generate, 1) : 0.0;
    if (options.generate) {
      Fingerprint fingerprint;
      fingerprint.add(session.logits(0));
      result.logits_hash = fingerprint.value();
    }
    result.decode_barriers = session.stats().barriers;
    if (round == 0) continue;
    result.roof.add(bandwidth);
    result.prefill.add(prefill);
    result.decode.add(decode);
    fmt::print(stderr,
               "round {}/{}: roof {:.1f} GB/s, prefill {:.1f} tokens/s, decode {:.2f} tokens/s\n",
               round, options.repetitions, bandwidth * 1e-9, prefill, decode);
  }
  return result;
}

nlohmann::ordered_json to_json(const Samples& samples) {
  return {{"median", samples.median()}, {"min", samples.minimum()},  {"max", samples.maximum()},
          {"mean", samples.mean()},     {"sd", samples.deviation()}, {"samples", samples.values}};
}

void print(const Model& model, const Options& options, const Result& result) {
  const ModelInfo& info = model.info();
  const double decode_bandwidth = result.decode.median() * static_cast<double>(info.decode_bytes);
  const double share = result.roof.median() > 0 ? decode_bandwidth / result.roof.median() : 0.0;
  if (options.json) {
    const nlohmann::ordered_json json = {
        {"model", options.model},
        {"architecture", info.architecture},
        {"parameters", info.parameters},
        {"weight_bytes", info.weight_bytes},
        {"decode_bytes", info.decode_bytes},
        {"threads", model.engine().threads()},
        {"isa", model.engine().isa()},
        {"openmp", model.engine().openmp_runtime()},
        {"kernels", info.kernels},
        {"prompt_tokens", options.prompt},
        {"generated_tokens", options.generate},
        {"prefill_tokens_per_s", to_json(result.prefill)},
        {"decode_tokens_per_s", to_json(result.decode)},
        {"stream_bytes_per_s", to_json(result.roof)},
        {"decode_bytes_per_s", decode_bandwidth},
        {"decode_share_of_stream", share},
        {"barriers_per_token", result.decode_barriers},
        {"logits_hash", fmt::format("{:016x}", result.logits_hash)}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  std::string kernels;
  for (const std::string& kernel : info.kernels) kernels += (kernels.empty() ? "" : " ") + kernel;
  fmt::print("model     {} ({:.2f} B parameters, {:.2f} GB packed)\n", info.name,
             static_cast<double>(info.parameters) * 1e-9,
             static_cast<double>(info.weight_bytes) * 1e-9);
  fmt::print("threads   {}, {}, kernels {}\n", model.engine().threads(),
             model.engine().openmp_runtime(), kernels);
  const auto line = [](const char* name, const Samples& samples, double unit, const char* what) {
    fmt::print("{:<9} median {:9.2f} {}  (min {:.2f}, max {:.2f}, sd {:.2f}, n {})\n", name,
               samples.median() * unit, what, samples.minimum() * unit, samples.maximum() * unit,
               samples.deviation() * unit, samples.values.size());
  };
  line("stream", result.roof, 1e-9, "GB/s    ");
  if (options.prompt) line("prefill", result.prefill, 1.0, "tokens/s");
  if (options.generate) {
    line("decode", result.decode, 1.0, "tokens/s");
    fmt::print(
        "decode    {:.2f} GB/s of weights: {:.1f} % of the streaming read; {} barriers a token\n",
        decode_bandwidth * 1e-9, 100.0 * share, result.decode_barriers);
    fmt::print("logits    {:016x}\n", result.logits_hash);
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"Prefill and decode speed of a model, with the streaming-read roof of the same run"};
  app.add_option("-m,--model", options.model, "GGUF file")->required();
  app.add_option("-t,--threads", options.threads, "workers; 0: the thread budget");
  app.add_option("-p,--prompt", options.prompt, "prefill tokens; 0: none")->capture_default_str();
  app.add_option("-n,--generate", options.generate, "decoded tokens; 0: none")
      ->capture_default_str();
  app.add_option("-r,--repetitions", options.repetitions, "counted rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("-b,--batch", options.batch, "prefill chunk")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  app.add_flag("--json", options.json, "machine-readable result");
  CLI11_PARSE(app, argc, argv);
  try {
    EngineOptions engine_options;
    engine_options.threads = options.threads;
    const Engine engine = Engine::create(engine_options);
    for (const std::string& warning : engine.warnings())
      fmt::print(stderr, "warning: {}\n", warning);
    const Model model = Model::load(engine, options.model);
    print(model, options, measure(model, options));
  } catch (const Error& error) {
    fmt::print(stderr, "bench: error: {}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::perf

int main(int argc, char** argv) { return lockstep::perf::run(argc, argv); }
