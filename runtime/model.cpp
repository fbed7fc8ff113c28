// Loading a model: header, vocabulary, hyperparameters, weights. Everything that can be refused is
// refused before the weights are read.
#include "runtime/model.h"

#include <algorithm>

#include "runtime/engine.h"
#include "runtime/gguf.h"

namespace lockstep {
namespace {

ModelInfo describe(const GgufFile& file, const Model::Impl& model) {
  const ModelConfig& config = model.config;
  ModelInfo info;
  info.architecture = config.architecture;
  info.name = file.string("general.name").value_or(file.path().stem().string());
  info.layers = config.layers;
  info.width = config.width;
  info.heads = config.heads;
  info.kv_heads = config.kv_heads;
  info.head_dim = config.head_dim;
  info.feed_forward = config.feed_forward;
  info.vocabulary = config.vocabulary;
  info.context = config.context;
  for (const GgufTensor& tensor : file.tensors()) info.parameters += tensor.elements;
  info.weight_bytes = model.weights.bytes;
  for (const ops::ShardedMatrix& matrix : model.weights.matrices) {
    info.decode_bytes += matrix.bytes();
    const std::string name(matrix.kernel->name);
    if (std::find(info.kernels.begin(), info.kernels.end(), name) == info.kernels.end()) {
      info.kernels.push_back(name);
    }
  }
  info.chat_template = file.string("tokenizer.chat_template").value_or("");
  return info;
}

}  // namespace

Model Model::load(const Engine& engine, const std::filesystem::path& path,
                  const ModelOptions& options) {
  const GgufFile file = GgufFile::open(path);
  Model model;
  model.impl_ = std::make_shared<Impl>(Impl{.engine = engine,
                                            .info = {},
                                            .config = {},
                                            .tokenizer = nullptr,
                                            .weights = {},
                                            .architecture = nullptr});
  Impl& impl = *model.impl_;
  const ArchitectureTraits& traits = find_architecture(file);
  impl.tokenizer = Tokenizer::load(file);
  impl.config = ModelConfig::read(file, traits, impl.tokenizer->size());
  const PagePolicy pages = engine.impl().page_policy();
  WeightLoader loader(file, *engine.impl().executor, pages, engine.impl().isa, impl.weights);
  impl.architecture = make_architecture(impl.config, loader, engine.threads());
  loader.map();
  impl.info = describe(file, impl);
  if (options.before_load) options.before_load(model);
  loader.load(options);
  impl.info.load_bytes = impl.weights.read_bytes;
  impl.info.load_seconds = impl.weights.read_seconds;
  return model;
}

MemoryReport Model::memory() const {
  MemoryCount count(impl_->engine.impl().page_policy().nodes());
  for (const Weights::Part& part : impl_->weights.parts) {
    count.add(part.data, part.bytes, part.os_node);
  }
  return count.report();
}

const ModelInfo& Model::info() const noexcept { return impl_->info; }
const Tokenizer& Model::tokenizer() const noexcept { return *impl_->tokenizer; }
const Engine& Model::engine() const noexcept { return impl_->engine; }

}  // namespace lockstep
