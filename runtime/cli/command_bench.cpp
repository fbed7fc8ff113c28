// `lockstep bench`: the speed of a model, with the options of llama-bench, so that scripts written
// for it work. Lists make a grid: every model, number of threads, batch size, depth and test. The
// measuring itself is runtime/bench/.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "runtime/bench/batched_bench.h"
#include "runtime/bench/model_bench.h"
#include "runtime/cli/bench_report.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/options.h"
#include "runtime/cli/starvation.h"
#include "runtime/cli/stop_signals.h"

namespace lockstep::cli {

namespace {

constexpr std::uint64_t kMostTokens = 1u << 20;
constexpr std::uint64_t kMostBatch = 65536;
constexpr std::uint64_t kMostSequences = 512;

constexpr const char* kFooter =
    R"(Options and formats are those of llama-bench; comma lists make a grid. A test is a prompt (-p), a
generation (-n) or both in a row (-pg PROMPT,GENERATED). Every sample is taken next to the roofs of
that moment: the streaming read and the peak of 8-bit (or, for dense models, f32) multiply-adds.
With --batched: prompts of -npp tokens, then -ntg tokens for each of -npl sequences together.

Examples:
  lockstep bench -m model.gguf -p 512 -n 128
  lockstep bench -m a.gguf,b.gguf -p 128,512 -n 0 -t 1,2 -o csv > grid.csv
  lockstep bench -m model.gguf -n 64 -d 0,4096 --kv-type f16
  lockstep bench -m model.gguf --batched -npp 64 -ntg 32 -npl 1,4,16
)";

struct Bench {
  std::vector<std::string> models;
  std::vector<std::size_t> prompts{512}, generations{128}, depths{0}, batches{512};
  std::vector<std::string> combined;
  std::vector<unsigned> threads{0};
  std::vector<std::size_t> batched_prompts{128}, batched_generations{64};
  std::vector<std::size_t> sequences{1, 2, 4, 8, 16, 32};
  std::size_t repetitions = 5;
  std::string isa, kv_type = "f32";
  PlacementArguments placement;
  PlanArguments plan;
  ProfileArguments profile;
  std::string format = "md";
  bool batched = false, no_warmup = false;

  int run();
  std::vector<bench::ModelTest> tests() const;
  void run_tests(const BenchedModel& model, BenchWriter& writer) const;
  void run_batched(const BenchedModel& model, BenchWriter& writer) const;
};

// "512,128"
bench::ModelTest parse_combined(const std::string& text) {
  const std::size_t comma = text.find(',');
  const auto number = [&](std::string_view part) -> std::size_t {
    const bool digits = !part.empty() && part.size() <= 7 &&
                        part.find_first_not_of("0123456789") == std::string_view::npos;
    if (!digits) {
      throw Error(ErrorCode::usage,
                  fmt::format("-pg {}: give PROMPT,GENERATED, such as -pg 512,128", text));
    }
    return std::stoul(std::string(part));
  };
  bench::ModelTest test;
  test.prompt = number(std::string_view(text).substr(0, comma));
  test.generate =
      number(comma == std::string::npos ? "" : std::string_view(text).substr(comma + 1));
  return test;
}

// Prompts, then generations, then both, each at every batch size and depth.
std::vector<bench::ModelTest> Bench::tests() const {
  std::vector<bench::ModelTest> plain;
  for (const std::size_t prompt : prompts) plain.push_back({.prompt = prompt});
  for (const std::size_t generate : generations) plain.push_back({.generate = generate});
  for (const std::string& both : combined) plain.push_back(parse_combined(both));
  std::erase_if(plain, [](const bench::ModelTest& test) { return test.tokens() == 0; });
  if (plain.empty()) throw Error(ErrorCode::usage, "nothing to measure: -p and -n are 0");
  std::vector<bench::ModelTest> all;
  for (const std::size_t batch : batches) {
    for (const std::size_t depth : depths) {
      for (bench::ModelTest test : plain) {
        test.batch = batch;
        test.depth = depth;
        all.push_back(test);
      }
    }
  }
  return all;
}

void Bench::run_tests(const BenchedModel& model, BenchWriter& writer) const {
  const std::vector<bench::ModelTest> wanted = tests();
  std::size_t context = 0;
  std::size_t batch = 1;
  for (const bench::ModelTest& test : wanted) {
    context = std::max(context, test.context());
    batch = std::max(batch, std::min(test.batch, std::max(test.prompt, test.depth)));
  }
  SessionOptions options;
  options.context = context;
  options.max_batch = batch;
  options.kv_type = kv_type_named(kv_type);
  plan.apply(options);
  profile.apply(options);
  bench::ModelBench runner(*model.model, options);
  const StopSignals signals(runner.cancel_flag());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    bench::ModelResult result;
    result.test = wanted[i];
    if (!no_warmup) {
      bench::ModelResult unused;
      unused.test = wanted[i];
      runner.sample(unused);
    }
    for (std::size_t r = 0; r < repetitions; ++r) {
      show_status(fmt::format("test {} of {}, repetition {} of {}", i + 1, wanted.size(), r + 1,
                              repetitions));
      if (signals.stop().load()) throw Error(ErrorCode::interrupted, "stopped by a signal");
      runner.sample(result);
    }
    clear_status();
    print(writer.row(bench_row(model, result)));
  }
  profile.report(runner.session());
}

