#include <gtest/gtest.h>

#include "tests/unit/chat/support/render.h"

// The expected texts are those of Jinja 3.1.6 in the environment that
// transformers 5.24 makes; tests/oracle/test_chat_templates.py compares many
// more with it live.

namespace mlxcel {

namespace {

using test::render;

constexpr const char* kContext = R"({
  "messages": [
    {"role": "system", "content": "S"},
    {"role": "user", "content": "U"},
    {"role": "assistant", "content": "A"}
  ],
  "d": {"b": 2, "a": 1, "items": "shadow"},
  "n": 3, "f": 2.5, "t": true, "none_value": null, "text": "añ日😀"
})";

struct Case {
  const char* source;
  const char* expected;
};

void expect_all(std::initializer_list<Case> cases) {
  for (const Case& item : cases) {
    EXPECT_EQ(render(item.source, kContext), item.expected) << item.source;
  }
}

TEST(ChatLanguage, Literals) {
  expect_all({
      {"{{ 'a' 'b' \"c\" }}", "abc"},
      {R"({{ "\n\t\\\"\x41\u00e9\U0001F600\101\q" }})", "\n\t\\\"Aé😀A\\q"},
      {"{{ 1_000 + 0x1f + 0b101 + 0o17 }} {{ 1.5e3 }}", "1051 1500.0"},
      {"{{ [1, 'a', none, true, 1.0, (2,)] }}",
       "[1, 'a', None, True, 1.0, (2,)]"},
      {"{{ {'a': 1, 'a': 2, none: ()} }}", "{'a': 2, None: ()}"},
      {"{{ \"it's\" }} {{ [\"it's\"] }} {{ ['\"', '\\n\\x00é'] }}",
       R"(it's ["it's"] ['"', '\n\x00é'])"},
  });
}

TEST(ChatLanguage, Numbers) {
  expect_all({
      {"{{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }}",
       "1.0 1e+16 1000000000000000.0 0.0001 1e-05"},
      {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7.5 % 2 }}",
       "3 -4 2 -2 0.5"},
      {"{{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}",
       "1024 0.5 4 64"},
      {"{{ 4 / 2 }} {{ 1 / 3 }} {{ -0.0 }} {{ true + 1 }}",
       "2.0 0.3333333333333333 -0.0 2"},
      {"{{ 2.675|round(2) }} {{ 2.5|round }} {{ 5|round }} "
       "{{ 42.55|round(1, 'floor') }}",
       "2.67 2.0 5 42.5"},
      {"{{ '42.9'|int }} {{ 'x'|int(-1) }} {{ '0x1f'|int(base=16) }} "
       "{{ '3.5'|float }}",
       "42 -1 31 3.5"},
  });
}

TEST(ChatLanguage, Operators) {
  expect_all({
      {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 == 2 }}", "True False True"},
      {"{{ not true and false or 1 }} {{ 0 or '' or none }} {{ 1 and 2 }}",
       "1 None 2"},
      {"{{ 'a' ~ 1 ~ none ~ true ~ [1] ~ missing }}", "a1NoneTrue[1]"},
      {"{{ 1 + 2 }}{{ 2 * 3 ~ 1 }} {{ 'ab' * 2 }} {{ [1] + [2] }}",
       "361 abab [1, 2]"},
      {"{{ 'a' in 'cat' }} {{ 'z' not in ['a'] }} {{ 'b' in d }} "
       "{{ 1 in missing }}",
       "True True True False"},
      {"{{ 'x' if t else 'y' }}{{ 'x' if none_value }}|", "x|"},
      {"{{ 1 == 1.0 }} {{ true == 1 }} {{ [1] == (1,) }} {{ '1' == 1 }}",
       "True True False False"},
  });
}

