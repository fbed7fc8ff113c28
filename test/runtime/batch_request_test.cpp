// Requests: what is accepted, what is refused and how the refusal reads.
#include <string>
#include <variant>

#include "runtime/batch/request.h"
#include "support/catch.h"

using namespace lockstep;
using namespace lockstep::batch;

namespace {

RequestDefaults defaults() {
  RequestDefaults values;
  values.max_tokens = 100;
  values.sampling.temperature = 0.5f;
  values.sampling.top_k = 40;
  values.sampling.top_p = 0.9f;
  values.sampling.min_p = 0.1f;
  values.sampling.seed = 11;
  return values;
}

Request accepted(const std::string& text, std::size_t line = 7) {
  const ParsedLine parsed = parse_request(text, line, defaults(), RowFormat::plain);
  if (const auto* error = std::get_if<RequestError>(&parsed)) FAIL(text << ": " << error->message);
  return std::get<Request>(parsed);
}

RequestError refused(const std::string& text, RowFormat fallback = RowFormat::plain) {
  const ParsedLine parsed = parse_request(text, 3, defaults(), fallback);
  if (!std::holds_alternative<RequestError>(parsed)) FAIL("accepted: " << text);
  const auto& error = std::get<RequestError>(parsed);
  CHECK(error.row.line == 3);
  CHECK(error.status == 400);
  CHECK_FALSE(error.message.empty());
  CHECK(error.message.find('\n') == std::string::npos);
  return error;
}

std::string chat(const std::string& body) {
  return R"({"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":)" + body + "}";
}

}  // namespace

TEST_CASE("plain prompt takes every default") {
  const Request request = accepted(R"({"prompt": "Hi"})");
  CHECK(request.row.line == 7);
  CHECK(request.row.format == RowFormat::plain);
  CHECK(request.row.id == "null");
  CHECK_FALSE(request.is_chat);
  CHECK(request.prompt == "Hi");
  CHECK(request.max_tokens == 100);
  CHECK(request.sampling.temperature == 0.5f);
  CHECK(request.sampling.top_k == 40);
  CHECK(request.sampling.top_p == 0.9f);
  CHECK(request.sampling.min_p == 0.1f);
  CHECK(request.sampling.seed == row_seed(11, request.row));
  CHECK(request.stop.empty());
}

TEST_CASE("fields of the line override the defaults") {
  const Request request = accepted(
      R"({"id": 5, "prompt": "", "max_tokens": 8, "temperature": 0, "top_k": 0,
          "top_p": 1, "min_p": 0,
          "seed": -1, "stop": ["a", "bc"], "unknown": {"x": 1}})");
  CHECK(request.row.id == "5");
  CHECK(request.prompt.empty());
  CHECK(request.max_tokens == 8);
  CHECK(request.sampling.temperature == 0.0f);
  CHECK(request.sampling.top_k == 0);
  CHECK(request.sampling.top_p == 1.0f);
  CHECK(request.sampling.min_p == 0.0f);
  CHECK(request.sampling.seed == 0xffffffffffffffffu);
  CHECK(request.stop == std::vector<std::string>{"a", "bc"});
}

TEST_CASE("null means not set") {
  const Request request = accepted(
      R"({"id": null, "prompt": "p", "messages": null, "max_tokens": null, "temperature": null,
          "stop": null,
          "logit_bias": null, "n": null})");
  CHECK(request.max_tokens == 100);
  CHECK(request.sampling.temperature == 0.5f);
}

TEST_CASE("OpenAI lines: chat and completion") {
  const Request talk = accepted(chat(
      R"({"model":"any","messages":[{"role":"system","content":"S"},{"role":"user","content":[
          {"type":"text","text":"a"},{"type":"text","text":"b"}]}],
          "max_completion_tokens":9,"max_tokens":5})"));
  CHECK(talk.row.format == RowFormat::openai_chat);
  CHECK(talk.row.id == "\"c\"");
  CHECK(talk.is_chat);
  CHECK(talk.chat.messages ==
        R"([{"role":"system","content":"S"},{"role":"user","content":"ab"}])");
  CHECK(talk.chat.tools.empty());
  CHECK(talk.chat.variables.empty());
  CHECK(talk.chat.add_generation_prompt);
  CHECK(talk.max_tokens == 9);

  const Request text = accepted(
      R"({"custom_id":"t","method":"POST","url":"/v1/completions",
          "body":{"prompt":"P","stop":"x"}})");
  CHECK(text.row.format == RowFormat::openai_completion);
  CHECK_FALSE(text.is_chat);
  CHECK(text.prompt == "P");
  CHECK(text.stop == std::vector<std::string>{"x"});
}

