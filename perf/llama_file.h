// Writing a `llama` model with random weights: a valid file for any GGUF program, with a vocabulary
// that really tokenizes, in every format that random_blocks.h offers. Benches need the size of real
// models and tests need small ones; neither needs sense.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "perf/random_blocks.h"
#include "runtime/gguf_writer.h"

namespace lockstep::perf {

struct LlamaShape {
  std::uint32_t layers = 22;
  std::uint32_t width = 2048;
  std::uint32_t heads = 32;
  std::uint32_t kv_heads = 4;
  std::uint32_t feed_forward = 5632;
  std::uint32_t vocabulary = 32000;
  std::uint32_t context = 2048;
  bool tied = false;  // no output.weight: the embedding serves
};

struct NamedShape {
  std::string_view name;
  LlamaShape shape;
};

inline constexpr NamedShape kNamedShapes[] = {
    {"tinyllama-1.1b", {}},
    {"110m", {12, 768, 12, 12, 2048, 32000, 1024, false}},
    {"tiny", {2, 256, 4, 2, 512, 512, 256, false}},
};

// A SentencePiece vocabulary: the three usual controls, the 256 bytes, the two ChatML marks,
// printable characters, then words over a-z in order of their length, with and without the mark of
// a word start. Every piece is the merge of two earlier ones and scores fall with the length, so
// text is merged as with a trained vocabulary.
struct LlamaVocabulary {
  static constexpr std::uint32_t kFirstPiece = 261;

  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::vector<std::int32_t> kinds;  // GGUF token types

  explicit LlamaVocabulary(std::uint32_t size) : size_(size) {
    enum { normal = 1, unknown = 2, control = 3, byte = 6 };
    add("<unk>", unknown);
    add("<s>", control);
    add("</s>", control);
    for (unsigned i = 0; i < 256; ++i) {
      static constexpr char kHex[] = "0123456789ABCDEF";
      add({'<', '0', 'x', kHex[i >> 4], kHex[i & 15], '>'}, byte);
    }
    add("<|im_start|>", control);
    add("<|im_end|>", control);
    static const std::string kWordStart = "\xe2\x96\x81";
    add(kWordStart, normal);
    for (char c = 'a'; c <= 'z'; ++c) add({c}, normal);
    for (char c = '!'; c <= '~'; ++c) {
      if (c < 'a' || c > 'z') add({c}, normal);
    }
    for (std::size_t length = 1; !full(); ++length) {
      std::string word(length, 'a');
      do {
        if (length > 1) add(word, normal);
        add(kWordStart + word, normal);
      } while (!full() && next_word(word));
    }
  }

 private:
  bool full() const { return pieces.size() >= size_; }

  void add(const std::string& piece, std::int32_t kind) {
    if (full()) return;
    const bool scored = pieces.size() >= kFirstPiece;
    scores.push_back(scored ? -static_cast<float>(pieces.size() - kFirstPiece) : 0.0f);
    pieces.push_back(piece);
    kinds.push_back(kind);
  }

  // Counts in letters; false after the last word of this length.
  static bool next_word(std::string& word) {
    for (std::size_t i = word.size(); i-- > 0;) {
      if (word[i] != 'z') {
        ++word[i];
        return true;
      }
      word[i] = 'a';
    }
    return false;
  }

