// What `lockstep inspect` shows of a model: the right numbers, aligned, and nothing that a terminal
// or a JSON reader would choke on.
#include "runtime/cli/inspect.h"

#include <cmath>
#include <limits>

#include "runtime/cli/units.h"
#include "runtime/gguf_writer.h"
#include "runtime/printable.h"
#include "support/catch.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"
#include "support/tiny_model.h"

using namespace lockstep;
using namespace lockstep::test;
using lockstep::quant::Format;

namespace {

bool holds(const std::string& text, const std::string& part) {
  INFO("looking for: " << part);
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

// Columns in which the last character of each line stands, for the lines after `title` up to a
// blank one.
std::vector<std::size_t> line_ends(const std::string& text, const std::string& title) {
  std::vector<std::size_t> ends;
  std::size_t at = text.find("\n" + title + "\n") + title.size() + 2;
  while (at < text.size() && text[at] != '\n') {
    const std::size_t end = text.find('\n', at);
    ends.push_back(end - at);
    at = end + 1;
  }
  return ends;
}

}  // namespace

TEST_CASE("inspect shows a model's numbers") {
  TempDir folder;
  write_tiny_model(folder.path() / "tiny.gguf", Format::q8_0);
  const GgufFile file = GgufFile::open(folder.path() / "tiny.gguf");
  // Embedding and output 300 x 64 each; per layer q, o 64 x 64, k, v 32 x 64, gate, up, down 96
  // x 64.
  const std::uint64_t matrices = 2 * 300 * 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64);
  const std::uint64_t norms = 5 * 64;

  const nlohmann::ordered_json json = cli::inspect_json(file);
  CHECK(json["architecture"] == "llama");
  CHECK(json["parameters"] == matrices + norms);
  CHECK(json["tensor_bytes"] == matrices / 32 * 34 + norms * 4);
  CHECK(json["tensors"].size() == 21);
  CHECK(json["tensors"][0]["name"] == "token_embd.weight");
  CHECK(json["tensors"][0]["shape"] == nlohmann::ordered_json({64, 300}));
  CHECK(json["tensors"][0]["format"] == "Q8_0");
  CHECK(json["tensors"][0]["bytes"] == 20400);
  CHECK(json["tensors"][0]["offset"] == file.data_offset());
  CHECK(json["formats"].size() == 2);
  CHECK(json["formats"][0]["format"] == "Q8_0");
  CHECK(json["formats"][0]["elements"] == matrices);
  CHECK(json["formats"][0]["bits_per_weight"] == 8.5);
  CHECK(json["metadata"]["llama.block_count"]["value"] == 2);
  CHECK(json["metadata"]["tokenizer.ggml.tokens"]["count"] == 300);
  CHECK(json["metadata"]["tokenizer.ggml.tokens"]["first"].size() == 64);
  CHECK(json["metadata"]["tokenizer.ggml.add_bos_token"]["value"] == true);
  CHECK(json["metadata"]["llama.attention.layer_norm_rms_epsilon"]["value"].dump() == "1e-05");

  const std::string text = cli::inspect_text(file);
  holds(text, "architecture  llama");
  holds(text, "parameters    100 k (100,160)");
  holds(text, "token_embd.weight");
  holds(text, "64 x 300");
  holds(text, "string[300]");
  holds(text, "8.58 bits per weight");
  for (const char* title : {"Tensors", "Formats"}) {
    INFO(title);
    const std::vector<std::size_t> ends = line_ends(text, title);
    CHECK(ends.size() >= 3);
    for (const std::size_t end : ends) CHECK(end == ends[0]);
  }
}

