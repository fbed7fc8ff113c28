"""Small templates, one language feature each, and an endless supply of random ones."""

import os
import random

VARIABLES = {
    "s": "Hello, World", "u": "Grüße 日本 🙂", "e": "", "n": 7, "z": 0, "f": 2.5, "t": True, "no": None,
    "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"b": 1, "a": [1, {"x": "y"}], "items": "mine", "": None},
    "p": [{"name": "Bo", "age": 3, "in": {"x": 1}}, {"name": "al", "age": 2.5, "in": {"x": 2}}, {"name": "Cy", "tag": ""}],
    "x": {"k": {"deep": [0, [1, [2]]]}}, "neg": -7, "big": 9007199254740993, "m": "a-b c\td\n\ne f ",
    "q": "it's \"so\" \\ <b>", "r": "aXbXc", "tiny": 1e-7, "huge": 1e22, "i": 12, "space": " \t pad \u00a0",
}

# Each line is put into {{ }}.
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "expressions.txt"), encoding="utf-8") as _file:
    EXPRESSIONS = _file.read().splitlines()

# Whole templates.
TEMPLATES = [
    "{% for i in l %}{{ i }},{% endfor %}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}"
    "{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for i in l if i > 1 %}{{ loop.index }}/{{ loop.length }}:{{ i }}{{ loop.last }} {% endfor %}",
    "{% for i in l if i > 1 %}{{ i }}{{ loop.nextitem }}{{ loop.previtem is defined }} {% endfor %}",
    "{% for i in l if i > 9 %}x{% else %}none{% endfor %}",
    "{% for i in [] %}x{% else %}empty{% endfor %}",
    "{% for i in l %}{% break %}{% else %}odd{% endfor %}",
    "{% for i in l %}{% continue %}{% else %}odd{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% else %}odd{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in range(3) %}{% for j in range(3) %}{% if j > i %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }};{% endfor %}",
    "{% for c in s %}{{ c }}.{% endfor %}",
    "{% for c in u %}{{ loop.index }}{{ c }}.{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3), ([4, 5], 6)] %}{{ a }}{{ b }}{{ c }};{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for a, b in ['xy', 'zw'] %}{{ a }}{{ b }};{% endfor %}",
    "{% for a, b in l %}{{ a }}{% endfor %}",
    "{% for i in n %}{% endfor %}",
    "{% for i in none %}{% endfor %}",
    "{% for i in missing %}x{% else %}none{% endfor %}",
    "{% for i in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}",
    "{% for i in l %}{{ loop.nope is defined }}{{ loop['index'] }}{% endfor %}",
    "{% for i in l %}{{ loop }}{% endfor %}",
    "{% for i in l %}{{ loop|length }}{% endfor %}",
    "{% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in l %}{% set outer = loop %}{% for j in l %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for i in l|map('string') %}{{ loop.length }}{{ i }}{% endfor %}",
    "{% set g = l|map('string') %}{% for i in g %}{{ i }}{% endfor %}{% for i in g %}again{% endfor %}{{ g|list }}",
    "{% set g = l|select('odd') %}{{ 1 in g }}{{ g|list }}",
    "{% set g = l|reverse %}{{ g|first }}{{ g|list }}",
    "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}",
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}",
    "{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% if z %}{% set y = 2 %}{% endif %}{{ y is defined }}",
    "{% if z %}{% set n = 2 %}{% endif %}{{ n }}",
    "{% if t %}{% set n = 2 %}{% else %}{% set n = 3 %}{% endif %}{{ n }}",
    "{% for i in l %}{% if i == 1 %}{% set n = 'set' %}{% endif %}{{ n }} {% endfor %}{{ n }}",
    "{% for i in l %}{{ n }}{% set n = i %}{{ n }} {% endfor %}{{ n }}",
    "{% for i in l %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}",
    "{{ n }}{% for i in l %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = 'xy' %}{{ a }}{{ b }}",
    "{% set a, b = [1] %}{{ a }}",
    "{% set (a, (b, c)) = (1, (2, 3)) %}{{ a }}{{ b }}{{ c }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x = (1,) %}{{ x }}",
    "{% set x %}block {{ n }}{% endset %}[{{ x }}]{{ x|length }}",
    "{% set x | upper | replace('B', 'x') %}ab {{ n }}{% endset %}[{{ x }}]",
    "{% set x %}{% set inner = 1 %}{{ inner }}{% endset %}{{ inner is defined }}{{ x }}",
    "{% set ns = namespace(a=1, b=[]) %}{% for i in l %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "{% set ns = namespace() %}{% set ns.x = 1 %}{{ ns.x }}{{ ns.y is defined }}{{ ns['x'] }}",
    "{% set ns = namespace(found=false) %}{% for i in l %}{% if i == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}",
    "{% set ns = namespace(last=0) %}{% for i in [1, 1, 2, 2, 3] if i != ns.last %}{{ i }}{% set ns.last = i %}{% endfor %}",
    "{% set ns = namespace(l=none) %}{% for i in [1, 2, 3] if ns.l is none or ns.l.length > 0 %}{% set ns.l = loop %}{{ i }}{% endfor %}",
    "{% set ns = namespace(l=none) %}{% for i in [1, 2, 3] if ns.l is none or ns.l.nextitem %}{% set ns.l = loop %}{{ i }}{% endfor %}",
    "{% set ns = namespace(l=none) %}{% for i in [1, 2, 3] if ns.l is none or ns.l.index < 2 %}{% set ns.l = loop %}{{ i }}{% endfor %}",
    "{% set ns = namespace() %}{% for i in [1, 2] %}{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}{{ ns.l.last }}{{ ns.l.nextitem is defined }}",
    "{% macro next(l) %}{{ l.nextitem }}{% endmacro %}{% for i in [1, 2, 3, 4] if i != 2 %}{{ i }}>{{ next(loop) }} {% endfor %}",
    "{% set ns.x = 1 %}", "{% set d.x = 1 %}", "{% set s.x = 1 %}",
    "{% set ns = namespace(a=1) %}{% set ns.t %}text{{ ns.a }}{% endset %}{{ ns.t }}",
    "{% macro m(a, b=2, c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c=5) }}{{ m(b=1, a=0) }}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}{{ m() }}",
    "{% macro m() %}{{ kwargs['x'] }}{{ varargs|length }}{% endmacro %}{{ m(x=1) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro m() %}{{ n }}{% set n = 1 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}",
    "{% macro m() %}{{ later }}{% endmacro %}{{ m() }}{% set later = 1 %}{{ m() }}{% set later = 2 %}{{ m() }}",
    "{% set n = 1 %}{% macro m() %}{{ n }}{% endmacro %}{% set n = 2 %}{{ m() }}",
    "{% macro m() %}  text  {% endmacro %}[{{ m() }}][{{ m()|trim }}]{{ m }}{{ m.name }}",
    "{% macro m() %}x{% endmacro %}{{ m() ~ m() }}{{ (m() + 'y')|upper }}{{ m() is string }}",
    "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}",
    "{% for i in l %}{% macro m() %}{{ loop.index }}{% endmacro %}{{ m() }}{{ loop.last }}{% endfor %}",
    "{% macro m(loop) %}{{ loop }}{% endmacro %}{% for i in l %}{{ m(i) }}{% endfor %}",
    "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}o{% endmacro %}{{ outer() }}{{ inner is defined }}",
    "{% macro box(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call box('b') %}body {{ n }}{% endcall %}",
    "{% macro each(l) %}{% for i in l %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(x, k) each(l) %}{{ k }}:{{ x }} {% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% call d.get('b') %}y{% endcall %}", "{% call s.upper() %}y{% endcall %}",
    "{% filter upper %}abc {{ s }}{% endfilter %}", "{% filter replace('a', 'b')|upper %}aaa{% endfilter %}",
    "{% filter length %}abc{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
    "{% with n = 1 %}{{ n }}{% set n = 2 %}{{ n }}{% endwith %}{{ n }}",
    "{% with %}{% set q9 = 1 %}{{ q9 }}{% endwith %}{{ q9 is defined }}",
    "{% with a = n, n = 1, b = n %}{{ a }}{{ n }}{{ b }}{% endwith %}",
    "{% generation %}{{ s }}{% set g = 1 %}{% endgeneration %}{{ g is defined }}",
    "{% for i in l %}{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}", "{% if z %}a{% elif f %}b{% else %}c{% endif %}",
    "{% if z: %}a{% else: %}b{% endif %}", "{% if missing %}a{% else %}b{% endif %}", "{% if not missing %}a{% endif %}",
    "{% if missing.x %}a{% endif %}", "{% if d.nope %}a{% else %}b{% endif %}", "{% if d.nope.x %}a{% endif %}",
    "{% if s in d %}a{% endif %}b", "{% if 'b' in d and d.b == 1 %}yes{% endif %}",
    "{% if l %}l{% endif %}{% if [] %}e{% endif %}{% if {} %}d{% endif %}{% if '' %}s{% endif %}{% if 0.0 %}f{% endif %}",
    "{% raw %}{{ not }} {% this %}{% endraw %}", "{%- raw -%}  a  {%- endraw -%}  b", "  {% raw %}\n a {{\n  {% endraw %}\nb",
    "{# comment #}a{#- x -#} b {#+ y +#}\n c", "a {# {{ 'x' }} #} b", "{#-#}x", "{# a -#}\n\n b",
    "a\n  {% if t %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if t -%}\n  b\n  {%- endif -%}\nc\n",
    "a\n  {%+ if t %}\n  b\n  {%+ endif +%}\nc\n", "  {% if t %} x {% endif %}  \n", "\n\n{% if t %}\n\nx\n\n{% endif %}\n\n",
    "x  {% if t %}y{% endif %}", "{% if t %}y{% endif %}  \n  {% if t %}z{% endif %}", "{{ n }}\n{{ n }}\n", "{{- n -}}\n {{+ n }} ",
    "a {{- ' b ' -}} c", "  {{ n }}  ", "{% set x = 1 -%}\n\n  {{ x }}", "{% set x = 1 %}\n\n  {{ x }}", "\t{% if t %}\n\ta{% endif %}",
    "line\r\nline2\r{% if t %}\r\nx{% endif %}\r\n", "\u00a0 {%- if t %}x{% endif -%} \u2003 y", "{{ '}}' }}{{ \"%}\" }}", "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}", "{ { } } {%", "{{", "{%", "{#", "{{ 'a", "{% if %}", "{{ }}", "{{ 1 2 }}", "{{ a b }}", "{{ (1 }}", "{{ 1) }}",
    "{{ [1, 2 }}", "{% if t %}", "{% endif %}", "{% for i in l %}", "{% for in l %}{% endfor %}", "{% for i of l %}{% endfor %}", "{% set %}",
    "{% set 1 = 2 %}", "{% set true = 2 %}", "{% set none = 2 %}", "{% nope %}", "{{ s|nope }}", "{{ s is nope }}", "{{ 1 is divisibleby }}", "{% break %}",
    "{% continue %}", "{% if t %}{% break %}{% endif %}", "{% for i in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(a, a) %}{% endmacro %}", "{% for i in l %}{% set loop = 1 %}{% endfor %}", "{% for loop in l %}{% endfor %}",
    "{% set loop = 3 %}{{ loop }}", "{% macro m(caller) %}{{ caller() }}{% endmacro %}{{ m(1) }}", "{{ f(a=1, 2) }}", "{{ s.upper(*l) }}",
    "{{ 'a' is defined is true }}", "{{ n is odd is even }}", "{{ 5 if }}", "{{ not }}", "{{ - }}", "{{ 1 + }}", "{{ .5 }}", "{{ 5. }}", "{{ 1.e5 }}", "{{ 1..x }}",
    "{{ 08 }}", "{{ 00 }}", "{{ 0x }}", "{{ 1__0 }}", "{{ 1_0 }}", "{{ 'a' 'b' }}", "{{ a.b.c.d }}", "{{ d.b.c }}", "{{ d['b']['c'] }}", "{{ $ }}", "{{ a ? b }}",
    "{{ a ! b }}", "{{ a & b }}", "{{ a; b }}", "{{ x := 1 }}", "{{ l[0, 1] }}", "{% if t %}a{% else %}b{% else %}c{% endif %}", "{% print n, s %}", "{% if (n, s) %}x{% endif %}",
    "{{ ns.x }}", "{% set ns = namespace(x=1) %}{% set ns.y = ns %}{{ ns.y.y.x }}", "{% set x = namespace %}{{ x(a=2).a }}",
    "{%- for i in l -%}\n {{- i -}} \n{%- endfor -%}", "{% for i in l %}\n  {{ i }}\n{% endfor %}\nend", "{% for i in l -%}\n  {{ i }}\n{%- endfor %}\nend",
    "{% set t %}\n  a\n{% endset %}[{{ t }}]", "{{ strftime_now('%d %b %Y') }}", "{{ strftime_now is defined }}",
    "{{ strftime_now('%Y-%m-%d %H:%M:%S %p %I %A %a %B %b %j %U %W %V %G %u %w %y %C %e %D %F %T %R %x %X %c %h %n %t %% %f') }}",
    "{{ strftime_now('%-d %-m %-H %-j') }}", "{{ strftime_now('day: %d') ~ n }}", "{{ strftime_now() }}", "{{ strftime_now(1) }}",
]

