// The recipes, against a table worked out by hand from the facts of the public one: 22 layers, 32
// query heads, 4 heads of keys and values (the shape of a well-known 1.1 B model), and a model
// whose heads are not shared.
#include "runtime/quantize/recipe.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/gguf.h"
#include "support/catch.h"

using namespace lockstep;
using namespace lockstep::quantize;
using quant::Format;

namespace {

ModelFacts small_llama() {
  ModelFacts facts;
  facts.layers = 22;
  facts.heads = 32;
  facts.kv_heads = 4;
  facts.attention_v = 22;
  facts.is_llama = true;
  facts.tied = false;
  return facts;
}

ModelFacts unshared_llama() {
  ModelFacts facts = small_llama();
  facts.kv_heads = 32;
  return facts;
}

Format chosen(const char* mix, const ModelFacts& facts, Role role, std::size_t layer,
              std::size_t columns = 2048) {
  return choose(*find_mix(mix), facts, {role, layer, columns});
}

// The layers that get a better format than the mix's own, and which.
std::map<std::size_t, Format> raised(const char* mix, const ModelFacts& facts, Role role) {
  std::map<std::size_t, Format> layers;
  for (std::size_t layer = 0; layer < facts.layers; ++layer) {
    const Format format = chosen(mix, facts, role, layer);
    if (format != find_mix(mix)->format) layers[layer] = format;
  }
  return layers;
}

std::map<std::size_t, Format> in_layers(const std::vector<std::size_t>& layers, Format format) {
  std::map<std::size_t, Format> all;
  for (const std::size_t layer : layers) all[layer] = format;
  return all;
}

std::map<std::size_t, Format> first_layers(std::size_t count, Format format) {
  std::map<std::size_t, Format> all;
  for (std::size_t layer = 0; layer < count; ++layer) all[layer] = format;
  return all;
}

// 22 layers: 22 / 8 = 2 at the front, from 7 * 22 / 8 = 19 at the back, every third from 2 + 2.
const std::vector<std::size_t> kSensitive = {0, 1, 4, 7, 10, 13, 16, 19, 20, 21};

GgufTensor tensor_named(const char* name, std::vector<std::uint64_t> dims) {
  GgufTensor tensor;
  tensor.name = name;
  tensor.dims = std::move(dims);
  tensor.elements = 1;
  for (const std::uint64_t dim : tensor.dims) tensor.elements *= dim;
  return tensor;
}

}  // namespace

TEST_CASE("mixes are found by name and alias in any case") {
  CHECK(find_mix("q4_k_m")->name == "Q4_K_M");
  CHECK(find_mix("Q4_K")->name == "Q4_K_M");
  CHECK(find_mix("q3_k")->name == "Q3_K_M");
  CHECK(find_mix("Q5_k")->name == "Q5_K_M");
  CHECK(find_mix("iq4_xs")->format == Format::iq4_xs);
  for (const char* name : {"", "Q4", "Q4_K_M ", "IQ2_XXS", "Q8_K"})
    CHECK(find_mix(name) == nullptr);
  std::set<std::uint32_t> ids;
  for (const Mix& mix : all_mixes()) {
    CHECK(find_mix(mix.name) == &mix);
    CHECK(mix_names().find(mix.name) != std::string::npos);
    ids.insert(mix.file_type);
  }
  CHECK(ids.size() == all_mixes().size());
  CHECK_FALSE(is_target(Format::q8_k));
  CHECK_FALSE(is_target(Format::iq2_xxs));
}

TEST_CASE("public ids of general.file_type") {
  const std::map<std::string, std::uint32_t> ids = {
      {"F32", 0},     {"F16", 1},     {"Q4_0", 2},    {"Q4_1", 3},    {"Q8_0", 7},
      {"Q5_0", 8},    {"Q5_1", 9},    {"Q2_K", 10},   {"Q3_K_S", 11}, {"Q3_K_M", 12},
      {"Q3_K_L", 13}, {"Q4_K_S", 14}, {"Q4_K_M", 15}, {"Q5_K_S", 16}, {"Q5_K_M", 17},
      {"Q6_K", 18},   {"Q2_K_S", 21}, {"IQ4_NL", 25}, {"IQ4_XS", 30}, {"BF16", 32}};
  for (const auto& [name, id] : ids) {
    CAPTURE(name);
    REQUIRE(find_mix(name) != nullptr);
    CHECK(find_mix(name)->file_type == id);
  }
}

