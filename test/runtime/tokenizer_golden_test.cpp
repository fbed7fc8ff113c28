// Token ids against those of the public tools: the demo model's, and with the shared data set the
// public vocabularies' test texts and every prompt of the golden file.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/chat/chat_template.h"
#include "runtime/gguf.h"
#include "runtime/tokenizer/tokenizer.h"
#include "support/catch.h"
#include "support/shared.h"

namespace {

using namespace lockstep;
using Ids = std::vector<TokenId>;

const std::filesystem::path kDemo =
    std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "runtime/demo/storyteller-f16.gguf";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Case {
  std::string text;
  Ids ids;
};

// Texts stand between lines "__ggml_vocab_test__"; ids, one text to a line, in the .out file.
std::vector<Case> read_cases(const std::filesystem::path& vocabulary) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  const std::string texts = read_file(vocabulary.string() + ".inp");
  std::vector<Case> cases;
  for (std::size_t at = 0; at <= texts.size();) {
    const std::size_t end = std::min(texts.find(separator, at), texts.size());
    cases.push_back({texts.substr(at, end - at), {}});
    if (end == texts.size()) break;
    at = end + separator.size();
  }
  std::istringstream lines(read_file(vocabulary.string() + ".out"));
  std::string line;
  std::size_t count = 0;
  while (std::getline(lines, line)) {
    REQUIRE(count < cases.size());
    std::istringstream ids(line);
    for (TokenId id = 0; ids >> id;) cases[count].ids.push_back(id);
    ++count;
  }
  REQUIRE(count >= 40);
  // The last separator ends the file, so a text may be left that nobody asked about.
  REQUIRE(count + 1 >= cases.size());
  cases.resize(count);
  return cases;
}

void check_vocabulary(const std::filesystem::path& path) {
  const auto tokenizer = Tokenizer::load(GgufFile::open(path));
  for (const Case& test : read_cases(path)) {
    INFO(path.filename().string() << ": " << test.text);
    CHECK(tokenizer->encode(test.text, {.add_bos = false}) == test.ids);
    CHECK(tokenizer->encode(test.text, {.add_bos = false, .parse_special = false}) == test.ids);
    CHECK(tokenizer->decode(test.ids) == test.text);
  }
}

void check_prompts(const GgufFile& file, const nlohmann::json& model) {
  const auto tokenizer = Tokenizer::load(file);
  REQUIRE_FALSE(model.at("prompts").empty());
  for (const auto& prompt : model.at("prompts")) {
    const auto text = prompt.at("text").get<std::string>();
    INFO(text);
    const Ids ids = tokenizer->encode(text);
    CHECK(ids == prompt.at("ids").get<Ids>());
    CHECK(tokenizer->decode(ids, true) == "<s>" + text);
  }
}

}  // namespace

#define LOCKSTEP_VOCABULARY_TEST(NAME)                                    \
  TEST_CASE("public vocabulary " NAME " gives the public tools' ids") {   \
    LOCKSTEP_SHARED_OR_SKIP(path, "tokenizers/ggml-vocab-" NAME ".gguf"); \
    check_vocabulary(path);                                               \
  }

LOCKSTEP_VOCABULARY_TEST("llama-spm")
LOCKSTEP_VOCABULARY_TEST("phi-3")
LOCKSTEP_VOCABULARY_TEST("gpt-2")
LOCKSTEP_VOCABULARY_TEST("mpt")
LOCKSTEP_VOCABULARY_TEST("llama-bpe")
LOCKSTEP_VOCABULARY_TEST("qwen2")
LOCKSTEP_VOCABULARY_TEST("starcoder")
LOCKSTEP_VOCABULARY_TEST("deepseek-coder")