TEST_CASE("neutral values of unsupported fields are accepted") {
  accepted(R"({"prompt":"p","n":1,"stream":false,"frequency_penalty":0.0,"logit_bias":{},"tools":[],
               "response_format":{"type":"text"},"logprobs":false,"repetition_penalty":1.0})");
}

TEST_CASE("lines that are no request") {
  CHECK(refused("[1,2]").message.find("an array") != std::string::npos);
  CHECK(refused("null").message.find("null") != std::string::npos);
  CHECK(refused("3").code == "invalid_request");
  CHECK(refused(R"({"prompt": "cut)").code == "invalid_json");
  CHECK(refused(R"({"prompt": "a"} x)").code == "invalid_json");
  CHECK(refused("{}").code == "invalid_request");
  CHECK(refused("{\"prompt\": \"\xff\"}").code == "invalid_json");
  CHECK(refused(std::string("{\"prompt\": \"a\0b\"}", 17)).code == "invalid_json");
  CHECK(refused("{\"prompt\": 1e999}").code == "invalid_json");
  CHECK(refused("just text").code == "invalid_json");
}

TEST_CASE("a line too broken to show its format takes the fallback") {
  CHECK(refused("{", RowFormat::openai_chat).row.format == RowFormat::openai_chat);
  CHECK(refused(R"({"id":"x"})", RowFormat::openai_chat).row.format == RowFormat::plain);
}

TEST_CASE("nesting is limited, not the stack") {
  const std::string deep =
      R"({"prompt":"p","x":)" + std::string(200000, '[') + std::string(200000, ']') + "}";
  CHECK(refused(deep).message.find("nested") != std::string::npos);
  CHECK(refused(std::string(200000, '[')).code == "invalid_json");
  const std::string fine =
      R"({"prompt":"p","x":)" + std::string(60, '[') + std::string(60, ']') + "}";
  accepted(fine);
}

TEST_CASE("every field is checked for type and range") {
  const auto [field, value] = GENERATE(table<std::string, std::string>({
      {"max_tokens", "0"},
      {"max_tokens", "-5"},
      {"max_tokens", "1.5"},
      {"max_tokens", "\"8\""},
      {"max_tokens", "2147483648"},
      {"max_tokens", "1e3"},
      {"max_tokens", "99999999999999999999"},
      {"max_completion_tokens", "0"},
      {"temperature", "-0.1"},
      {"temperature", "101"},
      {"temperature", "\"hot\""},
      {"temperature", "true"},
      {"temperature", "1e300"},
      {"top_k", "-1"},
      {"top_k", "0.5"},
      {"top_k", "2147483648"},
      {"top_p", "0"},
      {"top_p", "1e-60"},
      {"top_p", "1.001"},
      {"top_p", "[]"},
      {"min_p", "1.5"},
      {"min_p", "-0.5"},
      {"seed", "1.5"},
      {"seed", "\"1\""},
      {"seed", "18446744073709551616"},
      {"stop", "5"},
      {"stop", "\"\""},
      {"stop", "[1]"},
      {"stop", "[\"\"]"},
      {"stop", R"(["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"])"},
      {"n", "2"},
      {"stream", "true"},
      {"echo", "true"},
      {"best_of", "3"},
      {"response_format", R"({"type":"json_object"})"},
      {"suffix", "\"x\""},
  }));
  CAPTURE(field, value);
  const RequestError plain = refused(R"({"prompt":"p",")" + field + "\":" + value + "}");
  CHECK(plain.code == "invalid_request");
  CHECK(plain.message.rfind(field + ": ", 0) == 0);
  const RequestError nested = refused(
      chat(R"({"messages":[{"role":"user","content":"x"}],")" + field + "\":" + value + "}"));
  CHECK(nested.message.rfind("body." + field + ": ", 0) == 0);
  CHECK(nested.row.id == "\"c\"");
}