TEST_CASE("which layers of a 22-layer model with shared heads get more bits") {
  const ModelFacts facts = small_llama();
  const auto v = [&](const char* mix) { return raised(mix, facts, Role::attention_v); };
  const auto down = [&](const char* mix) { return raised(mix, facts, Role::ffn_down); };
  const auto out = [&](const char* mix) { return raised(mix, facts, Role::attention_output); };
  const std::map<std::size_t, Format> none;
  CHECK(v("Q2_K") == first_layers(22, Format::q4_k));
  CHECK(down("Q2_K") == first_layers(22, Format::q3_k));
  CHECK(out("Q2_K") == first_layers(22, Format::q3_k));
  CHECK(v("Q2_K_S") == first_layers(22, Format::q4_k));
  CHECK(down("Q2_K_S") == first_layers(2, Format::q4_k));
  CHECK(out("Q2_K_S") == none);
  for (const char* mix : {"Q3_K_S", "Q5_K_S", "Q6_K", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"}) {
    CAPTURE(mix);
    CHECK(v(mix) == none);
    CHECK(down(mix) == none);
    CHECK(out(mix) == none);
  }
  auto first_two_better = first_layers(22, Format::q4_k);
  first_two_better[0] = first_two_better[1] = Format::q5_k;
  CHECK(v("Q3_K_M") == first_two_better);
  auto first_better = first_layers(22, Format::q4_k);
  first_better[0] = Format::q5_k;  // 22 / 16 = 1
  CHECK(down("Q3_K_M") == first_better);
  CHECK(out("Q3_K_M") == first_layers(22, Format::q4_k));
  CHECK(v("Q3_K_L") == first_layers(22, Format::q5_k));
  CHECK(down("Q3_K_L") == first_layers(22, Format::q5_k));
  CHECK(out("Q3_K_L") == first_layers(22, Format::q5_k));
  CHECK(v("Q4_K_S") == first_layers(4, Format::q5_k));
  CHECK(down("Q4_K_S") == first_layers(2, Format::q5_k));
  CHECK(v("Q4_K_M") == in_layers(kSensitive, Format::q6_k));
  CHECK(down("Q4_K_M") == in_layers(kSensitive, Format::q6_k));
  CHECK(out("Q4_K_M") == none);
  CHECK(v("Q5_K_M") == in_layers(kSensitive, Format::q6_k));
  CHECK(down("Q5_K_M") == in_layers(kSensitive, Format::q6_k));
  for (const char* mix : {"IQ4_NL", "IQ4_XS"}) {
    CHECK(v(mix) == first_layers(22, Format::q5_k));
    CHECK(down(mix) == first_layers(2, Format::q5_k));
  }
  for (const Mix& mix : all_mixes()) {
    for (const Role role : {Role::attention_q, Role::attention_k, Role::ffn_gate, Role::ffn_up,
                            Role::embedding, Role::other}) {
      CHECK(chosen(mix.name.data(), facts, role, 0) == mix.format);
    }
  }
}

TEST_CASE("heads that are not shared, experts, and the largest llama") {
  const ModelFacts facts = unshared_llama();
  CHECK(chosen("Q2_K", facts, Role::attention_v, 5) == Format::q3_k);
  CHECK(chosen("Q2_K_S", facts, Role::attention_v, 5) == Format::q2_k);
  CHECK(chosen("IQ4_XS", facts, Role::attention_v, 5) == Format::iq4_xs);
  ModelFacts experts = small_llama();
  experts.experts = 8;
  for (const char* mix : {"Q2_K", "Q3_K_L", "Q4_K_M", "Q4_0", "IQ4_XS"}) {
    CHECK(chosen(mix, experts, Role::attention_v, 5) == Format::q8_0);
    CHECK(chosen(mix, experts, Role::attention_k, 5) == Format::q8_0);
  }
  CHECK(chosen("Q4_K_M", experts, Role::attention_output, 5) == Format::q5_k);
  CHECK(chosen("Q3_K_L", experts, Role::attention_output, 5) == Format::q3_k);
  ModelFacts large = small_llama();
  large.layers = large.attention_v = 80;
  large.heads = 64;
  large.kv_heads = 8;
  CHECK(chosen("Q3_K_S", large, Role::attention_v, 40) == Format::q5_k);
  CHECK(chosen("Q4_K_S", large, Role::attention_v, 40) == Format::q5_k);
  CHECK(chosen("Q4_K_M", large, Role::attention_v, 0) == Format::q6_k);
  CHECK(chosen("Q3_K_S", large, Role::ffn_down, 40) == Format::q3_k);
}

TEST_CASE("an importance matrix changes where the first layers need help") {
  ModelFacts facts = small_llama();
  facts.has_importance = true;
  CHECK(raised("Q4_0", facts, Role::ffn_down) == first_layers(2, Format::q4_1));
  CHECK(raised("Q5_0", facts, Role::ffn_down) == first_layers(2, Format::q5_1));
  CHECK(raised("IQ4_NL", facts, Role::ffn_down).empty());
}

TEST_CASE("output and tied embedding") {
  ModelFacts facts = small_llama();
  for (const Mix& mix : all_mixes()) {
    CAPTURE(mix.name);
    const bool dense = quant::traits(mix.format).block_values == 1;
    const bool by_32 = mix.name == "Q8_0" || mix.name == "MXFP4" || mix.name == "NVFP4";
    const Format expected = dense ? mix.format : by_32 ? Format::q8_0 : Format::q6_k;
    CHECK(choose(mix, facts, {Role::output, 0, 2048}) == expected);
    CHECK(choose(mix, facts, {Role::embedding, 0, 2048}) == mix.format);
    ModelFacts tied = facts;
    tied.tied = true;
    CHECK(choose(mix, tied, {Role::embedding, 0, 2048}) == expected);
  }
  // 288 values are whole blocks of 32 but not of 256.
  CHECK(chosen("Q4_K_M", facts, Role::output, 0, 288) == Format::q8_0);
  CHECK(fit_rows(chosen("Q4_0", facts, Role::output, 0, 288), 288) == Format::q8_0);
}

TEST_CASE("rows that are no whole blocks") {
  const std::map<Format, Format> by_32 = {
      {Format::q2_k, Format::q4_0}, {Format::q3_k, Format::q4_0},  {Format::q4_k, Format::q5_0},
      {Format::q5_k, Format::q5_1}, {Format::q6_k, Format::q8_0},  {Format::iq4_xs, Format::iq4_nl},
      {Format::q4_0, Format::q4_0}, {Format::nvfp4, Format::mxfp4}};
  for (const auto& [wanted, instead] : by_32) {
    CHECK(fit_rows(wanted, 96) == instead);
    CHECK(fit_rows(wanted, 512) == wanted);
    CHECK(fit_rows(wanted, 100) == Format::f16);
  }
  CHECK(fit_rows(Format::bf16, 7) == Format::bf16);
  CHECK(fit_rows(Format::f32, 1) == Format::f32);
}

TEST_CASE("what is encoded and what stays") {
  CHECK(is_encodable(tensor_named("blk.0.attn_q.weight", {64, 64})));
  CHECK(is_encodable(tensor_named("blk.0.ffn_down_exps.weight", {64, 64, 8})));
  CHECK(is_encodable(tensor_named("token_embd.weight", {64, 300})));
  CHECK_FALSE(is_encodable(tensor_named("blk.0.attn_norm.weight", {64})));
  CHECK_FALSE(is_encodable(tensor_named("blk.0.attn_norm.weight", {64, 64})));
  CHECK_FALSE(is_encodable(tensor_named("rope_freqs.weight", {32})));
  CHECK_FALSE(is_encodable(tensor_named("rope_freqs.weight", {32, 1, 1})));
  CHECK_FALSE(is_encodable(tensor_named("blk.0.attn_q.bias", {64, 64})));
  CHECK_FALSE(is_encodable(tensor_named("blk.0.ffn_gate_inp.weight", {64, 8})));
  CHECK_FALSE(is_encodable(tensor_named("w", {64, 8})));
  CHECK_FALSE(is_encodable(tensor_named("blk.0.attn_q.weight", {64, 0})));
  CHECK(role_of("blk.12.ffn_down.weight") == Role::ffn_down);
  CHECK(role_of("blk.12.ffn_down_exps.weight") == Role::ffn_down);
  CHECK(role_of("blk.1.attn_qkv.weight") == Role::attention_v);
  CHECK(role_of("blk.1.attn_output.weight") == Role::attention_output);
  CHECK(role_of("output.weight") == Role::output);
  CHECK(role_of("output_norm.weight") == Role::other);
  CHECK(layer_of("blk.17.attn_q.weight") == 17u);
  for (const char* name : {"output.weight", "blk.", "blk.x.y", "blk.12", "blk.-1.y",
                           "blk.99999999999999999999999.y"}) {
    CHECK_FALSE(layer_of(name).has_value());
  }
}
