// random_model OUT.gguf --format Q4_0 --shape tinyllama-1.1b: a model file with random weights, to
// measure speed at the size of a real model where no real model is at hand.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

#include "lockstep/error.h"
#include "perf/llama_file.h"

namespace {

using namespace lockstep;

std::string names_of_formats() {
  std::string names;
  for (const perf::RandomFormat& random : perf::kRandomFormats) {
    names += (names.empty() ? "" : ", ") + std::string(quant::traits(random.format).name);
  }
  return names;
}

std::string names_of_shapes() {
  std::string names;
  for (const perf::NamedShape& known : perf::kNamedShapes) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

quant::Format format_named(const std::string& name) {
  const quant::FormatTraits* format = quant::find_format(name);
  if (format == nullptr) {
    throw std::invalid_argument("unknown format '" + name + "'; there are: " + names_of_formats());
  }
  return perf::random_format(format->format).format;
}

perf::LlamaShape shape_named(const std::string& name) {
  for (const perf::NamedShape& known : perf::kNamedShapes) {
    if (known.name == name) return known.shape;
  }
  throw std::invalid_argument("unknown shape '" + name + "'; there are: " + names_of_shapes());
}

int run(int argc, char** argv) {
  CLI::App app("Writes a llama model with random weights.");
  std::string out;
  std::string format = "Q4_0";
  std::string shape_name = "tinyllama-1.1b";
  std::uint64_t seed = 1;
  perf::LlamaShape given{0, 0, 0, 0, 0, 0, 0, false};  // 0: as the named shape has it
  app.add_option("OUT", out, "The file to write; an older one is replaced")->required();
  app.add_option("--format", format, "Of all matrices: " + names_of_formats())
      ->capture_default_str();
  app.add_option("--shape", shape_name, names_of_shapes())->capture_default_str();
  app.add_option("--seed", seed, "Equal seeds give equal files")->capture_default_str();
  app.add_option("--layers", given.layers, "Instead of the shape's");
  app.add_option("--width", given.width, "Instead of the shape's");
  app.add_option("--heads", given.heads, "Instead of the shape's");
  app.add_option("--kv-heads", given.kv_heads, "Instead of the shape's");
  app.add_option("--feed-forward", given.feed_forward, "Instead of the shape's");
  app.add_option("--vocab", given.vocabulary, "Instead of the shape's");
  app.add_option("--context", given.context, "Instead of the shape's");
  app.add_flag("--tied", given.tied, "No output matrix of its own: the embedding serves");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ErrorCode::usage);
  }
  perf::LlamaShape shape = shape_named(shape_name);
  const auto replace = [](std::uint32_t& value, std::uint32_t by) { value = by != 0 ? by : value; };
  replace(shape.layers, given.layers);
  replace(shape.width, given.width);
  replace(shape.heads, given.heads);
  replace(shape.kv_heads, given.kv_heads);
  replace(shape.feed_forward, given.feed_forward);
  replace(shape.vocabulary, given.vocabulary);
  replace(shape.context, given.context);
  shape.tied = given.tied;
  perf::write_llama_file(out, shape, format_named(format), seed, "Random " + shape_name);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "random_model: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "random_model: %s\n", error.what());
    return static_cast<int>(lockstep::ErrorCode::usage);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_model: %s\n", error.what());
    return static_cast<int>(lockstep::ErrorCode::internal);
  }
}
