// Planning, tensor by tensor.
#include "runtime/quantize/file_plan.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "lockstep/error.h"
#include "runtime/gguf_layout.h"
#include "runtime/printable.h"
#include "runtime/quantize/name_pattern.h"
#include "runtime/side_data.h"

namespace lockstep::quantize {

namespace {

using quant::Format;

class Planner {
 public:
  Planner(const GgufFile& file, const Request& request, const ImportanceMatrix* importance)
      : file_(file), request_(request), importance_(importance), facts_(ModelFacts::of(file)) {
    facts_.has_importance = importance != nullptr;
    for (const Override& wanted : request.overrides) {
      patterns_.emplace_back(NamePattern(wanted.pattern), false);
    }
    rank_attention_v();
  }

  FilePlan plan() {
    FilePlan plan;
    for (const GgufTensor& tensor : file_.tensors()) {
      if (is_side_tensor(file_, tensor)) continue;  // comes and goes with its owner
      plan.tensors.push_back(plan_tensor(tensor));
      const PlannedTensor& planned = plan.tensors.back();
      plan.elements += tensor.elements;
      plan.source_bytes += tensor.bytes;
      plan.bytes += planned.bytes;
      const bool was_quantized = tensor.format->block_values > 1;
      if (was_quantized && !planned.is_copy()) ++plan.requantized;
    }
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (patterns_[i].second) continue;
      throw Error(ErrorCode::usage, "--tensor-type: \"" + printable(request_.overrides[i].pattern) +
                                        "\" matches no matrix of " +
                                        printable(file_.path().string(), 4096));
    }
    return plan;
  }

 private:
  // Rules count these tensors, not layers: a model may have layers without attention.
  void rank_attention_v() {
    std::vector<std::tuple<std::size_t, std::string_view>> order;
    for (const GgufTensor& tensor : file_.tensors()) {
      if (role_of(tensor.name) != Role::attention_v) continue;
      order.emplace_back(layer_of(tensor.name).value_or(0), tensor.name);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [layer, name] : order) attention_v_.push_back(name);
  }

  Candidate candidate(const GgufTensor& tensor) const {
    Candidate candidate;
    candidate.role = role_of(tensor.name);
    candidate.columns = tensor.dims[0];
    candidate.index = layer_of(tensor.name).value_or(0);
    if (candidate.role == Role::attention_v) {
      const auto found = std::find(attention_v_.begin(), attention_v_.end(), tensor.name);
      candidate.index = static_cast<std::size_t>(found - attention_v_.begin());
    }
    return candidate;
  }

  std::optional<Format> overridden(const GgufTensor& tensor) {
    std::optional<Format> format;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (!patterns_[i].first.found_in(tensor.name)) continue;
      patterns_[i].second = true;
      if (!format) format = request_.overrides[i].format;
    }
    return format;
  }

  Format wanted(const GgufTensor& tensor) {
    const std::optional<Format> by_name = overridden(tensor);
    const Candidate what = candidate(tensor);
    if (what.role == Role::embedding && request_.token_embedding) return *request_.token_embedding;
    if (what.role == Role::output && request_.output) return *request_.output;
    if (by_name) return *by_name;
    if (what.role == Role::embedding && facts_.tied && request_.output) return *request_.output;
    if (request_.pure) return request_.mix->format;
    return choose(*request_.mix, facts_, what);
  }

  PlannedTensor plan_tensor(const GgufTensor& tensor) {
    PlannedTensor planned;
    planned.source = &tensor;
    planned.target = planned.wanted = tensor.format;
    if (is_encodable(tensor)) {
      const Format format = wanted(tensor);
      planned.wanted = &quant::traits(format);
      planned.target = &quant::traits(fit_rows(format, tensor.dims[0]));
    }
    if (!planned.is_copy()) {
      if (!tensor.format->can_decode()) {
        file_.refuse("tensor \"" + printable(tensor.name) + "\" is " +
                     std::string(tensor.format->name) + ", which this version cannot decode");
      }
      planned.importance = importance_of(tensor, *planned.target);
    }
    const auto size = tensor_size(*planned.target, tensor.dims);
    if (!size) file_.refuse("tensor \"" + printable(tensor.name) + "\" grows beyond any file");
    planned.bytes = size->bytes + planned.target->side_bytes();
    return planned;
  }

  std::vector<float> importance_of(const GgufTensor& tensor, const quant::FormatTraits& target) {
    if (importance_ == nullptr || target.block_values == 1) return {};
    const auto found = importance_->entries.find(tensor.name);
    if (found == importance_->entries.end()) {
      // Nothing is multiplied with an embedding, and most matrices leave the output out.
      const Role role = role_of(tensor.name);
      if (role == Role::embedding || role == Role::output) return {};
      refuse_importance(tensor, "is missing; it was made for another model");
    }
    const ImportanceEntry& entry = found->second;
    const std::uint64_t matrices = tensor.dims.size() > 2 ? tensor.dims[2] : 1;
    if (entry.columns() != tensor.dims[0] || entry.matrices() != matrices) {
      refuse_importance(tensor, "has " + std::to_string(entry.matrices()) + " x " +
                                    std::to_string(entry.columns()) + " columns, the model's " +
                                    std::to_string(matrices) + " x " +
                                    std::to_string(tensor.dims[0]));
    }
    return entry.weights();
  }

  [[noreturn]] static void refuse_importance(const GgufTensor& tensor, const std::string& what) {
    throw Error(ErrorCode::bad_input,
                "the importance matrix: tensor \"" + printable(tensor.name) + "\" " + what);
  }

  const GgufFile& file_;
  const Request& request_;
  const ImportanceMatrix* importance_;
  ModelFacts facts_;
  std::vector<std::pair<NamePattern, bool>> patterns_;  // and whether one matched
  std::vector<std::string_view> attention_v_;           // in the order of their layers
};

}  // namespace

FilePlan plan_file(const GgufFile& file, const Request& request,
                   const ImportanceMatrix* importance) {
  return Planner(file, request, importance).plan();
}

std::string missing_importance(const FilePlan& plan, const Request& request) {
  if (!request.mix->needs_importance) return {};
  for (const PlannedTensor& tensor : plan.tensors) {
    const Role role = role_of(tensor.source->name);
    if (role == Role::embedding || role == Role::output || tensor.is_copy()) continue;
    if (tensor.target->format != request.mix->format || !tensor.importance.empty()) continue;
    return std::string(request.mix->name) +
           " needs an importance matrix (--imatrix): without one " +
           printable(tensor.source->name) + " would be of no use";
  }
  return {};
}

}  // namespace lockstep::quantize
