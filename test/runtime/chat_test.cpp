// Chats: what a request may say, what its template must make of it, and that nothing is lost.
#include "runtime/chat/chat_template.h"

#include <string>

#include "lockstep/error.h"
#include "support/catch.h"

namespace {

using namespace lockstep;

// In the forms of chat templates everywhere: all roles, tools and calls.
const std::string kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const std::string kTools =
    "{% if tools %}{{ tools|tojson }};{% endif %}"
    "{% for m in messages %}{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<{{ c.function.name }} {{ c.function.arguments|tojson }}>"
    "{% endfor %};{% endfor %}";
// User and assistant alone.
const std::string kTwoRoles =
    "{% for m in messages %}{% if m.role == 'user' %}U {{ m.content }}\n"
    "{% elif m.role == 'assistant' %}A {{ m.content }}\n{% endif %}{% endfor %}";

ChatTemplate made(const std::string& text, const std::string& date = "") {
  return ChatTemplate(text, {"<s>", "</s>", date});
}

std::string render(const std::string& text, const std::string& messages,
                   const std::string& tools = "", const std::string& variables = "") {
  ChatRequest request;
  request.messages = messages;
  request.tools = tools;
  request.variables = variables;
  return made(text).render(request);
}

// The error's code and text.
std::string refusal(const std::string& text, const std::string& messages,
                    const std::string& tools = "", const std::string& variables = "") {
  try {
    return "rendered: " + render(text, messages, tools, variables);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
}

const std::string kHi = R"([{"role":"user","content":"Hi"}])";
const std::string kTool =
    R"([{"type":"function","function":{"name":"clock","parameters":{"z":1,"a":{}}}}])";

std::string call(const std::string& arguments, const std::string& content = "null") {
  return R"([{"role":"user","content":"Hi"},{"role":"assistant","content":)" + content +
         R"(,"tool_calls":[{"id":"1","type":"function","function":{"name":"clock","arguments":)" +
         arguments + "}}]}]";
}

}  // namespace

TEST_CASE("messages, tokens and the opening of the answer reach the template") {
  CHECK(render(kChatMl, kHi) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  CHECK(render("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", kHi) == "<s>Hi</s>");
  ChatRequest request = simple_chat("U {{ x }}", "S");
  CHECK(request.messages ==
        R"([{"role":"system","content":"S"},{"role":"user","content":"U {{ x }}"}])");
  request.add_generation_prompt = false;
  CHECK(made(kChatMl).render(request) ==
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU {{ x }}<|im_end|>\n");
  CHECK(render("{{ documents is none }}{{ tools is none }}{{ messages[0].content }}", kHi) ==
        "TrueTrueHi");
}

TEST_CASE("a template is parsed once and rendered often") {
  const ChatTemplate chat = made(
      "{% set ns = namespace(n=0) %}{% for m in messages %}"
      "{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ m.content }}{% endfor %}");
  for (int i = 0; i < 3; ++i) CHECK(chat.render(simple_chat("b", "a")) == "1a2b");
}

TEST_CASE("a template that cannot be used is refused by construct and line") {
  CHECK(refusal("a\n{{ x|xmlattr }}", kHi) ==
        "69 the chat template uses the filter 'xmlattr' at line 2, which is not supported");
  CHECK(refusal("\n\n{% include 'x' %}", kHi) ==
        "69 the chat template uses the tag 'include' at line 3, which is not supported");
  CHECK(refusal("{% if a %}\nb", kHi) ==
        "69 the chat template is not valid at line 2: the template ends before the tag 'endif'");
  CHECK(refusal("{{ messages|groupby('role') }}", kHi).rfind("69 ", 0) == 0);
  CHECK(refusal("{{ 'a'.encode() }}", kHi) ==
        "69 the chat template uses the method 'encode' of a string at line 1, which is not "
        "supported");
}

TEST_CASE("what a template raises is the request's fault, in its words") {
  CHECK(refusal("{{ raise_exception('No ' ~ messages[0].role ~ '\\n!') }}", kHi) ==
        "65 the chat template refuses the messages: No user\\n!");
  CHECK(refusal("a\n{{ messages[1].content }}", kHi) ==
        "65 the chat template fails at line 2: a list has no item 1");
  CHECK(refusal("{{ none + 1 }}", kHi) == "65 the chat template fails at line 1: none + an int");
}

TEST_CASE("requests that are malformed are refused") {
  CHECK(refusal(kChatMl, "[]") == "65 a chat needs at least one message");
  CHECK(refusal(kChatMl, "{}") == "65 the messages of a chat are not valid");
  CHECK(refusal(kChatMl, "[") == "65 the messages of a chat are not valid");
  CHECK(refusal(kChatMl, "[1]") == "65 message 0 has no role");
  CHECK(refusal(kChatMl, R"([{"role":"user"}])") == "65 message 0 has no content");
  CHECK(refusal(kChatMl, R"([{"role":"user","content":[1]}])") ==
        "65 message 0 has a content that is no string");
  CHECK(refusal(kChatMl, R"([{"role":"tool\n","content":"x"}])") ==
        "65 message 0 has the role 'tool\\n'; expected system, developer, user, assistant or tool");
  CHECK(refusal(kChatMl, std::string(70, '[') + std::string(70, ']'))
            .find("nested deeper than 64 levels") != std::string::npos);
  CHECK(refusal(kTools, kHi, "[") == "65 the tools of a chat are not valid");
  CHECK(refusal(kTools, kHi, R"([18446744073709551615])") ==
        "65 a chat holds an integer of more than 64 bits");
  CHECK_THROWS_AS(simple_chat("\xff"), Error);
}

TEST_CASE("a message that would be left out is refused") {
  CHECK(render(kTwoRoles, kHi) == "U Hi\n");
  CHECK(refusal(kTwoRoles, R"([{"role":"system","content":"S"},{"role":"user","content":"U"}])") ==
        "65 message 0 has the role 'system', for which the model's chat template has no place");
  CHECK(refusal(kTwoRoles, R"([{"role":"user","content":"U"},{"role":"tool","content":"T"}])") ==
        "65 message 1 has the role 'tool', for which the model's chat template has no place");
  // The same words elsewhere do not make up for it.
  CHECK(refusal(kTwoRoles, R"([{"role":"system","content":"Hi"},{"role":"user","content":"Hi"}])")
            .rfind("65 message 0", 0) == 0);
  CHECK(refusal("no place for anything", kHi).rfind("65 message 0", 0) == 0);
  // Nothing is lost of nothing.
  CHECK(render(kTwoRoles, R"([{"role":"system","content":" \n"},{"role":"user","content":"U"}])") ==
        "U U\n");
  // Only the last is written.
  CHECK(refusal("{{ messages[-1].content }}",
                R"([{"role":"user","content":"A"},{"role":"user","content":"B"}])")
            .rfind("65 message 0", 0) == 0);
}

TEST_CASE("texts may be changed on their way, as long as they come through") {
  CHECK(render("{% for m in messages %}{{ m.content|trim|upper|tojson }}{% endfor %}",
               R"([{"role":"user","content":" a \"b\"\n"}])") == R"("A \"B\"")");
  CHECK(render("{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}",
               R"([{"role":"assistant","content":"<think>x</think>y"}])") == "y");
  // A template that looks into the text and refuses a stranger's: then the text itself is found.
  const std::string picky =
      "{% for m in messages %}{% if not m.content.startswith('ok') %}"
      "{{ raise_exception('what?') }}{% endif %}{{ m.content if keep else '' }}{% endfor %}";
  CHECK(render(picky, R"([{"role":"user","content":"ok then"}])", "", R"({"keep":true})") ==
        "ok then");
  CHECK(refusal(picky, R"([{"role":"user","content":"ok then"}])", "", R"({"keep":false})")
            .rfind("65 message 0", 0) == 0);
}

TEST_CASE("a name is refused where it would be left out") {
  const std::string named = R"([{"role":"user","name":"Ann","content":"Hi"}])";
  CHECK(refusal(kChatMl, named) ==
        "65 message 0 has a name, for which the model's chat template has no place");
  CHECK(render("{% for m in messages %}{{ m.name }}: {{ m.content }}{% endfor %}", named) ==
        "Ann: Hi");
}

TEST_CASE("a developer is a system, unless the template knows better") {
  const std::string messages = R"([{"role":"developer","content":"D"}])";
  CHECK(render("{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}", messages) ==
        "system D");
  CHECK(render("{% for m in messages %}{% if m.role == 'developer' %}dev {{ m.content }}{% endif %}"
               "{% endfor %}",
               messages) == "dev D");
}

TEST_CASE("tools go where the template has a place for them, keys in order") {
  CHECK(render(kTools, kHi, kTool) ==
        "[{\"type\": \"function\", \"function\": {\"name\": \"clock\", \"parameters\": "
        "{\"z\": 1, \"a\": {}}}}];user:Hi;");
  CHECK(render(kTools, kHi, "[]") == "user:Hi;");
  CHECK(refusal(kChatMl, kHi, kTool) == "65 the model's chat template has no place for tools");
  CHECK(refusal("{{ tools|length }}{{ messages[0].content }}", kHi, kTool) ==
        "65 the model's chat template leaves out the tool 'clock'");
}

TEST_CASE("tool calls: arguments as the template takes them, no content where there is none") {
  const std::string expected = "user:Hi;assistant:<clock {\"a\": \"x\"}>;";
  CHECK(render(kTools, call(R"("{\"a\": \"x\"}")")) == expected);
  CHECK(render(kTools, call(R"({"a":"x"})")) == expected);
  CHECK(render(kTools, call("\"no JSON\"", "\"\"")) == "user:Hi;assistant:<clock \"no JSON\">;");
  // A template that writes the text of the arguments gets text.
  const std::string plain =
      "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "{{ '<' + c.function.name + c.function.arguments + '>' }}{% endfor %}{% endfor %}";
  CHECK(render(plain, call(R"("{\"a\":  1}")")) == "Hi<clock{\"a\":  1}>");
  const std::string printed =
      "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "<{{ c.function.name }}{{ c.function.arguments }}>{% endfor %}{% endfor %}";
  CHECK(render(printed, call(R"("{\"a\": 1}")")) == "Hi<clock{\"a\": 1}>");
  // One that would write "None" is given an empty text.
  CHECK(render(kTools, call("{}")) == "user:Hi;assistant:<clock {}>;");
  CHECK(refusal(kChatMl, call("{}")) ==
        "65 message 1 has tool calls, for which the model's chat template has no place");
}

TEST_CASE("parts of tool calls that would be left out are refused") {
  const std::string nameless =
      "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}";
  CHECK(refusal(nameless, call(R"({"a":"x"})")) ==
        "65 message 1 has a call of 'clock', for which the model's chat template has no place");
  const std::string no_arguments =
      "{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name }}{% endfor %}{% endfor %}";
  CHECK(refusal(no_arguments, call(R"({"a":"x"})")) ==
        "65 message 1 has an argument 'a', for which the model's chat template has no place");
  const std::string either =
      "{% for m in messages %}{% if m.tool_calls %}{{ m.tool_calls[0].function|tojson }}"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}";
  CHECK(refusal(either, call("{}", "\"I look\"")) ==
        "65 message 1 has a content beside tool calls, for which the model's chat template has no "
        "place");
  CHECK(render(either, call("{}", "\"\"")) == "Hi{\"name\": \"clock\", \"arguments\": {}}");
}

TEST_CASE("further variables are the template's own, or refused") {
  const std::string text =
      "{{ messages[0].content }}{% if enable_thinking is false %}no{% endif %}";
  CHECK(render(text, kHi) == "Hi");
  CHECK(render(text, kHi, "", R"({"enable_thinking":false})") == "Hino");
  CHECK(refusal(text, kHi, "", R"({"thinking":false})") ==
        "65 the model's chat template has no variable 'thinking'");
  CHECK(refusal(text, kHi, "", R"({"messages":[]})") ==
        "65 the variable 'messages' cannot be given to the chat template");
  CHECK(render("{{ messages[0].content }}{{ documents[0].text }}", kHi, "",
               R"({"documents":[{"text":"D"}]})") == "HiD");
}

TEST_CASE("the date is the one that was set, and none without") {
  const std::string asks = "{{ messages[0].content }} {{ strftime_now('%d %b %Y') }}";
  CHECK(made(asks, "2025-01-31").render(simple_chat("x")) == "x 31 Jan 2025");
  CHECK(refusal("\n" + asks, kHi) ==
        "64 the chat template asks for the date at line 2, and none is set: set one with --date "
        "YYYY-MM-DD");
  const std::string careful =
      "{{ messages[0].content }} {{ strftime_now('%Y') if strftime_now is defined else 1999 }}";
  CHECK(made(careful, "2025-01-31").render(simple_chat("x")) == "x 2025");
  CHECK(made(careful).render(simple_chat("x")) == "x 1999");
  for (const std::string date : {"2025-02-29", "2025-13-01", "2025-1-1", "today", "2025-01-011"}) {
    CHECK_THROWS_AS(made(asks, date), Error);
  }
}