void Bench::run_batched(const BenchedModel& model, BenchWriter& writer) const {
  SessionOptions options;
  options.kv_type = kv_type_named(kv_type);
  plan.apply(options);
  profile.apply(options);
  bench::BatchedBench runner(*model.model, options);
  std::atomic<bool> cancel{false};
  const StopSignals signals(cancel);
  for (const std::size_t prompt : batched_prompts) {
    for (const std::size_t generate : batched_generations) {
      for (const std::size_t count : sequences) {
        show_status(fmt::format("{} sequences, {} + {} tokens", count, prompt, generate));
        const bench::BatchedResult result = runner.run(
            {.prompt = prompt, .generate = generate, .sequences = count, .batch = batches.front()},
            repetitions, signals.stop(), [&](const Session& session) {
              clear_status();
              profile.report(session);
            });
        print(writer.row(batched_row(model, result)));
      }
    }
  }
}

int Bench::run() {
  if (models.empty()) models.push_back(model_path("").string());
  if (!batched) static_cast<void>(tests());  // refuses before anything is loaded
  if (batched && batches.size() > 1) throw Error(ErrorCode::usage, "--batched takes one -b");
  const std::size_t cells = batched_prompts.size() * batched_generations.size() * sequences.size();
  if (batched && cells > 1 && !profile.trace.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("--profile-trace holds one timeline, --batched would make {}: give one "
                            "-npp, -ntg and -npl",
                            cells));
  }
  plan.check();
  profile.check();
  BenchWriter writer(bench_format_named(format), batched);
  print(writer.begin());
  for (const std::string& path : models) {
    for (const unsigned count : threads) {
      const Engine engine = plan.create({count, isa, placement});
      const Model model = load_model(engine, path);
      const BenchedModel benched{path, std::filesystem::file_size(path), &model, kv_type,
                                 model.memory()};
      if (batched) {
        run_batched(benched, writer);
      } else {
        run_tests(benched, writer);
      }
      note_starvation(engine);
    }
  }
  print(writer.end());
  return 0;
}

}  // namespace

Command add_bench(CLI::App& root) {
  auto bench = std::make_shared<Bench>();
  CLI::App* app = root.add_subcommand("bench", "Measure the speed of models");
  app->footer(kFooter);
  const auto list = [app](const std::string& names, auto& into, const char* what, std::uint64_t low,
                          std::uint64_t high) {
    app->add_option(names, into, what)
        ->delimiter(',')
        ->check(whole_number(low, high))
        ->capture_default_str();
  };
  app->add_option("-m,--model", bench->models, "GGUF files (default: the embedded model)")
      ->delimiter(',')
      ->type_name("FILES");
  list("-p,--n-prompt", bench->prompts, "Prompt tokens; 0: no such test", 0, kMostTokens);
  list("-n,--n-gen", bench->generations, "Generated tokens; 0: no such test", 0, kMostTokens);
  app->add_option("--pg", bench->combined, "-pg P,N: a prompt and a generation in one test")
      ->type_name("P,N");
  list("-d,--n-depth", bench->depths, "Tokens in the cache before the clock starts", 0,
       kMostTokens);
  list("-b,--batch-size", bench->batches, "Prompt tokens per step", 1, kMostBatch);
  list("-t,--threads", bench->threads, "Worker threads; 0: the thread budget", 0, 4096);
  app->add_option("-r,--repetitions", bench->repetitions, "Samples of every test")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  app->add_option("-o,--output", bench->format, "md, csv, json, jsonl or sql")
      ->check(CLI::IsMember(bench_format_names()))
      ->type_name("FORMAT")
      ->capture_default_str();
  app->add_flag("--no-warmup", bench->no_warmup, "No run that is not counted before the samples");
  app->add_option("--isa", bench->isa,
                  "Force an instruction set (default: LOCKSTEP_ISA, else the best)")
      ->type_name("NAME");
  add_kv_type_option(*app, bench->kv_type);
  bench->placement.add_to(*app);
  bench->plan.add_to(*app);
  bench->profile.add_to(*app);
  app->add_flag("--batched", bench->batched, "Many sequences together instead of one");
  list("--npp", bench->batched_prompts, "-npp: tokens of every prompt", 1, kMostTokens);
  list("--ntg", bench->batched_generations, "-ntg: tokens generated by each", 1, kMostTokens);
  list("--npl", bench->sequences, "-npl: sequences together", 1, kMostSequences);
  return {app, [bench] { return bench->run(); }};
}

}  // namespace lockstep::cli
