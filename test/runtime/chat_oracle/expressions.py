"""Small templates, one language feature each, and an endless supply of random ones."""

import random

VARIABLES = {
    "s": "Hello, World", "u": "Grüße 日本 🙂", "e": "", "n": 7, "z": 0, "f": 2.5, "t": True, "no": None,
    "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"b": 1, "a": [1, {"x": "y"}], "items": "mine", "": None},
    "p": [{"name": "Bo", "age": 3, "in": {"x": 1}}, {"name": "al", "age": 2.5, "in": {"x": 2}}, {"name": "Cy", "tag": ""}],
    "x": {"k": {"deep": [0, [1, [2]]]}}, "neg": -7, "big": 9007199254740993, "m": "a-b c\td\n\ne f ",
    "q": "it's \"so\" \\ <b>", "r": "aXbXc", "tiny": 1e-7, "huge": 1e22, "i": 12, "space": " \t pad \u00a0",
}

# Each is put into {{ }}.
EXPRESSIONS = """
1 + 2 * 3
(1 + 2) * 3
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7.5 // 2
-7.5 // 2
-7.5 % 2
7 / 2
8 / 2
2 ** 10
2 ** -1
2 ** 0.5
2 ** 3 ** 2
-2 ** 2
(-2) ** 3
0 ** 0
1 / 3
0.1 + 0.2
1e16
1e15
123456789012345680.0
1e-5
0.0001
-0.0
1.0
1e100
5e-324
1_000 + 0x1f + 0b101 + 0o17
1.5e3
9223372036854775807
-9223372036854775807 - 1
huge
tiny
big
big // 2
true + true
true * 3
not true
not 0
n and z
n or z
z or e or "last"
z and 1
"" and 1
1 < 2 < 3
1 < 3 < 2
1 == 1.0
true == 1
"a" < "b"
"a" < "B"
[1, 2] < [1, 3]
(1, 2) < (1, 2, 0)
[1, 2] == [1, 2.0]
{"a": 1} == {"a": 1.0}
1 == "1"
none == none
none == false
missing == missing
missing == none
1 in l
9 in l
9 not in l
"ell" in s
"" in s
"a" in d
"zz" in d
1 in {1.0: 2}
"x" in missing
missing in l
"a" ~ 1 ~ none ~ 2.0 ~ true ~ [1] ~ missing
"a" + "b"
[1] + [2]
(1,) + (2,)
"ab" * 3
3 * "ab"
[0] * 3
"ab" * 0
"ab" * -1
"%s is %d years, %.2f, %r, %%" % ("Bo", 3, 2.5, "q")
"%s" % 5
"%s" % [1, 2]
"%(a)s" % {"a": 1}
"%x" % 255
"%d" % 3.9
"%s" % none
"x" if t
"x" if z
("x" if z) is defined
"x" if z else "y"
"x" if z else "y" if e else "w"
[1, "a", none, true, 2.5, "it's", 'q"', (1,), (), {}, {"k": (1, 2)}]
{"a": 1, 2: "b", none: [], 1.5: {}, true: 0}
{1: "a", true: "b", 1.0: "c"}
("a", "b")
()
(1,)
(1)
"a" "b" 'c'
"tab\\tnew\\nquote\\'back\\\\ \\x41 \\u00e9 \\101 \\q"
'"'
"'"
s[0]
s[-1]
s[99]
s[1:4]
s[::-1]
s[-3:]
s[:-3]
s[::2]
s[10:2:-3]
s[5:100]
s[100:]
u[1]
u[-1]
u[::-1]
u[2:8]
u|length
l[0]
l[-1]
l[5]
l[1:]
l[::-1]
l[:-1]
l["a"]
(1, 2, 3)[1:]
d["b"]
d.b
d.a[1].x
d["a"][1]["x"]
d.nope
d["nope"]
d[1]
d.items
d["items"]
d.items()
d.keys()
d.values()
d.items()|list
d.keys()|list
d.get("b")
d.get("zz")
d.get("zz", 5)
d[""]
x.k.deep.1.1.0
x["k"]["deep"][1][1][0]
s.upper
missing
missing.x
missing["x"]
missing()
missing + 1
missing|length
missing|list
missing|join
missing|trim
missing|upper
missing|default("d")
missing|default
e|default("d")
e|default("d", true)
e|default("d", boolean=true)
none|default("d")
missing|string
missing|first
missing|last
missing|tojson
missing|int
missing|items|list
missing is defined
missing is undefined
missing is none
missing is sequence
missing is iterable
missing is mapping
missing is callable
missing is string
d.nope is defined
no is none
no is defined
s is string
s is sequence
s is iterable
s is mapping
l is sequence
l is string
d is mapping
d is sequence
d is iterable
n is number
f is number
t is number
n is integer
t is integer
f is float
t is boolean
t is true
n is true
z is false
no is false
n is odd
n is even
f is odd
n is divisibleby 7
n is divisibleby(2)
n is eq 7
n is equalto(7)
n is ne 7
n is gt 3
n is lt 3
n is ge 7
n is le 6
n is greaterthan 3
n is lessthan 3
n is in l
3 is in(l)
n is not in l
n is not none
not n is none
"abc" is lower
"ABC" is upper
"aBC" is upper
"12" is lower
range is callable
s.upper is callable
no is sameas none
t is sameas true
l is sameas l
l is sameas [3, 1, 2]
"tojson" is filter
"nope" is filter
"defined" is test
"nope" is test
s is escaped
(s|safe) is escaped
s|length
l|length
d|length
n|length
none|length
l|count
s|upper
s|lower
"hello wORLD foo-bar (baz) [q"|title
"hELLO wORLD"|capitalize
u|upper
u|lower
u|capitalize
"éa ñb"|title
"ǅabc"|upper
"ß"|lower
m|trim
space|trim
"xxaxx"|trim("x")
"xyaxy"|trim("yx")
s|replace("l", "L")
s|replace("l", "L", 1)
s|replace("", "-")
s|replace("o", "")
12|replace(1, 3)
l|join
l|join(", ")
w|join("-")
p|join(",", attribute="name")
[1, none, true, missing, "a", 2.5]|join("|")
d|join(",")
s|join("-")
l|first
l|last
s|first
s|last
d|first
d|last
[]|first
[]|last
e|first
l|list
s|list
d|list
n|list
"12"|int
"12.7"|int
"x"|int
"x"|int(5)
" 12 "|int
"1_000"|int
12.9|int
-12.9|int
none|int
true|int
[]|int
"1.5"|float
"x"|float
"1e3"|float
".5"|float
"5."|float
"inf"|float
"-Infinity"|float
"nan"|float
none|float
7|float
7|string
none|string
l|string
42.55|round
42.55|round(1)
42.55|round(1, "floor")
42.55|round(1, "ceil")
2.5|round
3.5|round
-2.5|round
2.675|round(2)
7|round
7|round(2)
7|round(0, "ceil")
1234.5678|round(2, "floor")
-7|abs
2.5|abs
neg|abs
s|abs
l|sum
[]|sum
[1.5, 2]|sum
l|sum(start=10)
p|map(attribute="age")|select|sum
l|sort
w|sort
w|sort(case_sensitive=true)
l|sort(reverse=true)
w|sort(true)
p|sort(attribute="name")|map(attribute="name")|list
[[2, 1], [1, 2]]|sort
[1, "a"]|sort
p|sort(attribute="in.x")
l|reverse|list
s|reverse
(1, 2)|reverse|list
d|reverse|list
l|min
l|max
w|min
w|max
[]|max
p|max(attribute="name")
["a", "A", "b", "a"]|unique|list
["a", "A", "b", "a"]|unique(true)|list
[1, 1.0, true, "1"]|unique|list
w|map("upper")|list
w|map("upper")|join
p|map(attribute="name")|list
p|map(attribute="nope")|list
p|map(attribute="nope", default="x")|list
p|map(attribute="in.x")|list
x.k.deep|map("string")|list
["a b", "c"]|map("replace", " ", "_")|list
l|select("odd")|list
l|reject("odd")|list
l|select|list
[0, 1, none, "", "a", []]|select|list
[0, 1, none, "", "a", []]|reject|list
l|select("gt", 1)|list
l|select(">=", 2)|list
p|selectattr("tag", "defined")|list|length
p|selectattr("tag")|list|length
p|rejectattr("tag", "defined")|map(attribute="name")|join
p|selectattr("name", "equalto", "Bo")|list
p|selectattr("name", "==", "Bo")|first
p|selectattr("age", "gt", 2.7)|list
p|selectattr("name", "in", ["Bo", "Cy"])|map(attribute="name")|list
(p|selectattr("name"))|length
true if p|selectattr("name", "eq", "nobody") else false
l|batch(2)|list
l|batch(2, 0)|list
range(7)|batch(3)|list
range(7)|slice(3)|list
range(7)|slice(3, "x")|list
d|dictsort
d|dictsort(reverse=true)
{"b": 2, "A": 1, "a": 3}|dictsort
{"b": 2, "A": 1, "a": 3}|dictsort(true)
{"b": 2, "A": 1, "a": 3}|dictsort(false, "value")
{"b": 2, "a": "x"}|dictsort(by="value")
d|items|list
n|items
"a\\nb\\n\\nc"|indent
"a\\nb\\n\\nc"|indent(2)
"a\\nb\\n\\nc"|indent(2, true)
"a\\nb\\n\\nc"|indent(2, first=true, blank=true)
"a\\nb"|indent("> ")
"a\\r\\nb\\u2028c\\n"|indent(1)
""|indent
n|indent
"ab"|center(5)
"ab"|center(6)
"abc"|center(6)
"a b  c_d-e"|wordcount
q|escape
q|e
q|safe
(q|e) ~ q
(q|e) + q
q + (q|e)
(q|e)|e
(q|safe) + "<"
"<" + (q|safe)
"%s-%s"|format(1, "a")
"%s"|format([1])
"%(x)s"|format(x=3)
"a"|format
d|tojson
l|tojson
s|tojson
u|tojson
u|tojson(ensure_ascii=true)
u|tojson(true)
q|tojson
x|tojson(indent=2)
x|tojson(indent=0)
x|tojson(indent="--")
d|tojson(sort_keys=true)
d|tojson(separators=(",", ":"))
d|tojson(indent=1, separators=(", ", "="))
[1.0, 1e22, tiny, none, true, "\\x07\\x7f\\u2028/"]|tojson
{1: "a", none: "b", true: "c", 1.5: "d"}|tojson
[]|tojson
{}|tojson(indent=2)
[[], {}]|tojson(indent=2)
(1, 2)|tojson
range(2)|tojson
missing|tojson
d.items()|tojson
"inf"|float|tojson
"<tag> & 'x'"|tojson
x|tojson|safe
range(3)
range(3)|list
range(1, 4)|list
range(5, 0, -2)|list
range(0)|list
range(3)[1]
range(3)[-1]
range(3)[7]
2 in range(3)
range(3)|length
range(2) == range(2)
range(0, 10, 3)|list
range(200000)
range("a")
range()
range(1, 2, 0)
dict(a=1, b="x")
dict([("a", 1), ("b", 2)])
dict(d, c=3)
dict({"a": 1}, a=2)
dict()
dict(1)
namespace(a=1).a
namespace(a=1).b
namespace({"a": 5})["a"]
s.upper()
s.lower()
s.title()
"they're bill's"|title
"they're bill's".title()
s.capitalize()
s.split()
s.split(",")
s.split("l", 1)
s.split("l", maxsplit=1)
s.rsplit("l", 1)
m.split()
m.split(none, 2)
m.rsplit(none, 2)
m.split("\\n")
m.splitlines()
m.splitlines(true)
"a\\x0bb\\x0cc\\x1cd\\x85e\\u2028f\\r\\ng\\rh".splitlines()
"".split()
"".split(",")
",a,,b,".split(",")
s.strip("Hd")
m.strip()
space.strip()
space.lstrip()
space.rstrip()
"\\n\\nabc\\n".lstrip("\\n")
"abcabc".rstrip("cb")
"</think>x</think>y".split("</think>")[-1].lstrip("\\n")
s.startswith("Hell")
s.startswith("World")
s.startswith(("x", "He"))
s.startswith("lo", 3)
s.startswith("", 12)
s.startswith("", 13)
s.endswith("World")
s.endswith(("x", "ld"))
s.endswith("Hello", 0, 5)
s.startswith(1)
s.find("o")
s.find("o", 5)
s.find("zz")
s.rfind("o")
s.index("o")
s.index("zz")
u.find("本")
u.rfind("🙂")
u.index("日", 2)
s.count("l")
s.count("")
s.count("l", 5)
s.replace("l", "L")
s.replace("l", "L", 2)
s.join(["a", "b"])
", ".join(w)
", ".join(l)
",".join("abc")
"ab".center(7, "*")
"ab".ljust(5) ~ "|"
"ab".rjust(5, ".")
"-5".zfill(4)
"5".zfill(3)
"é".rjust(4, "ü")
"abc".isalpha()
"abc1".isalnum()
"12".isdigit()
"1.2".isdigit()
" \\t".isspace()
"".isspace()
"abc".islower()
"ABC".isupper()
"abc".isascii()
u.isascii()
r.partition("X")
r.rpartition("X")
r.partition("q")
r.rpartition("q")
r.removeprefix("aX")
r.removesuffix("Xc")
r.removesuffix("q")
"{} and {}".format(1, "b")
"{0}{1}{0}".format("a", "b")
"{a}-{b}".format(a=1, b=2)
"{{}}".format()
"{}".format()
l.index(2)
l.index(9)
l.count(1)
(1, 1, 2).count(1)
l.append
l.append(1)
l.pop is defined
l.sort()
d.update({"a": 1})
d.pop("a")
d.clear is defined
d.copy()
s.nope
s.nope()
s.__class__
s._private
d.__class__ is defined
l.__len__()
raise_exception("stop")
raise_exception("stop: " ~ n)
cycler is defined
[1, 2, 3,]
{"a": 1,}
[]
{}
"a" in ("a", "b")
("a", "b") | join
-1|abs
- 1
+1
+true
-true
-s
not not t
1 if t else 2 | string
(l | length) - 1
l | length - 1
l|length > 2 and n
n is defined and n > 3
[n, z][0]
{"a": {"b": [1, 2]}}.a.b[1]
"abc"[1]
"abc"|upper|lower|title
s|replace("o", "0")|upper
not (n == 7)
n == 7 and not z
n != 7 or not t
1 + 1 ~ 2 + 2
1 ~ 2 * 3
"a" ~ ("b" if t else "c") ~ "d"
l[n - 6]
l[-n]
x.k["deep"][1][0]
n.upper()
none.x
none["x"]
none()
n[0]
n()
s()
l()
l.0
l.9
"a" < 1
none < 1
l < 1
d < d
s * s
s + 1
l + s
1 / 0
1 // 0
1 % 0
0 ** -1
1.0 / 0
9223372036854775807 == 9223372036854775807.0
big == 9007199254740992.0
big > 9007199254740992.0
s[:n]
s[none:]
s["a":]
s[::0]
d[:1]
n[:1]
l[1.0]
l[true]
d[none]
d[l]
s[1.5]
{l: 1}
{d: 1}
loop
loop.index
loop is defined
self is defined
super is defined
joiner is defined
lipsum is defined
"{:>5}".format(3) if z else "skipped"
(1, 2) == [1, 2]
"abc" > "abd"
1 > 0.5
true > false
[] == ()
"" == none
1 is not string
no is not defined
d is not sequence
"é" == "e\u0301"
"é"|length
"e\u0301"|length
s is sequence and s is not mapping
x is mapping and x.k is mapping
"a,b;c"|replace(",", ";")|replace(";", "")
s.split(", ")|map("lower")|join(" ")
(s.split(", ")|last)|upper
p[0].name ~ p[1]["name"]
p[0].in.x
p|map(attribute="age")|list
p[2].age is defined
p[-1].tag|length
p|length
p[5] is defined
p[5].name
""" + "\n"

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