DATES = ["2024-07-26", "2000-02-29", "1999-12-31", "2021-01-03", "2020-12-31", "2026-01-01", "2024-12-30", "1000-03-07"]


class Maker:
    """Random expressions over VARIABLES. Most fail somewhere; those must fail on both sides."""

    ATOMS = ["s", "u", "e", "n", "z", "f", "t", "no", "l", "w", "d", "p", "x", "neg", "m", "q", "missing", "0", "1", "-1", "2", "2.5",
             "'a'", "'l'", "''", "' '", "true", "none", "[]", "{}", "[1, 'a', none]", "{'k': 1}", "(1, 2)", "range(3)", "d.a", "p[0]", "x.k"]
    INFIX = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or"]
    FILTERS = ["length", "upper", "lower", "trim", "title", "capitalize", "string", "list", "first", "last", "join", "join('-')", "int", "float", "abs",
               "round", "round(1)", "tojson", "tojson(indent=1)", "sort", "reverse", "sum", "min", "max", "unique|list", "default('D')", "default('D', true)",
               "replace('l', 'L')", "items|list", "dictsort", "map('string')|list", "map('length')|list", "select|list", "reject|list", "select('string')|list", "map(attribute='name')|list",
               "selectattr('name')|list", "rejectattr('name')|list", "batch(2)|list", "indent(1)", "escape", "safe", "wordcount", "center(9)"]
    TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable", "sequence", "true", "false", "odd",
             "even", "lower", "upper", "callable", "eq 1", "in l", "gt 1", "divisibleby 2"]
    METHODS = ["upper()", "strip()", "lstrip()", "rstrip('l')", "split()", "split('l')", "split('l', 1)", "rsplit('l', 1)", "splitlines()", "startswith('H')",
               "endswith('d')", "find('l')", "count('l')", "replace('l', '')", "items()", "keys()", "values()", "get('b')", "get('zz', 1)", "title()",
               "index(1)", "join(w)", "isdigit()", "name", "items", "x", "k", "b"]
    INDEXES = ["0", "-1", "1", "9", "'b'", "'name'", "'items'", "n", "s", "none", "1:", ":-1", "::-1", "::2", "1:2", "-2:", ":n", "5:1:-2"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def expression(self, depth):
        choice = self.random.random()
        if depth == 0 or choice < 0.1:
            return self.random.choice(self.ATOMS)
        inner = self.expression(depth - 1)
        if choice < 0.35:
            return f"({inner} {self.random.choice(self.INFIX)} {self.expression(depth - 1)})"
        if choice < 0.6:
            return f"({inner})|{self.random.choice(self.FILTERS)}"
        if choice < 0.7:
            return f"({inner} is {self.random.choice(['', 'not '])}{self.random.choice(self.TESTS)})"
        if choice < 0.83:
            return f"({inner}).{self.random.choice(self.METHODS)}"
        if choice < 0.93:
            return f"({inner})[{self.random.choice(self.INDEXES)}]"
        if choice < 0.96:
            return f"({inner} if {self.expression(depth - 1)} else {self.expression(depth - 1)})"
        return self.random.choice(["-{}", "not {}", "[{}]", "({},)", "{{'v': {}}}"]).format(f"({inner})")

    def template(self):
        return "{{ " + self.expression(self.random.choice([1, 2, 2, 3, 3, 4])) + " }}"