  std::uint32_t size_;
};

namespace llama_detail {

inline void check(const LlamaShape& shape, quant::Format format) {
  const auto fail = [](const std::string& what) { throw std::invalid_argument(what); };
  const std::uint32_t block = quant::traits(format).block_values;
  const std::string in = " is no multiple of the block of " + std::to_string(block) +
                         " values of " + std::string(quant::traits(format).name);
  if (shape.layers == 0 || shape.width == 0 || shape.heads == 0 || shape.kv_heads == 0 ||
      shape.feed_forward == 0 || shape.context == 0) {
    fail("every number of the shape must be at least 1");
  }
  if (shape.width % shape.heads != 0 || shape.width / shape.heads % 2 != 0) {
    fail("the width must be heads times an even number");
  }
  if (shape.heads % shape.kv_heads != 0) fail("the heads must be a multiple of the kv heads");
  if (shape.width % block != 0) fail("the width " + std::to_string(shape.width) + in);
  if (shape.feed_forward % block != 0) {
    fail("the feed-forward width " + std::to_string(shape.feed_forward) + in);
  }
  if (shape.vocabulary < LlamaVocabulary::kFirstPiece + 1) {
    fail("the vocabulary needs at least " + std::to_string(LlamaVocabulary::kFirstPiece + 1) +
         " pieces");
  }
}

inline void add_metadata(GgufWriter& writer, const LlamaShape& shape, const RandomFormat& format,
                         const std::string& name) {
  writer.add_string("general.architecture", "llama");
  writer.add_string("general.name", name);
  writer.add_u32("general.file_type", format.file_type);
  writer.add_u32("general.quantization_version", 2);
  writer.add_u32("llama.context_length", shape.context);
  writer.add_u32("llama.embedding_length", shape.width);
  writer.add_u32("llama.block_count", shape.layers);
  writer.add_u32("llama.feed_forward_length", shape.feed_forward);
  writer.add_u32("llama.attention.head_count", shape.heads);
  writer.add_u32("llama.attention.head_count_kv", shape.kv_heads);
  writer.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.add_u32("llama.rope.dimension_count", shape.width / shape.heads);
  writer.add_f32("llama.rope.freq_base", 10000.0f);
  writer.add_u32("llama.vocab_size", shape.vocabulary);
  const LlamaVocabulary vocabulary(shape.vocabulary);
  writer.add_string("tokenizer.ggml.model", "llama");
  writer.add_string("tokenizer.ggml.pre", "default");
  writer.add_strings("tokenizer.ggml.tokens", vocabulary.pieces);
  writer.add_f32s("tokenizer.ggml.scores", vocabulary.scores);
  writer.add_i32s("tokenizer.ggml.token_type", vocabulary.kinds);
  writer.add_u32("tokenizer.ggml.unknown_token_id", 0);
  writer.add_u32("tokenizer.ggml.bos_token_id", 1);
  writer.add_u32("tokenizer.ggml.eos_token_id", 2);
  writer.add_u32("tokenizer.ggml.eot_token_id", 260);
  writer.add_bool("tokenizer.ggml.add_bos_token", true);
  writer.add_bool("tokenizer.ggml.add_eos_token", false);
  writer.add_string("tokenizer.chat_template",
                    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
                    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
                    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
}

}  // namespace llama_detail

// Random matrices with mean 0 and standard deviation 1 / sqrt(columns), so that activations keep
// their size from layer to layer; norm weights around 1. The bytes depend on shape, format and seed
// alone. Throws std::invalid_argument for an impossible shape, Error if writing fails.
inline void write_llama_file(const std::filesystem::path& path, const LlamaShape& shape,
                             quant::Format format, std::uint64_t seed,
                             const std::string& name = "Random weights") {
  const RandomFormat& random = random_format(format);
  llama_detail::check(shape, format);
  GgufWriter writer;
  llama_detail::add_metadata(writer, shape, random, name);

  RandomBits seeds(seed);
  const auto matrix = [&](const std::string& tensor, std::uint64_t columns, std::uint64_t rows) {
    const std::uint64_t tensor_seed = seeds.next();
    const auto bits = std::make_shared<RandomBits>(tensor_seed);
    const double sigma = 1 / std::sqrt(static_cast<double>(columns));
    const auto fill = [=, &random](std::uint64_t offset, std::span<std::byte> into) {
      if (offset == 0) *bits = RandomBits(tensor_seed);
      random.fill(*bits, sigma, into);
    };
    writer.add_tensor(tensor, format, {columns, rows}, fill);
  };
  const auto norm = [&](const std::string& tensor) {
    RandomBits bits(seeds.next());
    std::vector<float> weights(shape.width);
    for (float& weight : weights) weight = static_cast<float>(0.9 + 0.2 * bits.uniform());
    writer.add_tensor(tensor, quant::Format::f32, {shape.width}, std::as_bytes(std::span(weights)));
  };

  const std::uint64_t kv_width = std::uint64_t{shape.width / shape.heads} * shape.kv_heads;
  matrix("token_embd.weight", shape.width, shape.vocabulary);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const std::string block = std::string("blk.").append(std::to_string(layer)).append(".");
    norm(block + "attn_norm.weight");
    matrix(block + "attn_q.weight", shape.width, shape.width);
    matrix(block + "attn_k.weight", shape.width, kv_width);
    matrix(block + "attn_v.weight", shape.width, kv_width);
    matrix(block + "attn_output.weight", shape.width, shape.width);
    norm(block + "ffn_norm.weight");
    matrix(block + "ffn_gate.weight", shape.width, shape.feed_forward);
    matrix(block + "ffn_up.weight", shape.width, shape.feed_forward);
    matrix(block + "ffn_down.weight", shape.feed_forward, shape.width);
  }
  norm("output_norm.weight");
  if (!shape.tied) matrix("output.weight", shape.width, shape.vocabulary);
  writer.write(path);
}

}  // namespace lockstep::perf
