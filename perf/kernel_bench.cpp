// kernel_bench: every matmul kernel that this processor runs, over the shapes of real layers and
// several numbers of tokens, beside the roofs measured in the same run. All workers run the kernel
// at once, each on its own rows, as in a step of a model. The weights are many copies of one
// matrix, so that they come from memory as those of a model do. Results on stdout, the rest on
// stderr.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ops/matrix.h"
#include "ops/pack.h"
#include "perf/random_blocks.h"
#include "runtime/bench/roofs.h"
#include "runtime/bench/samples.h"
#include "runtime/engine.h"

namespace lockstep::perf {
namespace {

using bench::Samples;
using bench::seconds;

struct Shape {
  std::size_t rows = 0, columns = 0;
};

struct Options {
  std::vector<std::string> formats, isas;
  std::vector<std::string> shapes{"2048x2048", "2048x5632", "5632x2048"};
  std::vector<std::size_t> tokens{1, 4, 16, 128};
  unsigned threads = 0;
  std::size_t repetitions = 5;
  std::size_t megabytes = 128;
  bool json = false;
};

Shape parse_shape(const std::string& text) {
  const std::size_t x = text.find('x');
  const auto number = [&](const std::string& part) -> std::size_t {
    const bool digits = !part.empty() && part.size() < 8 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoul(part) : 0;
  };
  Shape shape;
  if (x != std::string::npos) shape = {number(text.substr(0, x)), number(text.substr(x + 1))};
  if (shape.rows == 0 || shape.columns == 0 || shape.columns % 256 != 0) {
    throw Error(ErrorCode::usage, "shape '" + text +
                                      "': give ROWSxCOLUMNS, columns a multiple of 256, such as "
                                      "2048x5632");
  }
  return shape;
}

// Of the names that were given: all if there were none.
std::vector<quant::Format> wanted_formats(const Options& options) {
  std::vector<quant::Format> wanted;
  for (const std::string& name : options.formats) {
    const quant::FormatTraits* format = quant::find_format(name);
    if (format == nullptr) throw Error(ErrorCode::usage, "there is no format '" + name + "'");
    wanted.push_back(format->format);
  }
  return wanted;
}

template <class T, class U>
bool listed(const std::vector<T>& list, const U& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

// On instruction sets that run here.
std::vector<const quant::MatmulKernel*> kernels_to_run(const Options& options) {
  const quant::IsaSet here = quant::built_isas() & quant::detect_isas();
  const std::vector<quant::Format> formats = wanted_formats(options);
  std::vector<const quant::MatmulKernel*> found;
  const auto add = [&](std::span<const quant::MatmulKernel> kernels) {
    for (const quant::MatmulKernel& kernel : kernels) {
      const bool wanted =
          listed(formats, kernel.format) && listed(options.isas, quant::name_of(kernel.isa));
      // A scalar kernel is a definition, not a tool: it runs when asked for.
      const bool serious = kernel.isa != quant::Isa::scalar || !options.isas.empty();
      if (wanted && serious && here.has(kernel.isa)) found.push_back(&kernel);
    }
  };
  add(ops::dense_kernels());
  add(quant::all_matmul_kernels());
  return found;
}

// Random weights; for a format that none can be drawn of, bytes below 64, in which no scale is a
// NaN.
void fill(quant::Format format, std::span<std::byte> bytes) {
  RandomBits bits(1);
  for (const RandomFormat& known : kRandomFormats) {
    if (known.format == format) return known.fill(bits, 0.02, bytes);
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(bits.next() & 63u);
}

// One worker's share of one matrix, copied until all copies of all workers fill the wanted size.
struct Weights {
  topology::NodeBuffer buffer;
  std::size_t matrix_bytes = 0;  // one copy of one worker
  std::size_t copies = 0;        // per worker
  std::size_t rows = 0;          // per worker
};

Weights make_weights(const Engine& engine, const quant::MatmulKernel& kernel, const Shape& shape,
                     std::size_t total) {
  Executor& executor = *engine.impl().executor;
  const std::size_t workers = executor.workers();
  const std::size_t panel = std::max<std::size_t>(kernel.panel_rows, 1);
  Weights weights;
  weights.rows = std::max(shape.rows / workers / panel, std::size_t{1}) * panel;
  weights.matrix_bytes = ops::packed_bytes(kernel, weights.rows, shape.columns);
  weights.copies = std::max<std::size_t>(total / workers / weights.matrix_bytes, 1);
  std::vector<std::byte> file(weights.rows * quant::bytes_of(kernel.format, shape.columns));
  fill(kernel.format, file);
  std::vector<std::byte> packed(weights.matrix_bytes);
  ops::pack_rows(kernel, file.data(), {0, weights.rows}, shape.columns, packed.data());
  weights.buffer = topology::NodeBuffer(workers * weights.copies * weights.matrix_bytes);
  executor.team([&](const ops::Lane& lane) noexcept {
    for (std::size_t i = 0; i < weights.copies; ++i) {
      std::copy(packed.begin(), packed.end(),
                weights.buffer.data() + (lane.worker * weights.copies + i) * weights.matrix_bytes);
    }
  });
  return weights;
}

struct Cell {
  const quant::MatmulKernel* kernel = nullptr;
  Shape shape;
  std::size_t tokens = 0;
  Samples bytes_per_s, macs_per_s, share;
};

class Bench {
 public:
  Bench(const Engine& engine, const Options& options)
      : engine_(engine), options_(options), stream_(engine) {}

  std::vector<Cell> run(const quant::MatmulKernel& kernel, const Shape& shape) {
    const Weights weights = make_weights(engine_, kernel, shape, options_.megabytes << 20);
    std::vector<Cell> cells;
    for (const std::size_t tokens : options_.tokens)
      cells.push_back({&kernel, shape, tokens, {}, {}, {}});
    for (std::size_t r = 0; r <= options_.repetitions; ++r) {
      const double stream = stream_.measure();
      const bool dense = quant::traits(kernel.format).activation == quant::Format::f32;
      const double peak = bench::measure_peak(engine_, kernel.isa, dense);
      for (Cell& cell : cells) {
        const Pass pass = measure(kernel, weights, shape.columns, cell.tokens);
        if (r == 0) continue;  // a warm-up
        cell.bytes_per_s.add(pass.bytes / pass.time);
        cell.macs_per_s.add(pass.macs / pass.time);
        cell.share.add(std::max(pass.bytes / stream, pass.macs / peak) / pass.time);
      }
    }
    return cells;
  }

 private:
  struct Pass {
    double bytes = 0, macs = 0, time = 0;
  };

  Pass measure(const quant::MatmulKernel& kernel, const Weights& weights, std::size_t columns,
               std::size_t tokens) {
    const quant::Format activation = quant::traits(kernel.format).activation;
    const std::size_t stride = activation == quant::Format::f32
                                   ? columns * sizeof(float)
                                   : quant::ActivationLayout::of(activation, columns).bytes;
    // Zeros are as good as any activations to an integer kernel, and f32 ones are no subnormals.
    activations_.assign(tokens * stride, std::byte{0});
    outputs_.resize(engine_.impl().executor->workers());
    for (auto& y : outputs_) y.resize(weights.rows * tokens);
    // Many tokens take long: fewer copies then.
    const std::size_t copies = std::clamp<std::size_t>(weights.copies / tokens, 1, weights.copies);
    const double begin = seconds();
    engine_.impl().executor->team([&](const ops::Lane& lane) noexcept {
      const std::byte* mine =
          weights.buffer.data() + lane.worker * weights.copies * weights.matrix_bytes;
      for (std::size_t i = 0; i < copies; ++i) {
        const std::size_t copy = (next_copy_ + i) % weights.copies;
        kernel.run({.panels = mine + copy * weights.matrix_bytes,
                    .rows = weights.rows,
                    .k = columns,
                    .activations = activations_.data(),
                    .activation_stride = stride,
                    .tokens = tokens,
                    .y = outputs_[lane.worker].data(),
                    .y_stride = weights.rows,
                    .side = side_.data()});
      }
    });
    const double time = seconds() - begin;
    next_copy_ += copies;  // those that were not read lately
    const auto calls = static_cast<double>(copies * engine_.impl().executor->workers());
    return {calls * static_cast<double>(weights.matrix_bytes),
            calls * static_cast<double>(weights.rows * columns * tokens), time};
  }

  const Engine& engine_;
  const Options& options_;
  bench::StreamRoof stream_;
  std::size_t next_copy_ = 0;
  std::vector<std::byte> activations_;
  std::vector<std::vector<float>> outputs_;
  std::vector<std::byte> side_ = std::vector<std::byte>(128);
};

nlohmann::ordered_json to_json(const Cell& cell) {
  return {{"kernel", cell.kernel->name},
          {"rows", cell.shape.rows},
          {"columns", cell.shape.columns},
          {"tokens", cell.tokens},
          {"bytes_per_s", cell.bytes_per_s.median()},
          {"macs_per_s", cell.macs_per_s.median()},
          {"share_of_roof", cell.share.median()},
          {"share_min", cell.share.minimum()},
          {"share_max", cell.share.maximum()}};
}

void print_row(const Cell& cell) {
  fmt::print("| {:<18} | {:>11} | {:>6} | {:>7.2f} | {:>8.1f} | {:>5.1f} % |\n", cell.kernel->name,
             fmt::format("{}x{}", cell.shape.rows, cell.shape.columns), cell.tokens,
             cell.bytes_per_s.median() * 1e-9, cell.macs_per_s.median() * 1e-9,
             100.0 * cell.share.median());
  std::fflush(stdout);
}

void run(const Options& options) {
  std::vector<Shape> shapes;
  for (const std::string& text : options.shapes) shapes.push_back(parse_shape(text));
  const auto kernels = kernels_to_run(options);
  if (kernels.empty()) {
    throw Error(ErrorCode::usage, "no kernel of this format and instruction set runs here");
  }
  EngineOptions engine_options;
  engine_options.threads = options.threads;
  const Engine engine = Engine::create(engine_options);
  for (const std::string& warning : engine.warnings()) fmt::print(stderr, "warning: {}\n", warning);
  fmt::print(stderr, "{} threads, {}, {} kernels\n", engine.threads(), engine.openmp_runtime(),
             kernels.size());
  Bench bench(engine, options);
  nlohmann::ordered_json cells = nlohmann::ordered_json::array();
  if (!options.json) {
    fmt::print(
        "| kernel             |       shape | tokens |    GB/s |   GMAC/s | of roof |\n"
        "|---|---:|---:|---:|---:|---:|\n");
  }
  for (const quant::MatmulKernel* kernel : kernels) {
    for (const Shape& shape : shapes) {
      for (const Cell& cell : bench.run(*kernel, shape)) {
        if (options.json) {
          cells.push_back(to_json(cell));
        } else {
          print_row(cell);
        }
      }
    }
  }
  if (options.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"threads", engine.threads()},
                                              {"openmp", engine.openmp_runtime()},
                                              {"cells", cells}}
                           .dump(2));
  }
}

int main_of(int argc, char** argv) {
  Options options;
  CLI::App app{"Speed of every matmul kernel, as GB/s of weights, GMAC/s and share of the roof"};
  app.add_option("--format", options.formats, "only these formats (Q4_0,Q4_K,...)")->delimiter(',');
  app.add_option("--isa", options.isas, "only these instruction sets")->delimiter(',');
  app.add_option("--shape", options.shapes, "ROWSxCOLUMNS of the matrices")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "numbers of tokens")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("-t,--threads", options.threads, "workers; 0: the thread budget");
  app.add_option("-r,--repetitions", options.repetitions, "counted rounds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--megabytes", options.megabytes, "of weights, to be larger than the caches")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_flag("--json", options.json, "machine-readable result");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const Error& error) {
    fmt::print(stderr, "kernel_bench: error: {}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::perf

int main(int argc, char** argv) { return lockstep::perf::main_of(argc, argv); }