TEST(ChatLanguage, StringsCountCodePoints) {
  expect_all({
      {"{{ text|length }} {{ text[2] }} {{ text[-1] }} {{ text[::-1] }} "
       "{{ text[1:3] }}",
       "4 日 😀 😀日ña ñ日"},
      {"{% for c in text %}[{{ c }}]{% endfor %}", "[a][ñ][日][😀]"},
      {"{{ text.find('日') }} {{ '%5s' % 'é' }} {{ 'é'.center(3, '日') }}",
       "2     é 日é日"},
      {"{{ 'ß ŉ ΑΣ'|upper }} {{ 'ΑΣ ΣΑΣ.'|lower }} {{ 'ǆ'.title() }}",
       "SS ʼN ΑΣ ας σας. ǅ"},
      {"{{ '\u00a0 x\u2003'|trim }}|{{ 'a\x1c b'.split() }}", "x|['a', 'b']"},
  });
}

TEST(ChatLanguage, Undefined) {
  expect_all({
      {"{{ missing }}|{{ missing is defined }}|{{ d.missing }}|"
       "{{ messages[9] }}",
       "|False||"},
      {"{{ missing|default('d') }} {{ none_value|default('d') }} "
       "{{ ''|default('d', true) }}",
       "d None d"},
      {"{{ missing|length }}{% for x in missing %}x{% endfor %}", "0"},
  });
}

// An attribute is a method of the type first and an item only then.
TEST(ChatLanguage, AttributesBeforeItems) {
  expect_all({
      {"{{ d['items'] }} {{ d.items is string }} {{ d.items()|first }}",
       "shadow False ('b', 2)"},
      {"{{ d.b }} {{ d['b'] }} {{ d.get('z', 7) }} {{ d.keys()|list }}",
       "2 2 7 ['b', 'a', 'items']"},
  });
}

// Lists and dicts cannot be changed, nor Python's insides reached.
TEST(ChatLanguage, HiddenAttributes) {
  expect_all({
      {"{{ messages.append is defined }} {{ d.pop is defined }} "
       "{{ ''.__class__ is defined }}|{{ d.update }}|",
       "False False False||"},
  });
  for (const char* source :
       {"{{ messages.append(1) }}",
        "{{ d.pop('b') }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ ''['__class__'].x }}",
        "{{ range.__globals__.x }}",
        "{{ '{0.__class__.x}'.format('') }}",
        "{% set ns = namespace(__x=1) %}"}) {
    test::render_error(source, kContext);
  }
}

TEST(ChatLanguage, Loops) {
  expect_all({
      {"{% for m in messages %}{{ loop.index }}{{ m.role[0] }}"
       "{{ '.' if loop.last else ',' }}{% endfor %}",
       "1s,2u,3a."},
      {"{% for m in messages if m.role != 'user' %}{{ loop.index }}/"
       "{{ loop.length }} {% endfor %}",
       "1/2 2/2 "},
      {"{% for a, (b, c) in [(1, (2, 3)), (4, 'xy')] %}{{ a }}{{ b }}{{ c }};"
       "{% endfor %}",
       "123;4xy;"},
      {"{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}"
       "{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
       "013"},
      {"{% for x in [] %}x{% else %}none{% endfor %}", "none"},
      {"{% for x in [1, 2] recursive %}{{ x }}{% if x is iterable %}"
       "{% elif loop.depth < 3 %}({{ loop([x + 1]) }}){% endif %}{% endfor %}",
       "1(2(3))2(3(4))"},
      {"{% for x in [1, 1, 2] %}{{ loop.changed(x) }} "
       "{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};"
       "{% endfor %}",
       "True 1a;False 12b;True 1a;"},
  });
}

TEST(ChatLanguage, Scopes) {
  expect_all({
      {"{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = i + 10 %}"
       "{{ x }} {% endfor %}{{ x }}",
       "111 112 1"},
      {"{% if t %}{% set z = 1 %}{% endif %}{{ z }}", "1"},
      {"{% set ns = namespace(x=0) %}{% for i in range(4) %}"
       "{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
       "6"},
      {"{% macro f() %}{{ v }}{% endmacro %}{% set v = 1 %}{{ f() }}"
       "{% set v = 2 %}{{ f() }}",
       "12"},
      {"{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
       "13False"},
      {"{% set x %}a{{ n }}{% endset %}{{ x }}"
       "{% set y | upper %}b{% endset %}{{ y }}",
       "a3B"},
      {"{% generation %}g{% set q = 1 %}{% endgeneration %}{{ q is defined }}",
       "gFalse"},
      {"{% set v = 1 %}{% block b %}{{ v }}{{ n }}{% endblock %}", "13"},
  });
}

