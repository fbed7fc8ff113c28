// Chat templates: the families are found by what a template writes, however it is spelled; anything
// that writes something else is refused.
#include "runtime/chat/chat_template.h"

#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/chat/template_text.h"
#include "support/catch.h"

namespace {

using namespace lockstep;

const std::string kDemo =
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}";
const std::string kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
    "}}"
    "{% endif %}";

std::string render(const std::string& text, const std::vector<ChatMessage>& messages) {
  return render_chat(text, messages);
}

// The error's text, with its code in front.
std::string refusal(const std::string& text, const std::vector<ChatMessage>& messages) {
  try {
    return "rendered: " + render_chat(text, messages);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
}

const std::vector<ChatMessage> kHi{{"user", "Hi"}};

}  // namespace

TEST_CASE("the demo's template is rendered turn by turn") {
  CHECK(render(kDemo, kHi) == "<|user|>\nHi<|end|>\n<|assistant|>\n");
  CHECK(render(kDemo, {{"system", "S"}, {"user", "U"}, {"assistant", "A"}, {"user", ""}}) ==
        "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\n<|end|>\n"
        "<|assistant|>\n");
  CHECK(render(kDemo, {{"user", " {{ x }} \n"}}) ==
        "<|user|>\n {{ x }} \n<|end|>\n<|assistant|>\n");
}

TEST_CASE("ChatML is found in several spellings") {
  const std::string expected = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  CHECK(render(kChatMl, kHi) == expected);
  CHECK(render("{%- for m in messages %}\n  {{- \"<|im_start|>\" ~ m.role ~ \"\\n\" ~ m.content ~ "
               "\"<|im_end|>\\n\" -}}\n{%- endfor -%}\n{{- '<|im_start|>assistant\\n' -}}\n",
               kHi) == expected);
  CHECK(render("{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
               "<|im_end|>\n{% endfor %}\n<|im_start|>assistant\n\n",
               kHi) == expected);
  CHECK(render("{# <|im_start|> and so on #}{{ bos_token }}" + kChatMl, kHi) == expected);
}

TEST_CASE("a system turn that a template spells out is used if there is no other") {
  const std::string text =
      "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}"
      "{% endif %}" +
      kChatMl;
  CHECK(render(text, kHi) ==
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n");
  CHECK(render(text, {{"system", "S"}, {"user", "Hi"}}) ==
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("a template with fixed roles takes those alone") {
  const std::string text =
      "{% for message in messages %}{% if message['role'] == 'user' %}{{'<|user|>' + '\\n' + "
      "message['content'] + '<|end|>' + '\\n' + '<|assistant|>' + '\\n'}}{% else %}"
      "{{message['content'] + '<|end|>' + '\\n'}}{% endif %}{% endfor %}";
  CHECK(render(text, {{"user", "U"}, {"assistant", "A"}, {"user", "V"}}) ==
        "<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>\n<|assistant|>\n");
  CHECK(refusal(text, {{"system", "S"}}) ==
        "65 message 0 has the role 'system', for which the model's chat template has no place");
}

TEST_CASE("other templates are refused with their beginning") {
  const std::vector<std::string> others = {
      "",
      "no tags at all",
      "{% for m in messages %}[INST] {{ m['content'] }} [/INST]{% endfor %}",
      // like ChatML, but with another separator, a trimmed content, or without the line end
      "{{'<|im_start|>' + message['role'] + '<|im_sep|>' + message['content'] + '<|im_end|>'}}"
      "{{'<|im_start|>assistant<|im_sep|>'}}",
      "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>\\n'}}"
      "{{'<|im_start|>assistant\\n'}}",
      "{{'<|im_start|>' + message['role'] + '\\n' + message['content'].strip() + '<|im_end|>\\n'}}"
      "{{'<|im_start|>assistant\\n'}}",
      "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}"
      "{{'<|im_start|>assistant\\n'}}",
      // like the demo, without the line end after the role; and with another end mark
      "{{'<|' + message['role'] + '|>' + message['content'] + '<|end|>'}}{{'<|assistant|>'}}",
      "{{'<|' + message['role'] + '|>\\n' + message['content'] + eos_token}}{{'<|assistant|>\\n'}}",
      // no opening of the answer
      "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}",
      "{{",
      "{%",
      "{#",
      "{{ '",
      "{{ a['",
      "{{ a[",
      "{",
      "{{ '\\",
  };
  for (const std::string& text : others) {
    INFO(text);
    CHECK(refusal(text, kHi).find("69 the chat template is not one of the known families") == 0);
  }
  const std::string what = refusal("{{ x }}\n\x1b[31m" + std::string(500, 'y'), kHi);
  CHECK(what.find("{{ x }}\\n\\x1b[31m") != std::string::npos);
  CHECK(what.find('\x1b') == std::string::npos);
  CHECK(what.size() < 250);
}

TEST_CASE("messages that cannot be rendered are refused") {
  CHECK(refusal(kDemo, {}) == "65 a chat needs at least one message");
  CHECK(refusal(kDemo, {{"user", "U"}, {"tool\n", "T"}}) ==
        "65 message 1 has the role 'tool\\n'; expected system, user or assistant");
  CHECK(refusal(kChatMl, {{"", "T"}}).find("65 message 0 has the role ''") == 0);
  CHECK(refusal(kChatMl, {{"User", "T"}}).find("65 message 0 has the role 'User'") == 0);
}

TEST_CASE("the text of a template has its literals, marks and white space rules") {
  CHECK(template_text("a{{ message['role'] }}b{{ message.content }}c{{ bos_token }}d") ==
        "a\x01"
        "b\x02"
        "c\x03"
        "d");
  CHECK(template_text("{{ 'it\\'s' + \"\\\"q\\\"\" }}") == "it's\"q\"");
  CHECK(template_text("{{ messages[0]['content'] }}{{ messages[0].role }}") == "\x02\x01");
  CHECK(template_text("{{ 'a' + (x) }}") == "a\x03\x03\x03");
  CHECK(template_text("x\n  {% if a %}\ny{% endif %}\nz\n") == "x\nyz");
  CHECK(template_text("x \n {%- if a -%} \n y") == "xy");
  CHECK(template_text("x {{- 'a' -}} y") == "xay");
  CHECK(template_text("x {{ 'a' }}\ny") == "x a\ny");
  CHECK(template_text("{% set a = '%}' %}x{# {{ 'no' }} #}y") == "xy");
  CHECK(template_text("{ {a} }") == "{ {a} }");
}
