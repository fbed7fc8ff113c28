// One line of a batch job's input as a request: what to generate, how, and under which id.
//
// Two line formats are understood and told apart line by line: plain JSONL (`prompt` or `messages`,
// optional `id`) and the OpenAI batch format (`custom_id`, `method`, `url`, `body`). A line that
// cannot be used becomes a RequestError with the reason, never an exception: one bad line must not
// stop a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/sampler.h"

namespace lockstep::batch {

enum class RowFormat : std::uint8_t { plain, openai_chat, openai_completion };

// What ties an output row to its input line. `id` is the JSON text of the line's id, "null" if it
// has none.
struct RowIdentity {
  std::size_t line = 0;  // 1-based
  RowFormat format = RowFormat::plain;
  std::string id = "null";
};

// The command line's values, for every field that a request leaves out.
struct RequestDefaults {
  std::size_t max_tokens = 0;  // 0: as many as fit into the context
  SamplingParams sampling;     // its seed is the job's; each row draws from its own (see row_seed)
  bool token_ids = false;      // show them in every row
  bool truncate_prompt = false;  // cut prompts that leave no room for max_tokens
  std::size_t vocabulary = 0;    // token ids must be below; 0: not known, not checked
};

// How an answer is drawn, when it ends and what its row shows.
struct AnswerRules {
  std::size_t max_tokens = 0;
  SamplingParams sampling;
  std::vector<std::string> stop;
  bool ignore_eos = false;    // take end tokens like any other
  bool include_stop = false;  // leave a stop string in the text
  bool token_ids = false;     // show the ids of prompt and answer in the row
  std::size_t truncated = 0;  // tokens that were cut from the prompt
};

struct Request : AnswerRules {  // max_tokens 0: as many as fit into the context
  RowIdentity row;
  bool is_chat = false;
  std::string prompt;                      // if neither a chat nor token ids
  ChatRequest chat;                        // if a chat
  std::vector<TokenId> prompt_ids;         // the prompt as it is evaluated; empty: not given
  std::size_t truncate_prompt_tokens = 0;  // keep so many of the prompt; 0: all
};

struct RequestError {
  RowIdentity row;
  int status = 400;     // HTTP status of an OpenAI row
  std::string code;     // "invalid_json", "invalid_request", "context_length_exceeded", ...
  std::string message;  // one line of valid UTF-8
};

using ParsedLine = std::variant<Request, RequestError>;

// Nesting depth and number of stop strings beyond which a line is refused.
inline constexpr int kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxStopStrings = 16;

// `fallback`: the row format for a line so broken that its own cannot be seen.
ParsedLine parse_request(std::string_view text, std::size_t line, const RequestDefaults& defaults,
                         RowFormat fallback);

// What the check of all ids before the job needs of a line.
struct LineIdentity {
  bool is_object = false;
  bool is_openai = false;  // if an object
  bool is_chat = false;    // asks for a chat completion, as far as can be seen
  std::string id;          // JSON text of a usable id, empty if there is none
  bool lacks_id = false;   // an OpenAI request without the custom_id that it must have
};
LineIdentity identify_line(std::string_view text);

// The seed of a row that sets none: depends on the job's seed and the row's id alone, so that it is
// the same in any file, in any order and among any other rows. Of a row without an id it is the
// line number that counts.
std::uint64_t row_seed(std::uint64_t seed, const RowIdentity& row) noexcept;

}  // namespace lockstep::batch