TEST(ChatLanguage, Macros) {
  expect_all({
      {"{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}"
       "{{ m(1) }}{{ m(1, c=3) }}{{ m(b=5, a=4) }}",
       "121;123;454;"},
      {"{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}"
       "{{ m(1, x=3) }}",
       "(1,){'x': 3}"},
      {"{% macro m() %}<{{ caller('x') }}>{% endmacro %}"
       "{% call(v) m() %}b{{ v }}{% endcall %}",
       "<bx>"},
      {"{% macro fact(n) %}{{ n * fact(n - 1)|int if n > 1 else 1 }}"
       "{% endmacro %}{{ fact(10) }}",
       "3628800"},
      {"{% filter upper %}a{{ n }}b{% endfilter %}", "A3B"},
  });
}

TEST(ChatLanguage, WhiteSpace) {
  expect_all({
      {"a\n  {% if t %}\nb\n  {% endif %}\nc", "a\nb\nc"},
      {"a \n {%- if t -%} \n b {% endif %}", "ab "},
      {"a\n  {%+ if t %}b{% endif +%}\nc", "a\n  b\nc"},
      {"a {{- n -}} b {# x #}\n  {#- y -#} c", "a3b c"},
      {"{% raw %}{{ x }}{% endraw %}{%- raw -%} y {%- endraw -%} z",
       "{{ x }}yz"},
      {"a\r\nb\rc\n", "a\nb\nc"},
      {"x\n\n", "x\n"},
  });
}

TEST(ChatLanguage, Filters) {
  expect_all({
      {"{{ messages|map(attribute='role')|join('+') }}",
       "system+user+assistant"},
      {"{{ messages|selectattr('role', 'equalto', 'user')|list|length }}"
       "{{ messages|rejectattr('role', 'in', ['user'])|list|length }}",
       "12"},
      {"{{ [3, 1, 2]|sort }} {{ ['b', 'A']|sort }} {{ d|dictsort|first }}",
       "[1, 2, 3] ['A', 'b'] ('a', 1)"},
      {"{{ [1, 2, 3]|batch(2)|list }} {{ ['a', 'A']|unique|list }}",
       "[[1, 2], [3]] ['a']"},
      {"{{ 'a\nb\n\nc'|indent(2) }}", "a\n  b\n\n  c"},
      {"{{ '%s=%05.1f'|format('x', f) }} {{ '{:>4}{!r}'.format(n, 'a') }}",
       "x=002.5    3'a'"},
      {"{{ '<b>'|e }} {{ ('<b>'|e) + '<' }} {{ '<b>'|safe|e }}",
       "&lt;b&gt; &lt;b&gt;&lt; <b>"},
      {"{{ 'hello wORLD-foo'|title }} {{ \"they're\".title() }}",
       "Hello World-Foo They'Re"},
      {"{{ messages|groupby('role')|map('first')|list }}",
       "['assistant', 'system', 'user']"},
  });
}

// map and its kin give what is always true and walked once.
TEST(ChatLanguage, Generators) {
  expect_all({
      {"{% set s = []|select %}{{ 'yes' if s }}", "yes"},
      {"{% set s = [1, 2]|map('string') %}{{ s|first }}{{ s|list }}"
       "{{ s|list }}",
       "1['2'][]"},
      {"{{ [1, 'a']|map('round') is defined }}", "True"},
  });
  test::render_error("{{ [1, 'a']|map('round')|list }}");
  test::render_error("{{ ([1]|map('string'))|length }}");
}