TEST_CASE("OpenAI lines name what is wrong with them") {
  const auto [line, expected] = GENERATE(table<std::string, std::string>({
      {R"({"custom_id":"c","method":"POST","url":"/v1/chat/completions"})", "body: is missing"},
      {R"({"custom_id":"c"})", "url: is missing"},
      {R"({"custom_id":"c","url":"/v1/embeddings","body":{}})", "url: must be"},
      {R"({"custom_id":"c","url":3,"body":{}})", "url: must be a string"},
      {R"({"custom_id":"c","method":"GET","url":"/v1/completions","body":{}})", "method: must be"},
      {R"({"custom_id":4,"url":"/v1/completions","body":{}})", "custom_id: must be a string"},
      {R"({"url":"/v1/completions"})", "custom_id: is missing"},
      {R"({"custom_id":"c","url":"/v1/completions","body":[]})", "body: must be an object"},
      {R"({"custom_id":"c","url":"/v1/completions","body":{}})", "body.prompt: is missing"},
      {R"({"custom_id":"c","url":"/v1/completions","body":{"prompt":["a"]}})",
       "body.prompt: must be"},
      {R"({"custom_id":"c","url":"/v1/completions","body":{"prompt":5}})",
       "body.prompt: must be a string"},
      {chat("{}"), "body.messages: is missing"},
      {chat(R"({"messages":[]})"), "body.messages: must not be empty"},
      {chat(R"({"messages":"hi"})"), "body.messages: must be an array"},
      {chat(R"({"messages":["hi"]})"), "body.messages[0]: must be an object"},
      {chat(R"({"messages":[{"content":"x"}]})"), "body.messages[0].role: is missing"},
      {chat(R"({"messages":[{"role":"user"}]})"), "body.messages[0].content: is missing"},
      {chat(R"({"messages":[{"role":"user","content":1}]})"), "body.messages[0].content: must be"},
      {chat(R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})"),
       "body.messages[0].content[0].type: only"},
      {chat(R"({"messages":[{"role":"user","content":["x"]}]})"),
       "body.messages[0].content[0]: must be"},
      {chat(R"({"messages":[{"role":"alien","content":"x"}]})"),
       "body.messages[0].role: must be one of system, developer, user, assistant, tool"},
      {chat(R"({"messages":[{"role":"user","content":"x","name":1}]})"),
       "body.messages[0].name: must be a string"},
      {chat(R"({"messages":[{"role":"assistant","content":"x","tool_calls":[1]}]})"),
       "body.messages[0].tool_calls[0]: must be an object"},
      {chat(R"({"messages":[{"role":"assistant","content":"x","tool_calls":{}}]})"),
       "body.messages[0].tool_calls: must be an array"},
      {chat(R"({"messages":[{"role":"assistant","tool_calls":[{"function":{}}]}]})"),
       "body.messages[0].tool_calls[0].function.name: is missing"},
      {chat(R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f",
          "arguments":3}}]}]})"),
       "body.messages[0].tool_calls[0].function.arguments: must be JSON text or an object"},
      {chat(R"({"messages":[{"role":"assistant","content":null,"tool_calls":[]}]})"),
       "body.messages[0].content: is missing"},
      {chat(R"({"messages":[{"role":"assistant","content":"","function_call":{}}]})"),
       "body.messages[0].function_call: is not supported"},
  }));
  CAPTURE(line);
  CHECK(refused(line).message.rfind(expected, 0) == 0);
}

TEST_CASE("a chat keeps its messages, tools and variables in order") {
  const Request request = accepted(
      R"({"zzz":{"b":1},"messages":[{"role":"user","content":[{"type":"text","text":"a"},
          {"type":"text","text":"b"}],"z":1,"a":{"y":2,"b":3}},
          {"role":"assistant","tool_calls":[{"id":"1","type":"function",
           "function":{"name":"f","arguments":"{}"}}]},
          {"content":"r","role":"tool","tool_call_id":"1"}],
          "tools":[{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}],
          "tool_choice":"auto","chat_template_kwargs":{"z":true,"a":[]},
          "add_generation_prompt":false})");
  CHECK(request.chat.messages == R"([{"role":"user","content":"ab","z":1,"a":{"y":2,"b":3}},)"
                                 R"({"role":"assistant","tool_calls":[{"id":"1","type":"function",)"
                                 R"("function":{"name":"f","arguments":"{}"}}],"content":null},)"
                                 R"({"content":"r","role":"tool","tool_call_id":"1"}])");
  CHECK(request.chat.tools ==
        R"([{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}])");
  CHECK(request.chat.variables == R"({"z":true,"a":[]})");
  CHECK_FALSE(request.chat.add_generation_prompt);
}

