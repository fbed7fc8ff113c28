// The template engine by itself: what it reports, where its limits are, and that it holds to them.
// That it writes what Jinja writes, chat_oracle_test.py shows.
#include <chrono>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "runtime/chat/jinja/json_values.h"
#include "runtime/chat/jinja/template.h"
#include "support/catch.h"

namespace {

using namespace lockstep;
using namespace lockstep::jinja;

std::string render(const std::string& text, const std::string& variables = "{}",
                   const Limits& limits = {}) {
  const Template made(text);
  Workspace workspace(limits);
  Dict dict;
  const auto json = nlohmann::ordered_json::parse(variables);
  for (const auto& [name, value] : json.items()) {
    workspace.set(dict, workspace.text(name), from_json(workspace, value));
  }
  return made.render(workspace, dict, std::nullopt);
}

std::string refusal(const std::string& text, const std::string& variables = "{}",
                    const Limits& limits = {}) {
  try {
    return "rendered: " + render(text, variables, limits).substr(0, 100);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
}

bool stops_with(const std::string& text, const std::string& message) {
  const std::string what = refusal(text);
  INFO(text.substr(0, 200) << "\n" << what);
  CHECK(what.rfind("69 ", 0) == 0);
  return what.find(message) != std::string::npos;
}

// Whether a limit of rendering ends it. The limits are a tenth of the usual ones, to be soon there.
bool hits_limit(const std::string& text) {
  Limits limits;
  limits.steps = 2'000'000;
  limits.bytes = std::uint64_t{32} << 20;
  limits.text_bytes = std::size_t{8} << 20;
  const std::string what = refusal(text, "{}", limits);
  INFO(text << "\n" << what);
  CHECK(what.rfind("69 the chat template ", 0) == 0);
  for (const char* limit : {"does too much", "makes too much", "makes a text longer than 8 MiB"}) {
    if (what.find(limit) != std::string::npos) return true;
  }
  return false;
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("text between tags is kept, white space goes as the tags say") {
  CHECK(render("a\n  {% if true %}\n  b\n  {% endif %}\nc\n") == "a\n  b\nc");
  CHECK(render("a {{- 'b' -}} c") == "abc");
  CHECK(render("x\r\ny\rz\n\n") == "x\ny\nz\n");
  CHECK(render("") == "");
}

TEST_CASE("variables are the caller's, in order") {
  CHECK(render("{{ d }} {{ d|tojson }}", R"({"d":{"z":1,"a":[true,null,2.5,"\u00e9"]}})") ==
        "{'z': 1, 'a': [True, None, 2.5, '\xC3\xA9']} {\"z\": 1, \"a\": [true, null, 2.5, "
        "\"\xC3\xA9\"]}");
}

TEST_CASE("errors name the line of the template") {
  CHECK(refusal("a\nb {{ c.d }}") == "65 the chat template fails at line 2: 'c' is not defined");
  CHECK(refusal("\n{% for i in 5 %}{% endfor %}") ==
        "65 the chat template fails at line 2: an int cannot be iterated over");
  CHECK(refusal("{{ {'a': 1}.b.c }}") == "65 the chat template fails at line 1: a dict has no 'b'");
  CHECK(refusal("{{\n1 +\n'a' }}") == "65 the chat template fails at line 2: an int + a string");
  CHECK(refusal("{% macro m(a) %}\n\n{{ a.b.c }}{% endmacro %}{{ m(1) }}") ==
        "65 the chat template fails at line 3: an int has no 'b'");
  CHECK(refusal("{{ 'a\n' }}\n{{ ) }}") ==
        "69 the chat template is not valid at line 3: an unexpected ')'");
  CHECK(refusal("{{ 1 }}\n{% nope %}") ==
        "69 the chat template uses the tag 'nope' at line 2, which is not supported");
}

TEST_CASE("what is not supported is refused by name") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{% extends 'x' %}", "the tag 'extends'"},
      {"{% block x %}{% endblock %}", "the tag 'block'"},
      {"{% import 'x' as y %}", "the tag 'import'"},
      {"{% from 'x' import y %}", "the tag 'from'"},
      {"{% autoescape true %}{% endautoescape %}", "the tag 'autoescape'"},
      {"{% do x %}", "the tag 'do'"},
      {"{% for i in [] recursive %}{% endfor %}", "a recursive loop"},
      {"{{ x is nope }}", "the test 'nope'"},
      {"{{ x|a.b }}", "the filter 'a.b'"},
      {"{{ [1]|map('nope')|list }}", "the filter 'nope'"},
      {"{{ [1]|select('nope')|list }}", "the test 'nope'"},
      {"{{ f(*x) }}", "'*' in the arguments of a call"},
      {"{{ x[1, 2] }}", "an index of several parts"},
      {"{{ cycler(1) }}", "the function 'cycler'"},
      {"{{ lipsum() }}", "the function 'lipsum'"},
      {"{{ self() }}", "the function 'self'"},
      {"{{ 'a'.casefold() }}", "the method 'casefold' of a string"},
      {"{{ range }}", "the text of a function"},
      {"{{ [1]|select }}", "the text of an iterator"},
      {"{{ namespace(a=1) }}", "the text of a namespace"},
      {"{{ 9223372036854775807 + 1 }}", "an integer of more than 64 bits"},
      {"{{ 99999999999999999999 }}", "an integer of more than 64 bits"},
      {"{{ 2 ** 64 }}", "an integer of more than 64 bits"},
      {"{{ (-8) ** 0.5 }}", "a complex number"},
      {"{{ '\\ud800' }}", "half a surrogate pair in a string"},
      {"{{ '\\N{DEGREE SIGN}' }}", "a character by its name in a string"},
      {"{{ {(1, 2): 3} }}", "a tuple as a key of a dict"},
      {"{{ '%5d' % 3 }}", "the format '%5' for an int"},
      {"{{ '{:>5}'.format(3) }}", "a format field with ':' or '!'"},
      {"{{ '\xC7\x86'|upper }}", "the filter 'upper' on characters without a simple other case"},
      {"{{ '1'|int(0, 16) }}", "the filter 'int' with another base"},
  };
  for (const auto& [text, construct] : cases) {
    CHECK(refusal(text) ==
          "69 the chat template uses " + construct + " at line 1, which is not supported");
  }
}

TEST_CASE("values cannot be changed from a template") {
  for (const std::string text :
       {"{{ l.append(1) }}", "{{ l.extend([1]) }}", "{{ l.sort() }}", "{{ l.insert(0, 1) }}",
        "{{ l.remove(1) }}", "{{ l.pop() }}", "{{ l.clear() }}", "{{ l.reverse() }}",
        "{{ d.update({'a': 1}) }}", "{{ d.pop('a') }}", "{{ d.clear() }}",
        "{{ d.setdefault('x', 1) }}", "{{ d.popitem() }}", "{% set d.x = 1 %}",
        "{{ d.__class__.x }}", "{{ ''.__class__.__mro__ }}"}) {
    CHECK(refusal(text, R"({"l":[1,2],"d":{"a":1}})").rfind("65 the chat template fails", 0) == 0);
  }
}

TEST_CASE("a text that would be huge ends in one clear error") {
  const std::string doubling =
      "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ";
  const std::vector<std::string> texts = {
      "{{ 'x' * 1000000000 }}",
      "{{ 'x' * 9223372036854775807 }}",
      "{{ 9223372036854775807 * 'xy' }}",
      "{{ [0] * 1000000000 }}",
      "{{ ('x' * 6000000)|replace('', 'yy') }}",
      "{{ ('x' * 6000000).replace('x', 'yy') }}",
      "{{ 'x'|center(9000000000) }}",
      "{{ 'x'.ljust(9000000000000000000) }}",
      "{{ '5'.zfill(9000000000) }}",
      "{{ 'x\\ny'|indent(9000000000) }}",
      "{{ [1]|tojson(indent=9000000000) }}",
      "{{ [[[[[1]]]]]|tojson(indent=20000000) }}",
      "{{ [1]|batch(9000000000, 0)|list }}",
      "{{ [1]|slice(9000000000)|list }}",
      "{{ range(99999)|join('x' * 9999) }}",
      "{{ ('x' * 9999).join(('y' * 9999)|list) }}",
      doubling + "ns.s ~ ns.s %}{% endfor %}",
      doubling + "ns.s + ns.s %}{% endfor %}",
      doubling + "ns.s * 2 %}{% endfor %}",
      doubling + "'%s%s' % (ns.s, ns.s) %}{% endfor %}",
      doubling + "'{}{}'.format(ns.s, ns.s) %}{% endfor %}",
      doubling + "[ns.s, ns.s]|join %}{% endfor %}",
      doubling + "[ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
      doubling + "[ns.s, ns.s] %}{% endfor %}{{ ns.s|tojson }}",
      doubling + "{'a': ns.s, 'b': ns.s} %}{% endfor %}{{ ns.s }}",
      "{% set ns = namespace(s=[0]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% "
      "endfor %}",
      "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s %}{{ ns.s }}{{ ns.s }}"
      "{% endset %}{% endfor %}",
      "{% macro m(s, n) %}{{ m(s ~ s, n - 1) if n else s }}{% endmacro %}{{ m('x', 60) }}",
      "{% for i in range(9999) %}{{ 'x' * 99999 }}{% endfor %}",
      "{% for i in range(9999) %}{% set x = 'x' * 99999 %}{% endfor %}",
  };
  for (const std::string& text : texts) CHECK(hits_limit(text));
  CHECK(refusal("{{ 'x' * 1000000000 }}") ==
        "69 the chat template makes a text longer than 64 MiB at line 1");
  CHECK(refusal("{% for i in range(9999) %}{% set x = 'x' * 99999 %}{% endfor %}") ==
        "69 the chat template makes too much: stopped at line 1 after 256 MiB of text and lists");
}

TEST_CASE("work without end is stopped") {
  const std::string shared =
      "{% set ns = namespace(a=[0], b=[0]) %}{% for i in range(60) %}"
      "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
  const std::string searching = "{% set t = 'x' * 6000000 %}{% for i in range(9999) %}";
  const std::vector<std::string> texts = {
      "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
      "{% set r = range(99999) %}{% for i in r %}{% for j in r %}{% endfor %}{% endfor %}",
      "{% set r = range(99999) %}{% for i in r %}{{ -1 in r }}{% endfor %}",
      "{% set r = range(99999) %}{% for i in r %}{{ r|sum }}{% endfor %}",
      "{% set r = range(99999)|list %}{% for i in r %}{{ r == r[:] }}{% endfor %}",
      "{% set r = range(99999)|list %}{% for i in r %}{{ r.count(-1) }}{% endfor %}",
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}",
      shared + "{{ ns.a == ns.b }}",
      shared + "{{ ns.a < ns.b }}",
      shared + "{{ ns.a in [ns.b] }}",
      searching + "{{ 'y' in t }}{% endfor %}",
      searching + "{{ t.find('y') }}{% endfor %}",
      searching + "{{ t.count('y') }}{% endfor %}",
      searching + "{{ t|length }}{{ t.startswith('y', 5999999) }}{% endfor %}",
      searching + "{{ t == t[:-1] ~ 'y' }}{% endfor %}",
      searching + "{{ t|int }}{% endfor %}",
  };
  for (const std::string& text : texts) CHECK(hits_limit(text));
  CHECK(refusal(
            "{% set r = range(99999) %}{% for i in r %}{% for j in r %}{% endfor %}{% endfor %}") ==
        "69 the chat template does too much: stopped at line 1 after 20000000 steps");
  CHECK(refusal("{{ range(100001) }}") ==
        "65 the chat template fails at line 1: a range of more than 100000 items");
  CHECK(refusal("{{ range(-9223372036854775807, 9223372036854775807) }}").rfind("65 ", 0) == 0);
}

