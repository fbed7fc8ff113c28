// The tables, and how they are read. Facts of the public recipe: the quantizer of llama.cpp
// (src/llama-quant.cpp), for models of the llama kind.
#include "runtime/quantize/recipe.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/gguf.h"
#include "runtime/models/architecture.h"

namespace lockstep::quantize {

namespace {

using quant::Format;

constexpr Mix kMixes[] = {
    // name, format of most matrices, general.file_type, needs an importance matrix
    {"F32", Format::f32, 0, false},        {"F16", Format::f16, 1, false},
    {"BF16", Format::bf16, 32, false},     {"Q8_0", Format::q8_0, 7, false},
    {"Q4_0", Format::q4_0, 2, false},      {"Q4_1", Format::q4_1, 3, false},
    {"Q5_0", Format::q5_0, 8, false},      {"Q5_1", Format::q5_1, 9, false},
    {"Q2_K", Format::q2_k, 10, false},     {"Q2_K_S", Format::q2_k, 21, true},
    {"Q3_K_S", Format::q3_k, 11, false},   {"Q3_K_M", Format::q3_k, 12, false},
    {"Q3_K_L", Format::q3_k, 13, false},   {"Q4_K_S", Format::q4_k, 14, false},
    {"Q4_K_M", Format::q4_k, 15, false},   {"Q5_K_S", Format::q5_k, 16, false},
    {"Q5_K_M", Format::q5_k, 17, false},   {"Q6_K", Format::q6_k, 18, false},
    {"IQ4_NL", Format::iq4_nl, 25, false}, {"IQ4_XS", Format::iq4_xs, 30, false},
    {"MXFP4", Format::mxfp4, 38, false},   {"NVFP4", Format::nvfp4, 39, false},
    {"Q4X", Format::q4x, 1000, false},  // ours, as its tensor type
};

struct Alias {
  std::string_view name;
  std::string_view mix;
};

constexpr Alias kAliases[] = {{"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}};

// Layers that a rule holds for.
enum class Layers : std::uint8_t {
  all,
  first_two,
  first_four,
  first_sixteenth,
  first_eighth,
  sensitive,  // the first and the last eighth, and every third between
};

// Models that a rule holds for.
enum class Where : std::uint8_t {
  any,
  shared_v,       // at least four query heads share one v: the matrix is small
  eight_experts,  // attention is small beside the experts
  importance,     // an importance matrix is used
  no_importance,
};

struct Rule {
  std::string_view mix;  // empty: every mix of blocks
  Role role;
  Layers layers;
  Where where;
  Format format;
};

// The first row that fits decides; no row: the mix's own format.
constexpr Rule kRules[] = {
    {"", Role::attention_v, Layers::all, Where::eight_experts, Format::q8_0},
    {"", Role::attention_k, Layers::all, Where::eight_experts, Format::q8_0},

    {"Q2_K", Role::attention_v, Layers::all, Where::shared_v, Format::q4_k},
    {"Q2_K", Role::attention_v, Layers::all, Where::any, Format::q3_k},
    {"Q2_K", Role::attention_output, Layers::all, Where::eight_experts, Format::q5_k},
    {"Q2_K", Role::attention_output, Layers::all, Where::any, Format::q3_k},
    {"Q2_K", Role::ffn_down, Layers::all, Where::any, Format::q3_k},

    {"Q2_K_S", Role::attention_v, Layers::all, Where::shared_v, Format::q4_k},
    {"Q2_K_S", Role::ffn_down, Layers::first_eighth, Where::any, Format::q4_k},

    {"Q3_K_S", Role::attention_output, Layers::all, Where::eight_experts, Format::q5_k},

    {"Q3_K_M", Role::attention_v, Layers::first_two, Where::any, Format::q5_k},
    {"Q3_K_M", Role::attention_v, Layers::all, Where::any, Format::q4_k},
    {"Q3_K_M", Role::attention_output, Layers::all, Where::eight_experts, Format::q5_k},
    {"Q3_K_M", Role::attention_output, Layers::all, Where::any, Format::q4_k},
    {"Q3_K_M", Role::ffn_down, Layers::first_sixteenth, Where::any, Format::q5_k},
    {"Q3_K_M", Role::ffn_down, Layers::all, Where::any, Format::q4_k},

    {"Q3_K_L", Role::attention_v, Layers::all, Where::any, Format::q5_k},
    {"Q3_K_L", Role::attention_output, Layers::all, Where::eight_experts, Format::q3_k},
    {"Q3_K_L", Role::attention_output, Layers::all, Where::any, Format::q5_k},
    {"Q3_K_L", Role::ffn_down, Layers::all, Where::any, Format::q5_k},

    {"Q4_K_S", Role::attention_v, Layers::first_four, Where::any, Format::q5_k},
    {"Q4_K_S", Role::attention_output, Layers::all, Where::eight_experts, Format::q5_k},
    {"Q4_K_S", Role::ffn_down, Layers::first_eighth, Where::any, Format::q5_k},

    {"Q4_K_M", Role::attention_v, Layers::sensitive, Where::any, Format::q6_k},
    {"Q4_K_M", Role::attention_output, Layers::all, Where::eight_experts, Format::q5_k},
    {"Q4_K_M", Role::ffn_down, Layers::sensitive, Where::any, Format::q6_k},

    {"Q5_K_M", Role::attention_v, Layers::sensitive, Where::any, Format::q6_k},
    {"Q5_K_M", Role::ffn_down, Layers::sensitive, Where::any, Format::q6_k},

    {"IQ4_NL", Role::attention_v, Layers::all, Where::shared_v, Format::q5_k},
    {"IQ4_NL", Role::attention_output, Layers::all, Where::eight_experts, Format::q5_k},
    {"IQ4_NL", Role::ffn_down, Layers::first_eighth, Where::no_importance, Format::q5_k},

    {"IQ4_XS", Role::attention_v, Layers::all, Where::shared_v, Format::q5_k},
    {"IQ4_XS", Role::attention_output, Layers::all, Where::eight_experts, Format::q5_k},
    {"IQ4_XS", Role::ffn_down, Layers::first_eighth, Where::no_importance, Format::q5_k},

    {"Q4_0", Role::ffn_down, Layers::first_eighth, Where::importance, Format::q4_1},
    {"Q5_0", Role::ffn_down, Layers::first_eighth, Where::importance, Format::q5_1},

    // The public quantizer makes no dense files of these two; the output is as in its MXFP4 of
    // experts.
    {"MXFP4", Role::output, Layers::all, Where::any, Format::q8_0},
    {"NVFP4", Role::output, Layers::all, Where::any, Format::q8_0},

    {"Q4X", Role::attention_v, Layers::all, Where::shared_v, Format::q5_k},

    // The output of every other mix. Q8_0 does not go down to it; see also choose().
    {"Q8_0", Role::output, Layers::all, Where::any, Format::q8_0},
    {"", Role::output, Layers::all, Where::any, Format::q6_k},
};

struct Replacement {
  Format format;
  Format instead;
};

// Where rows are no whole blocks of 256 (NVFP4: 64).
constexpr Replacement kReplacements[] = {
    {Format::q2_k, Format::q4_0},   {Format::q3_k, Format::q4_0},  {Format::q4_k, Format::q5_0},
    {Format::q5_k, Format::q5_1},   {Format::q6_k, Format::q8_0},  {Format::iq4_xs, Format::iq4_nl},
    {Format::nvfp4, Format::mxfp4}, {Format::q4x, Format::iq4_nl},
};

struct NamePart {
  std::string_view part;
  Role role;
};

constexpr NamePart kRoles[] = {
    {"attn_qkv.weight", Role::attention_v},
    {"attn_kv_b.weight", Role::attention_v},
    {"attn_v.weight", Role::attention_v},
    {"attn_k.weight", Role::attention_k},
    {"attn_q.weight", Role::attention_q},
    {"attn_output.weight", Role::attention_output},
    {"ffn_up", Role::ffn_up},
    {"ffn_gate", Role::ffn_gate},
    {"ffn_down", Role::ffn_down},
};

// Matrices too small or too delicate to encode, by a part of their name.
constexpr std::string_view kKeptAsTheyAre[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "position_embd",
    "token_types.weight",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
};

constexpr char upper(char c) noexcept {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool same_name(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return upper(x) == upper(y); });
}

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

bool holds(Layers layers, std::size_t index, std::size_t count) noexcept {
  switch (layers) {
    case Layers::all:
      return true;
    case Layers::first_two:
      return index < 2;
    case Layers::first_four:
      return index < 4;
    case Layers::first_sixteenth:
      return index < count / 16;
    case Layers::first_eighth:
      return index < count / 8;
    case Layers::sensitive:
      return index < count / 8 || index >= 7 * count / 8 || (index - count / 8) % 3 == 2;
  }
  return false;
}

bool holds(Where where, const ModelFacts& facts) noexcept {
  switch (where) {
    case Where::any:
      return true;
    case Where::shared_v:
      return facts.kv_heads != 0 && facts.heads / facts.kv_heads >= 4;
    case Where::eight_experts:
      return facts.experts == 8;
    case Where::importance:
      return facts.has_importance;
    case Where::no_importance:
      return !facts.has_importance;
  }
  return false;
}

// The first number under a key: files give one for the model or one for each layer.
std::size_t number(const GgufFile& file, const std::string& key) {
  const MetadataValue* value = file.find(key);
  if (value == nullptr) return 0;
  if (value->type == MetadataType::array) {
    const auto all = file.integers(key);
    return all && !all->empty() ? static_cast<std::size_t>(std::max(0, all->front())) : 0;
  }
  return file.u32(key).value_or(0);
}

}  // namespace

std::span<const Mix> all_mixes() noexcept { return kMixes; }

const Mix* find_mix(std::string_view name) noexcept {
  for (const Alias& alias : kAliases) {
    if (same_name(alias.name, name)) name = alias.mix;
  }
  const auto found = std::find_if(std::begin(kMixes), std::end(kMixes),
                                  [&](const Mix& mix) { return same_name(mix.name, name); });
  return found == std::end(kMixes) ? nullptr : found;
}

std::string mix_names() {
  std::string names;
  for (const Mix& mix : kMixes) names += (names.empty() ? "" : ", ") + std::string(mix.name);
  return names;
}

bool is_target(Format format) noexcept {
  return std::any_of(std::begin(kMixes), std::end(kMixes),
                     [&](const Mix& mix) { return mix.format == format; });
}

Role role_of(std::string_view tensor) noexcept {
  if (tensor == "output.weight") return Role::output;
  if (tensor == "token_embd.weight" || tensor == "per_layer_token_embd.weight") {
    return Role::embedding;
  }
  for (const NamePart& known : kRoles) {
    if (contains(tensor, known.part)) return known.role;
  }
  return Role::other;
}

bool is_encodable(const GgufTensor& tensor) noexcept {
  std::size_t rank = tensor.dims.size();
  while (rank > 1 && tensor.dims[rank - 1] == 1) --rank;
  if (rank < 2 || tensor.elements == 0 || !std::string_view(tensor.name).ends_with("weight")) {
    return false;
  }
  return std::none_of(std::begin(kKeptAsTheyAre), std::end(kKeptAsTheyAre),
                      [&](std::string_view part) { return contains(tensor.name, part); });
}

std::optional<std::size_t> layer_of(std::string_view tensor) noexcept {
  constexpr std::string_view kPrefix = "blk.";
  if (!tensor.starts_with(kPrefix)) return std::nullopt;
  std::size_t layer = 0;
  const char* const end = tensor.data() + tensor.size();
  const auto [last, status] = std::from_chars(tensor.data() + kPrefix.size(), end, layer);
  if (status != std::errc{} || last == end || *last != '.') return std::nullopt;
  return layer;
}

ModelFacts ModelFacts::of(const GgufFile& file) {
  const std::string architecture =
      file.find("general.architecture") == nullptr ? "" : architecture_of(file);
  ModelFacts facts;
  facts.is_llama = architecture == "llama";
  facts.layers = number(file, architecture + ".block_count");
  facts.heads = number(file, architecture + ".attention.head_count");
  facts.kv_heads = number(file, architecture + ".attention.head_count_kv");
  if (file.find(architecture + ".attention.head_count_kv") == nullptr) facts.kv_heads = facts.heads;
  facts.experts = number(file, architecture + ".expert_count");
  for (const GgufTensor& tensor : file.tensors()) {
    const Role role = role_of(tensor.name);
    if (role == Role::attention_v) ++facts.attention_v;
    if (role == Role::output) facts.tied = false;
  }
  return facts;
}

Format choose(const Mix& mix, const ModelFacts& facts, const Candidate& tensor) noexcept {
  const std::uint32_t block = quant::traits(mix.format).block_values;
  if (block == 1) return mix.format;
  const bool is_output =
      tensor.role == Role::output || (tensor.role == Role::embedding && facts.tied);
  // Rows that do not fit the mix will hardly fit a better format of the same block size.
  if (is_output && tensor.columns % block != 0) return Format::q8_0;
  const Role role = is_output ? Role::output : tensor.role;
  const std::size_t count = role == Role::attention_v ? facts.attention_v : facts.layers;
  Format format = mix.format;
  for (const Rule& rule : kRules) {
    if (!rule.mix.empty() && rule.mix != mix.name) continue;
    if (rule.role != role || !holds(rule.layers, tensor.index, count)) continue;
    if (!holds(rule.where, facts)) continue;
    format = rule.format;
    break;
  }
  // The 70B llama: its v is an eighth of q, so the bits cost next to nothing.
  const bool is_70b = facts.is_llama && facts.layers == 80 && facts.heads != facts.kv_heads;
  if (is_70b && role == Role::attention_v && (format == Format::q3_k || format == Format::q4_k)) {
    format = Format::q5_k;
  }
  return format;
}

Format fit_rows(Format wanted, std::size_t columns) noexcept {
  const auto fits = [&](Format format) {
    return columns % quant::traits(format).block_values == 0;
  };
  if (fits(wanted)) return wanted;
  for (const Replacement& replacement : kReplacements) {
    if (replacement.format == wanted && fits(replacement.instead)) return replacement.instead;
  }
  return Format::f16;
}

}  // namespace lockstep::quantize