TEST_CASE("no tools are an empty list, or a wish that none be called") {
  const std::string tool = R"({"type":"function","function":{"name":"f"}})";
  const std::string begin = R"({"messages":[{"role":"user","content":"x"}],"tools":[)";
  CHECK_FALSE(accepted(begin + tool + "]}").chat.tools.empty());
  CHECK(accepted(begin + "]}").chat.tools.empty());
  CHECK(accepted(begin + tool + R"(],"tool_choice":"none"})").chat.tools.empty());
}

TEST_CASE("fields of a chat that cannot be used are named") {
  const auto [field, value, expected] = GENERATE(table<std::string, std::string, std::string>({
      {"tools", "{}", "tools: must be an array"},
      {"tools", "[1]", "tools[0]: must be an object"},
      {"tools", "[{}]", "tools[0].type: only"},
      {"tools", R"([{"type":"web_search"}])", "tools[0].type: only"},
      {"tools", R"([{"type":"function"}])", "tools[0].function: must be an object"},
      {"tools", R"([{"type":"function","function":{}}])", "tools[0].function.name: is missing"},
      {"tool_choice", "\"required\"", "tool_choice: must be"},
      {"tool_choice", R"({"type":"function"})", "tool_choice: must be"},
      {"chat_template_kwargs", "[]", "chat_template_kwargs: must be an object"},
      {"add_generation_prompt", "1", "add_generation_prompt: must be true or false"},
      {"continue_final_message", "true", "continue_final_message: is not supported"},
      {"chat_template", "\"x\"", "chat_template: is not supported"},
      {"documents", "[]", "documents: is not supported"},
  }));
  CAPTURE(field, value);
  const std::string text =
      R"({"messages":[{"role":"user","content":"x"}],")" + field + "\":" + value + "}";
  CHECK(refused(text).message.rfind(expected, 0) == 0);
  CHECK(refused(chat(text)).message.rfind("body." + expected, 0) == 0);
}

TEST_CASE("a prompt has no fields of a chat") {
  CHECK(refused(R"({"prompt":"p","tools":[{}]})").message.rfind("tools: ", 0) == 0);
  CHECK(refused(R"({"prompt":"p","chat_template_kwargs":{"a":1}})")
            .message.rfind("chat_template_kwargs: ", 0) == 0);
  accepted(R"({"prompt":"p","tools":[],"chat_template_kwargs":{}})");
}

TEST_CASE("an object of a chat with very many members is refused") {
  std::string members;
  for (int i = 0; i < 5000; ++i) members += ",\"" + std::to_string(i) + "\":0";
  const RequestError error =
      refused(R"({"messages":[{"role":"user","content":"x")" + members + "}]}");
  CHECK(error.message == "an object of a chat has more than 4096 members");
  // Elsewhere it does not matter.
  accepted(R"({"messages":[{"role":"user","content":"x"}],"metadata":{"x":0)" + members + "}}");
}

TEST_CASE("plain lines name what is wrong with them") {
  CHECK(refused(R"({"prompt":"a","messages":[]})").message.rfind("prompt: ", 0) == 0);
  CHECK(refused(R"({"id":[1],"prompt":"a"})").message.rfind("id: ", 0) == 0);
  CHECK(refused(R"({"id":1.5,"prompt":"a"})").message.rfind("id: ", 0) == 0);
  CHECK(refused(R"({"id":"k","prompt":7})").row.id == "\"k\"");
}

TEST_CASE("identity of a line for the check of all ids") {
  CHECK(identify_line(R"({"id":"a","prompt":"p"})").id == "\"a\"");
  CHECK(identify_line(R"({"custom_id":"a","body":{}})").id == "\"a\"");
  CHECK(identify_line(R"({"custom_id":"a","body":{}})").is_openai);
  CHECK(identify_line(R"({"body":{}})").lacks_id);
  CHECK_FALSE(identify_line(R"({"url":"/v1/completions"})").lacks_id);
  CHECK(identify_line(R"({"messages":[]})").is_chat);
  CHECK(identify_line(chat(R"({"messages":[]})")).is_chat);
  CHECK_FALSE(identify_line(R"({"prompt":"p"})").is_chat);
  CHECK_FALSE(identify_line("[").is_object);
}

TEST_CASE("rows without an id have seeds by line and by job") {
  const auto by_line = [](std::uint64_t seed, std::size_t line) {
    return row_seed(seed, {line, RowFormat::plain, "null"});
  };
  CHECK(by_line(0, 1) != by_line(0, 2));
  CHECK(by_line(0, 1) != by_line(1, 1));
  CHECK(by_line(5, 9) == by_line(5, 9));
}