TEST_CASE("inspect shows hostile strings harmlessly") {
  TempDir folder;
  GgufWriter writer;
  writer.add_string("general.name", "a\x1b[2Jb\r\n\xff\xc3 end");
  writer.add_string("k\xfe\xff", std::string(5000, 'x'));
  writer.add_strings("list", {"\xed\xa0\x80", "\x7f", "\xe2\x80\xae"});
  writer.add_f32s("floats", {0.1f, std::numeric_limits<float>::infinity(), std::nanf("")});
  writer.add_strings("none", {});
  writer.add_string("empty", "");
  writer.add_tensor("t\n\x80", Format::f32, {0}, std::span<const std::byte>{});
  writer.write(folder.path() / "file\n.gguf");
  const GgufFile file = GgufFile::open(folder.path() / "file\n.gguf");

  const std::string text = cli::inspect_text(file);
  for (const char c : text) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
  CHECK(text == sanitize_utf8(text));
  CHECK(text.find('\x7f') == std::string::npos);
  CHECK(text.find("\xe2\x80\xae") == std::string::npos);
  holds(text, "file\\n.gguf\n");
  holds(text, "a\\x1b[2Jb\\x0d\\n\\xff\\xc3 end");
  holds(text, "... (5,000 bytes)");
  holds(text, "(empty)");
  holds(text, "0.1, inf, nan");

  const std::string json = cli::inspect_json(file).dump();
  const auto parsed = nlohmann::json::parse(json);
  CHECK(parsed["name"] == "a\x1b[2Jb\r\n\xef\xbf\xbd\xef\xbf\xbd end");
  CHECK(parsed["metadata"]["k\xef\xbf\xbd\xef\xbf\xbd"]["value"].get<std::string>().size() == 5000);
  CHECK(parsed["metadata"]["floats"]["value"][0] == 0.1);
  CHECK(parsed["metadata"]["floats"]["value"][1].is_null());
  CHECK(parsed["parameters"] == 0);
}

TEST_CASE("a file without anything can be inspected") {
  TempDir folder;
  GgufWriter{}.write(folder.path() / "file");
  const GgufFile file = GgufFile::open(folder.path() / "file");
  holds(cli::inspect_text(file), "architecture  (none)");
  CHECK(cli::inspect_json(file)["tensors"].empty());
}

TEST_CASE("inspect shows the real architecture of a file with formats of this project") {
  TempDir folder;
  GgufWriter writer;
  writer.add_string("general.architecture", "lockstep");
  writer.add_string("lockstep.architecture", "llama");
  writer.add_tensor("w", Format::q4x, {256, 2}, std::vector<std::byte>(2 * 137));
  writer.add_tensor("w.codebook", Format::i8, {72}, std::vector<std::byte>(72));
  writer.write(folder.path() / "file");
  const GgufFile file = GgufFile::open(folder.path() / "file");
  const std::string text = cli::inspect_text(file);
  holds(text, "llama (in formats of lockstep)");
  holds(text, "Q4X");
  CHECK(cli::inspect_json(file)["architecture"] == "lockstep");
  CHECK(cli::inspect_json(file)["tensors"][0]["format"] == "Q4X");
}

TEST_CASE("numbers are written as people read them") {
  CHECK(cli::grouped(0) == "0");
  CHECK(cli::grouped(999) == "999");
  CHECK(cli::grouped(1000) == "1,000");
  CHECK(cli::grouped(1234567) == "1,234,567");
  CHECK(cli::humane_bytes(1023) == "1023 B");
  CHECK(cli::humane_bytes(1024) == "1.00 KiB");
  CHECK(cli::humane_bytes(1023 * 1024) == "1.00 MiB");
  CHECK(cli::humane_bytes(619761952) == "591 MiB");
  CHECK(cli::humane_bytes(UINT64_MAX) == "16.0 EiB");
  CHECK(cli::humane_count(999) == "999");
  CHECK(cli::humane_count(1000) == "1.00 k");
  CHECK(cli::humane_count(999499) == "999 k");
  CHECK(cli::humane_count(1100048384) == "1.10 B");
}

TEST_CASE("printable text stays on one line and is cut at characters") {
  CHECK(printable("plain") == "plain");
  CHECK(printable("a\nb\tc\x01") == "a\\nb\\tc\\x01");
  CHECK(printable("\xc3\xa4\xc2\x85\xe2\x80\xa8") == "\xc3\xa4\\xc2\\x85\\xe2\\x80\\xa8");
  CHECK(printable("\xc3\xa4\xc3\xb6\xc3\xbc", 2) == "\xc3\xa4\xc3\xb6...");
  CHECK(printable("\xc3\xa4\xc3\xb6", 2) == "\xc3\xa4\xc3\xb6");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
}