TEST_CASE("a public vocabulary without a pre-tokenizer name loads and round-trips") {
  LOCKSTEP_SHARED_OR_SKIP(path, "tokenizers/ggml-vocab-gpt-neox.gguf");
  const auto tokenizer = Tokenizer::load(GgufFile::open(path));
  const std::string text = "Hello,   world! 12345 \xE6\x88\x91\n\n  end";
  CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
}

TEST_CASE("every golden prompt has the golden ids") {
  LOCKSTEP_SHARED_OR_SKIP(path, "golden/model_golden.json");
  const nlohmann::json golden = nlohmann::json::parse(read_file(path));
  std::size_t checked = 0;
  for (const auto& [name, model] : golden.at("models").items()) {
    const std::filesystem::path file = test::shared_dir() / name;
    if (!std::filesystem::exists(file)) continue;
    INFO(name);
    check_prompts(GgufFile::open(file), model);
    ++checked;
  }
  CHECK(checked >= 2);
}

TEST_CASE("the demo model's prompts have the public tools' ids") {
  const GgufFile file = GgufFile::open(kDemo);
  const auto tokenizer = Tokenizer::load(file);
  CHECK(tokenizer->model() == "llama");
  CHECK(tokenizer->size() == 1024);
  CHECK(tokenizer->bos() == 1);
  CHECK(tokenizer->eos() == 2);
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->ends_generation(2));
  CHECK(tokenizer->ends_generation(5));
  CHECK_FALSE(tokenizer->ends_generation(1));
  CHECK_FALSE(tokenizer->ends_generation(kNoToken));

  CHECK(tokenizer->encode("Once upon a time") == Ids{1, 556, 557, 262, 406});
  CHECK(tokenizer->encode("There was once") == Ids{1, 579, 284, 497});
  CHECK(tokenizer->encode("In a house beside the river lived", {.add_bos = false}) ==
        Ids{573, 262, 574, 472, 265, 771, 333});
  CHECK(tokenizer->encode("") == Ids{1});
  CHECK(tokenizer->encode("", {.add_bos = false}).empty());

  const ChatTemplate chat(file.require_string("tokenizer.chat_template"), {"<s>", "</s>", ""});
  const std::string prompt = chat.render(simple_chat("Tell me a story about a pony and the sun."));
  CHECK(prompt == "<|user|>\nTell me a story about a pony and the sun.<|end|>\n<|assistant|>\n");
  CHECK(tokenizer->encode(prompt) ==
        Ids{1, 3, 16, 397, 346, 262, 326, 325, 262, 754, 278, 265, 614, 980, 5, 16, 4, 16});
}

TEST_CASE("the chat templates of public vocabularies write their own form") {
  LOCKSTEP_SHARED_OR_SKIP(phi, "tokenizers/ggml-vocab-phi-3.gguf");
  LOCKSTEP_SHARED_OR_SKIP(qwen, "tokenizers/ggml-vocab-qwen2.gguf");
  LOCKSTEP_SHARED_OR_SKIP(llama, "tokenizers/ggml-vocab-llama-bpe.gguf");
  ChatRequest request;
  request.messages = R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes?"},)"
                     R"({"role":"user","content":"Go"}])";
  const auto render = [&](const std::filesystem::path& path) {
    const std::string text = GgufFile::open(path).require_string("tokenizer.chat_template");
    return ChatTemplate(text, {"<s>", "</s>", ""}).render(request);
  };
  CHECK(render(phi) ==
        "<s><|user|>\nHi<|end|>\n<|assistant|>\nYes?<|end|>\n<|user|>\nGo<|end|>\n<|assistant|>\n");
  CHECK(render(qwen) ==
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n"
        "<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n");
  const std::string header = "<|start_header_id|>";
  CHECK(render(llama) == "<s>" + header + "user<|end_header_id|>\n\nHi<|eot_id|>" + header +
                             "assistant<|end_header_id|>\n\nYes?<|eot_id|>" + header +
                             "user<|end_header_id|>\n\nGo<|eot_id|>" + header +
                             "assistant<|end_header_id|>\n\n");
}
