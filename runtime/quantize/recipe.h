// Which tensor of a model gets which format: the targets of `lockstep quantize` and their mixes.
//
// A mix is a format for most matrices and a few rules that give more bits to those where rounding
// costs most: the output matrix, the values of attention, the way out of the feed-forward. The
// rules, and the ids of general.file_type, are those of the public GGUF quantizer, so that a name
// like Q4_K_M means the same file everywhere. All of it is in the two tables of recipe.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "quant/format.h"

namespace lockstep {
class GgufFile;
struct GgufTensor;
}  // namespace lockstep

namespace lockstep::quantize {

// One target: what the user names, the format of most matrices, and the public id of the whole.
struct Mix {
  std::string_view name;
  quant::Format format;
  std::uint32_t file_type;  // general.file_type
  // Refused without an importance matrix: the result would be of no use.
  bool needs_importance;
};

std::span<const Mix> all_mixes() noexcept;
// By name in any case; "Q4_K" and its like stand for the medium mix. Null if there is none.
const Mix* find_mix(std::string_view name) noexcept;
// "F32, F16, ...", for messages.
std::string mix_names();
// Whether a tensor may be asked to have this format: it is that of some mix.
bool is_target(quant::Format format) noexcept;

// What a tensor does in the model, as far as recipes care.
enum class Role : std::uint8_t {
  embedding,
  output,
  attention_q,
  attention_k,
  attention_v,  // and matrices that hold v beside others
  attention_output,
  ffn_gate,
  ffn_up,
  ffn_down,
  other,
};
Role role_of(std::string_view tensor) noexcept;

// Matrices of weights are encoded; vectors, norms, routers and convolutions stay as they are.
bool is_encodable(const GgufTensor& tensor) noexcept;

// The number N of "blk.N.", or nothing.
std::optional<std::size_t> layer_of(std::string_view tensor) noexcept;

// What the rules ask of a model.
struct ModelFacts {
  std::size_t layers = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t experts = 0;
  std::size_t attention_v = 0;  // tensors with that role
  bool is_llama = false;
  bool tied = true;  // no output matrix of its own: the embedding serves
  bool has_importance = false;

  // From metadata and tensor names; what is missing counts as 0.
  static ModelFacts of(const GgufFile& file);
};

// The tensor that a format is chosen for.
struct Candidate {
  Role role = Role::other;
  std::size_t index = 0;  // its layer; for attention_v its place among those tensors
  std::size_t columns = 0;
};

// The format that the mix has for it, before its rows are looked at.
quant::Format choose(const Mix& mix, const ModelFacts& facts, const Candidate& tensor) noexcept;

// `wanted`, or what takes its place where rows of `columns` values are no whole blocks of it: a
// format of blocks of 32 that is no worse, F16 at last.
quant::Format fit_rows(quant::Format wanted, std::size_t columns) noexcept;

}  // namespace lockstep::quantize