TEST_CASE("nesting is bounded, in the text, in values and in calls") {
  const std::string levels = "levels of nesting at line 1, which is not supported";
  for (const int depth : {200, 60000}) {
    CHECK(stops_with("{{ " + repeated("(", depth) + "1" + repeated(")", depth) + " }}", levels));
    CHECK(stops_with("{{ " + repeated("[", depth) + "1" + repeated("]", depth) + " }}", levels));
    CHECK(stops_with("{{ " + repeated("{1:", depth) + "1" + repeated("}", depth) + " }}", levels));
    CHECK(stops_with("{{ " + repeated("not ", depth) + "1 }}", levels));
    CHECK(stops_with("{{ " + repeated("-", depth) + "1 }}", levels));
    CHECK(stops_with("{{ " + repeated("f(", depth) + "1" + repeated(")", depth) + " }}", levels));
    CHECK(stops_with("{{ x" + repeated("[x", depth) + repeated("]", depth) + " }}", levels));
    CHECK(stops_with(repeated("{% if 1 %}", depth), levels));
    CHECK(stops_with(repeated("{% for i in x %}", depth), levels));
    CHECK(stops_with(repeated("{% macro m() %}", depth), levels));
    CHECK(stops_with("{{ " + repeated("1 if 1 else ", depth) + "1 }}", levels));
    const std::string chain = "an expression of more than 120 levels";
    CHECK(stops_with("{{ x" + repeated(".x", depth) + " }}", chain));
    CHECK(stops_with("{{ x" + repeated("[0]", depth) + " }}", chain));
    CHECK(stops_with("{{ x" + repeated("()", depth) + " }}", chain));
    CHECK(stops_with("{{ x" + repeated("|upper", depth) + " }}", chain));
  }
  // Chains of operators are as long as they like.
  CHECK(render("{{ 0" + repeated(" + 1", 50000) + " }}") == "50000");
  CHECK(render("{{ 'a'" + repeated(" ~ 'a'", 1000) + " }}") == repeated("a", 1001));
  CHECK(render("{{ 1" + repeated(" and 1", 50000) + " }}") == "1");
  CHECK(render("{{ 1" + repeated(" < 2 and 1", 1000) + " }}") == "1");
  CHECK(render("{% if 0 %}" + repeated("{% elif 0 %}", 20000) + "{% else %}x{% endif %}") == "x");
  CHECK(
      stops_with("{% set ns = namespace(l=[]) %}{% for i in range(500) %}{% set ns.l = [ns.l] %}"
                 "{% endfor %}",
                 "nests lists deeper than 100 levels at line 1"));
  CHECK(
      stops_with("{% set ns = namespace(l=1) %}{% for i in range(500) %}{% set ns.l = {'a': ns.l} "
                 "%}{% endfor %}",
                 "nests lists deeper than 100 levels at line 1"));
  const std::string calls = "nests macros and expressions deeper than 600 levels at line 1";
  CHECK(stops_with("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", calls));
  CHECK(stops_with("{% macro m(a=m()) %}{% endmacro %}{{ m() }}", calls));
  CHECK(stops_with("{% macro m() %}{{ caller }}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
                   calls));
  CHECK(
      stops_with("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}"
                 "{{ a() }}",
                 calls));
}

