// The regular expressions of the public tokenizers, run by PCRE2 with Unicode properties. The
// expressions are facts about published models; what is ours is the care around them: white space
// is spelled out as Unicode defines it (PCRE2's \s also takes U+180E), and bytes that are no UTF-8
// never reach the matcher.
#include "runtime/tokenizer/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <utility>

#include "lockstep/error.h"
#include "runtime/utf8.h"

namespace lockstep {
namespace {

// Macros, because the pieces go into string literals; all of them end with the table below.
#define LOCKSTEP_SPACE \
  R"(\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"
#define LOCKSTEP_IS_SPACE "[" LOCKSTEP_SPACE "]"
#define LOCKSTEP_NOT_SPACE "[^" LOCKSTEP_SPACE "]"
// A run of white space leaves its last character to the word that follows.
#define LOCKSTEP_SPACES LOCKSTEP_IS_SPACE "+(?!" LOCKSTEP_NOT_SPACE ")|" LOCKSTEP_IS_SPACE "+"
#define LOCKSTEP_GPT2                                                \
  R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" LOCKSTEP_SPACE \
  R"(\p{L}\p{N}]+|)" LOCKSTEP_SPACES
// As in tiktoken's cl100k, with DIGITS digits to a word.
#define LOCKSTEP_CL100K(DIGITS)                                                               \
  R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|)" DIGITS \
  R"(| ?[^)" LOCKSTEP_SPACE R"(\p{L}\p{N}]+[\r\n]*|)" LOCKSTEP_IS_SPACE                       \
  R"(*[\r\n]+|)" LOCKSTEP_SPACES

constexpr std::string_view kGpt2[] = {LOCKSTEP_GPT2};
constexpr std::string_view kLlama3[] = {LOCKSTEP_CL100K(R"(\p{N}{1,3})")};
constexpr std::string_view kQwen2[] = {LOCKSTEP_CL100K(R"(\p{N})")};
constexpr std::string_view kStarcoder[] = {R"(\p{N})", LOCKSTEP_GPT2};
constexpr std::string_view kDeepseekCoder[] = {
    R"([\r\n])",
    LOCKSTEP_IS_SPACE R"(?\p{L}+)",
    LOCKSTEP_IS_SPACE R"(?\p{P}+)",
    R"([\x{800}-\x{9fa5}\x{ac00}-\x{d7ff}]+)",
    R"(\p{N})",
};
// What the public tools do with a file that says "default".
constexpr std::string_view kDefault[] = {
    R"([\p{P}$+<=>^~|]+)",
    LOCKSTEP_GPT2,
    R"(\p{N}+)",
    R"([0-9][0-9][0-9])",
};

#undef LOCKSTEP_CL100K
#undef LOCKSTEP_GPT2
#undef LOCKSTEP_SPACES
#undef LOCKSTEP_NOT_SPACE
#undef LOCKSTEP_IS_SPACE
#undef LOCKSTEP_SPACE

constexpr PreTokenizerFamily kFamilies[] = {
    {"default", kDefault},
    {"gpt-2", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"phi-2", kGpt2},
    {"jais", kGpt2},
    {"llama-bpe", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"smaug-bpe", kLlama3},
    {"dbrx", kLlama3},
    {"qwen2", kQwen2},
    {"deepseek-r1-qwen", kQwen2},
    {"stablelm2", kQwen2},
    {"megrez", kQwen2},
    {"starcoder", kStarcoder},
    {"refact", kStarcoder},
    {"command-r", kStarcoder},
    {"smollm", kStarcoder},
    {"codeshell", kStarcoder},
    {"deepseek-coder", kDeepseekCoder},
};

}  // namespace

struct PreTokenizer::Expression {
  explicit Expression(std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                         PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &at, nullptr);
    if (code == nullptr) {
      throw Error(
          ErrorCode::internal,
          fmt::format("PCRE2 refuses a pre-tokenizer's expression at offset {}, error {}; it "
                      "may be built without Unicode support",
                      at, error));
    }
    // Where there is no just-in-time compiler the interpreter matches the same.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  }
  Expression(Expression&& other) noexcept : code(std::exchange(other.code, nullptr)) {}
  ~Expression() { pcre2_code_free(code); }

  void split(const std::vector<std::string_view>& parts,
             std::vector<std::string_view>& words) const;

  pcre2_code* code = nullptr;
};

void PreTokenizer::Expression::split(const std::vector<std::string_view>& parts,
                                     std::vector<std::string_view>& words) const {
  struct Free {  // match blocks are made here because threads must not share them
    void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
    void operator()(pcre2_match_context* context) const noexcept {
      pcre2_match_context_free(context);
    }
  };
  const std::unique_ptr<pcre2_match_data, Free> data(
      pcre2_match_data_create_from_pattern(code, nullptr));
  const std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) throw std::bad_alloc();
  // The expressions are linear in the text; a run of white space may need a step per byte.
  pcre2_set_match_limit(context.get(), UINT32_MAX);

  for (const std::string_view part : parts) {
    const auto* const subject = reinterpret_cast<PCRE2_SPTR>(part.data());
    std::size_t begin = 0;
    while (begin < part.size()) {
      const int found = pcre2_match(code, subject, part.size(), begin, PCRE2_NO_UTF_CHECK,
                                    data.get(), context.get());
      if (found < 0) break;  // no match (or a limit of PCRE2's): the rest is one word
      const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(data.get());
      if (range[1] <= range[0]) break;
      if (range[0] > begin) words.push_back(part.substr(begin, range[0] - begin));
      words.push_back(part.substr(range[0], range[1] - range[0]));
      begin = range[1];
    }
    if (begin < part.size()) words.push_back(part.substr(begin));
  }
}

const PreTokenizerFamily* find_pretokenizer(std::string_view name) noexcept {
  for (const PreTokenizerFamily& family : kFamilies) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

std::string known_pretokenizers() {
  std::string names;
  for (const PreTokenizerFamily& family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  return names;
}

PreTokenizer::PreTokenizer(const PreTokenizerFamily& family) {
  expressions_.reserve(family.expressions.size());
  for (const std::string_view pattern : family.expressions) expressions_.emplace_back(pattern);
}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

void PreTokenizer::split(std::string_view text, std::vector<std::string_view>& words) const {
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid > 0) {
      std::vector<std::string_view> parts{text.substr(0, valid)};
      std::vector<std::string_view> finer;
      for (const Expression& expression : expressions_) {
        finer.clear();
        expression.split(parts, finer);
        parts.swap(finer);
      }
      words.insert(words.end(), parts.begin(), parts.end());
      text.remove_prefix(valid);
    }
    std::size_t broken = 0;
    while (broken < text.size()) {
      const Utf8Step step = next_utf8(text.substr(broken));
      if (step.status == Utf8Status::valid) break;
      broken += step.length;
    }
    if (broken > 0) words.push_back(text.substr(0, broken));
    text.remove_prefix(broken);
  }
}

}  // namespace lockstep