// pitfalls 59: the options of json.dumps.
TEST(ChatLanguage, ToJson) {
  expect_all({
      {"{{ {'b': [1, 2.0, none], 'a': 'é\"<'}|tojson }}",
       R"({"b": [1, 2.0, null], "a": "é\"<"})"},
      {"{{ 'é😀'|tojson(ensure_ascii=True) }} "
       "{{ 'é'|tojson(ensure_ascii=False) }}",
       "\"\\u00e9\\ud83d\\ude00\" \"é\""},
      {"{{ {'b': 1, 'a': [2]}|tojson(sort_keys=true, separators=(',', ':')) "
       "}}",
       R"({"a":[2],"b":1})"},
      {"{{ {'a': [1], 'b': {}}|tojson(indent=2) }}",
       "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}"},
      {"{{ {1: none, true: 1.5, none: 0}|tojson }}",
       R"({"1": 1.5, "null": 0})"},
  });
}

TEST(ChatLanguage, Tests) {
  expect_all({
      {"{{ 1 is odd }} {{ 3 is divisibleby 3 }} {{ 'a' is in 'abc' }} "
       "{{ d is mapping }} {{ t is boolean }} {{ f is float }} "
       "{{ none_value is none }} {{ 2 is not gt 3 }}",
       "True True True True True True True True"},
      {"{{ 'x' is string }} {{ [] is sequence }} {{ t is number }} "
       "{{ t is integer }} {{ 'AB' is upper }} {{ range is callable }}",
       "True True True False True True"},
  });
}

TEST(ChatLanguage, Time) {
  EXPECT_EQ(render("{{ strftime_now('%Y %j %f%z%%') }}"), "2023 318 000000%");
  test::render_error("{{ strftime_now('%Q') }}");
  test::render_error("{{ strftime_now('%999999999d') }}");
}

TEST(ChatLanguage, LayoutFilters) {
  expect_all({
      {"{{ 'a long word-wrapped text'|wordwrap(6) }}",
       "a long\nword-w\nrapped\ntext"},
      {"{{ 'abcdefgh ij'|wordwrap(4, false) }}", "abcdefgh\nij"},
      {"{{ '<b>a</b> <!-- x -->\n &lt;&copy &#8364; AT&T'|striptags }}",
       "a <© € AT&T"},
      {"{{ {'b': [1, none], 'a': 'é'}|pprint }}", "{'a': 'é', 'b': [1, None]}"},
      {"{{ {'a': 'x' * 70, 'b': 'y' * 9}|pprint|length }}", "98"},
      // No room even for an empty text.
      {"{{ {'k' * 90: {'': ''}}|pprint|length }}", "104"},
  });
  EXPECT_EQ(
      test::render_error("{{ '&hearts; &lambda;'|striptags }}").kind(),
      TemplateError::Kind::failure
  );
}

TEST(ChatLanguage, FormatsOfNumbersAndEscapedText) {
  expect_all({
      {"{{ '{:08,}'.format(1234) }} {{ '{:012,.2f}'.format(-1234.5) }}",
       "0,001,234 -0,001,234.50"},
      {"{{ '{:#012_x}'.format(1234) }}", "0x0_0000_04d2"},
      {"{{ ('<i>{}{!r:>4}</i>'|safe).format('&'|e, '<') }}",
       "<i>&amp; &#39;&lt;&#39;</i>"},
  });
}

// An unknown filter is an error even where it never runs, but for `if`.
TEST(ChatLanguage, UnknownFilters) {
  EXPECT_EQ(render("{% if false %}{{ 1|nofilter }}{% endif %}ok"), "ok");
  TemplateError error =
      test::render_error("{% macro m() %}\n{{ 1|nofilter }}{% endmacro %}");
  EXPECT_EQ(error.kind(), TemplateError::Kind::syntax);
  EXPECT_EQ(error.reason(), "unknown filter 'nofilter'");
  EXPECT_EQ(error.line(), 2);
  EXPECT_EQ(
      test::render_error("{% if true %}{{ 1|nofilter }}{% endif %}").kind(),
      TemplateError::Kind::failure
  );
}

}  // namespace

}  // namespace mlxcel