TEST_CASE("a namespace may hold itself") {
  CHECK(render("{% set ns = namespace(n=1) %}{% set ns.me = ns %}{% set ns.l = [ns] %}"
               "{{ ns.me.me.l[0].n }}{{ ns == ns.me }}{{ ns in ns.l }}") == "1TrueTrue");
}

TEST_CASE("limits are the caller's") {
  Limits limits;
  limits.steps = 100;
  CHECK(render("{{ 1 + 1 }}", "{}", limits) == "2");
  CHECK(refusal("{% for i in range(200) %}{% endfor %}", "{}", limits) ==
        "69 the chat template does too much: stopped at line 1 after 100 steps");
  limits = {};
  limits.text_bytes = std::size_t{1} << 20;
  CHECK(refusal("{{ 'x' * 2000000 }}", "{}", limits) ==
        "69 the chat template makes a text longer than 1 MiB at line 1");
}

TEST_CASE("a template must be text of bounded size") {
  CHECK(refusal("a\xff") == "69 the chat template is not valid UTF-8 at byte 1");
  CHECK(refusal(std::string((std::size_t{1} << 20) + 1, 'x')) ==
        "69 the chat template has 1048577 bytes; at most 1048576 are supported");
  CHECK(render(std::string(std::size_t{1} << 20, 'x')).size() == std::size_t{1} << 20);
}

TEST_CASE("what a template reads and mentions can be asked") {
  const Template made(
      "{% for m in messages %}{{ m.tool_calls }}{% set x = tools %}{% endfor %}"
      "{% macro f(documents) %}{{ documents }}{{ y }}{% endmacro %}{{ d['developer'] }}");
  CHECK(made.reads("messages"));
  CHECK(made.reads("tools"));
  CHECK(made.reads("y"));
  CHECK_FALSE(made.reads("documents"));
  CHECK_FALSE(made.reads("m"));
  CHECK_FALSE(made.reads("x"));
  CHECK(made.mentions("tool_calls"));
  CHECK(made.mentions("developer"));
  CHECK_FALSE(made.mentions("messages"));
}
