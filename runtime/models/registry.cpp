// Which architectures are known. A family that computes like llama is one more table row.
#include <array>
#include <string>

#include "runtime/gguf.h"
#include "runtime/models/architecture.h"
#include "runtime/models/llama.h"

namespace lockstep {
namespace {

constexpr std::array kArchitectures = {
    ArchitectureTraits{"llama", ops::RopePairing::adjacent},
};

}  // namespace

const std::string& architecture_of(const GgufFile& file) {
  const std::string& name = file.require_string("general.architecture");
  return name == kOwnArchitecture ? file.require_string(kRealArchitectureKey) : name;
}

const ArchitectureTraits& find_architecture(const GgufFile& file) {
  const std::string& name = architecture_of(file);
  std::string known;
  for (const ArchitectureTraits& traits : kArchitectures) {
    if (name == traits.name) return traits;
    known += (known.empty() ? "" : ", ") + std::string(traits.name);
  }
  file.refuse("the architecture \"" + name + "\" is not supported (known: " + known + ")");
}

std::unique_ptr<Architecture> make_architecture(const ModelConfig& config, WeightLoader& loader,
                                                unsigned workers) {
  return std::make_unique<LlamaModel>(config, loader, workers);
}

}  // namespace lockstep
