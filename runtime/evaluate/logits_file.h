// The file in which a reference run is kept for KL divergence: the form of llama.cpp's perplexity
// tool, readable in both directions. Little endian:
//
//   "_logits_"  context (u32)  vocabulary (i32)  chunks (i32)  tokens (i32) [chunks, context]
//   per chunk, per scored position (context - 1 - context / 2 of them):
//     step (f32)  lowest (f32)  codes (u16) [vocabulary, rounded up to even]
//
//   "_tokens_"  -ln p of the text's own token (f64) [chunks, scored positions]
//
// A chunk's first token is replaced by BOS when it is evaluated, if the model asks for one; the
// file holds the text's own token.
//
// The last part is ours; the public tool does not look for it and writes files without it. Codes
// end 16 nats below the likeliest token, so the perplexity that they give for the base is too low
// where the text surprised it more than that: 2.43 in place of 2.53 for the demo model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/evaluate/token_scores.h"
#include "runtime/output_file.h"
#include "runtime/tokenizer/tokenizer.h"

namespace lockstep::evaluate {

struct LogitsHeader {
  std::size_t context = 0;
  std::size_t vocabulary = 0;
  std::size_t chunks = 0;

  std::size_t scored_per_chunk() const noexcept { return context - 1 - context / 2; }
  // u16 fields of one scored position.
  std::size_t row_fields() const noexcept { return 4 + (vocabulary + 1) / 2 * 2; }
};

// The packed log-probabilities in one row of a file. `row`: row_fields() fields.
PackedLogProbs load_row(std::span<std::uint16_t> row, std::size_t vocabulary) noexcept;
// Writes step and lowest into the row that `packed.codes` lies in.
void store_row(const PackedLogProbs& packed, std::span<std::uint16_t> row) noexcept;

class LogitsWriter {
 public:
  // `tokens`: [chunks, context]. Throws Error(cannot_create) or Error(io).
  LogitsWriter(const std::filesystem::path& path, const LogitsHeader& header,
               std::span<const TokenId> tokens);
  // Rows in the order of the file, and the scores they belong to.
  void append(std::span<const std::uint16_t> rows, std::span<const TokenScore> scores);
  // The file appears under its name only now.
  void commit();

 private:
  OutputFile file_;
  std::vector<double> nll_;
};

class LogitsReader {
 public:
  // Throws Error(no_input) if the file cannot be opened, Error(bad_input) if it is no such file or
  // has another length than its header says.
  explicit LogitsReader(std::filesystem::path path);
  LogitsReader(const LogitsReader&) = delete;
  LogitsReader& operator=(const LogitsReader&) = delete;
  ~LogitsReader();

  const LogitsHeader& header() const noexcept { return header_; }
  const std::vector<TokenId>& tokens() const noexcept { return tokens_; }  // [chunks, context]
  // -ln p of the text's own token, [chunks, scored positions]; empty if the file has no such part.
  const std::vector<double>& nll() const noexcept { return nll_; }
  // Reads `into.size() / row_fields()` rows, the first being scored position `position` of `chunk`.
  void read(std::size_t chunk, std::size_t position, std::span<std::uint16_t> into) const;

 private:
  void read_header();
  void read_nll(std::uint64_t offset);
  [[noreturn]] void refuse(const std::string& what) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  LogitsHeader header_;
  std::vector<TokenId> tokens_;
  std::vector<double> nll_;
  std::uint64_t data_offset_ = 0;
};

}  // namespace lockstep::evaluate
