// What stands behind lockstep::Model.
#pragma once

#include <memory>

#include "lockstep/lockstep.h"
#include "runtime/models/architecture.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/weights.h"

namespace lockstep {

struct Model::Impl {
  Engine engine;
  ModelInfo info;
  ModelConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
  Weights weights;  // outlives the architecture that points into it
  std::unique_ptr<Architecture> architecture;
};

}  // namespace lockstep
