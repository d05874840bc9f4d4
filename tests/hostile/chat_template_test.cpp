#include "mlxcel/chat/template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "mlxcel/chat/conversation.h"
#include "tests/unit/chat/support/render.h"

// Templates that try to hang, to exhaust memory or the stack, or to reach
// beyond the conversation: an error in bounded time.

namespace mlxcel {

namespace {

using Kind = TemplateError::Kind;
using test::render_error;

std::string repeat(const std::string& text, int count) {
  std::string out;
  out.reserve(text.size() * static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

/// Limits that a test reaches soon, on a slow machine as well.
TemplateLimits small_limits() {
  TemplateLimits limits;
  limits.steps = 2'000'000;
  limits.text = size_t{1} << 20;
  limits.memory = size_t{8} << 20;
  limits.seconds = 300;
  return limits;
}

void expect_limit(const std::string& source) {
  TemplateError error = render_error(source, "{}", small_limits());
  EXPECT_EQ(error.kind(), Kind::limit) << source.substr(0, 200) << "\n"
                                       << error.message();
}

TEST(HostileChatTemplate, EndlessLoops) {
  expect_limit(
      "{% for a in range(100000) %}{% for b in range(100000) %}"
      "{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}"
  );
  expect_limit(
      "{% for a in range(99999) %}{{ range(99999)|map('string')|join }}"
      "{% endfor %}"
  );
  expect_limit("{% for a in range(99999) %}{{ range(99999)|sum }}{% endfor %}");
}

TEST(HostileChatTemplate, TimeIsLimited) {
  TemplateLimits limits;
  limits.steps = UINT64_MAX;
  limits.seconds = 0.2;
  auto start = std::chrono::steady_clock::now();
  TemplateError error = render_error(
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
      "{% endfor %}",
      "{}",
      limits
  );
  EXPECT_EQ(error.kind(), Kind::limit);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(HostileChatTemplate, LargeRanges) {
  expect_limit("{{ range(10**9) }}");
  expect_limit("{{ range(-9223372036854775807, 9223372036854775807) }}");
  expect_limit("{% for i in range(100001) %}{% endfor %}");
}

TEST(HostileChatTemplate, GrowingStrings) {
  expect_limit(
      "{% set ns = namespace(s='xx') %}{% for i in range(99) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}"
  );
  expect_limit(
      "{% set ns = namespace(s='xx') %}{% for i in range(99) %}"
      "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"
  );
  expect_limit(
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}"
      "{% set ns.l = ns.l + ns.l %}{% endfor %}"
  );
  for (const char* source :
       {"{{ 'x' * 10**12 }}",
        "{{ [1] * 10**12 }}",
        "{{ 'x'.center(10**12) }}",
        "{{ 'x'.zfill(10**12) }}",
        "{{ 'x'.ljust(9223372036854775807, '日') }}",
        "{{ 'a\tb'.expandtabs(10**12) }}",
        "{{ '%1000000000000d' % 5 }}",
        "{{ '{:1000000000000}'.format(5) }}",
        "{{ ('x' * 1000000).replace('x', 'y' * 1000000) }}",
        "{{ ('x' * 1000000).replace('', 'yy') }}",
        "{{ ('x' * 1000000).join('x' * 1000000) }}",
        "{{ ['x' * 1000000] * 10 |join }}",
        "{{ (['x' * 1000000] * 10)|join }}",
        "{{ 'x'|indent(10**12) }}",
        "{{ ('\n' * 100000)|indent(100000, blank=true) }}",
        "{{ [1]|tojson(indent=10**12) }}",
        "{{ [1]|batch(10**12, 0)|list }}",
        "{{ [1]|slice(10**12)|list }}",
        "{% for i in range(99999) %}{{ 'x' * 100 }}{% endfor %}"}) {
    TemplateError error = render_error(source, "{}", small_limits());
    EXPECT_NE(error.kind(), Kind::syntax) << source;
  }
}

TEST(HostileChatTemplate, MemoryIsLimited) {
  expect_limit(
      "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}"
      "{% set ns.l = ns.l + ['x' * 100000 ~ i] %}{% endfor %}"
  );
  // What is dropped is given back.
  EXPECT_EQ(
      test::render(
          "{% for i in range(1000) %}{% set x = 'x' * 100000 ~ i %}"
          "{% endfor %}ok",
          "{}",
          small_limits()
      ),
      "ok"
  );
}

TEST(HostileChatTemplate, DeepNesting) {
  constexpr int kDeep = 100'000;
  for (const std::string& source : {
           "{{ " + repeat("(", kDeep) + "1" + repeat(")", kDeep) + " }}",
           "{{ " + repeat("[", kDeep) + repeat("]", kDeep) + " }}",
           "{{ " + repeat("{1:", kDeep) + "1" + repeat("}", kDeep) + " }}",
           "{{ " + repeat("(", kDeep),
           "{{ " + repeat("-", kDeep) + "1 }}",
           "{{ " + repeat("- ", kDeep) + "1 }}",
           "{{ " + repeat("not ", kDeep) + "1 }}",
           "{{ 1" + repeat(" + 1", kDeep) + " }}",
           "{{ 1" + repeat(" ** 1", kDeep) + " }}",
           "{{ 1" + repeat(" or 1", kDeep) + " }}",
           "{{ x" + repeat(".x", kDeep) + " }}",
           "{{ x" + repeat("[0]", kDeep) + " }}",
           "{{ x" + repeat("()", kDeep) + " }}",
           "{{ x" + repeat("|string", kDeep) + " }}",
           "{{ 1" + repeat(" if 1 else 1", kDeep) + " }}",
           "{{ 1" + repeat(" if 1", kDeep) + " }}",
           "{{ 1 is " + repeat("eq (1 is ", kDeep) + " }}",
           repeat("{% if 1 %}", kDeep),
           repeat("{% for x in y %}", kDeep),
           repeat("{% macro m() %}", kDeep),
           "{% set " + repeat("(", kDeep) + "x = 1 %}",
           "{% filter upper" + repeat("|upper", kDeep) + " %}{% endfilter %}",
       }) {
    EXPECT_EQ(render_error(source).kind(), Kind::syntax)
        << source.substr(0, 60);
  }
}

// Long, but not deep: these are fine.
TEST(HostileChatTemplate, LongTemplates) {
  constexpr int kLong = 50'000;
  std::string branches = "{% if x == 0 %}";
  for (int i = 0; i < 2000; ++i) {
    branches += "{% elif x == " + std::to_string(i) + " %}{% set a" +
                std::to_string(i) + " = 1 %}";
  }
  EXPECT_EQ(test::render(branches + "{% endif %}ok"), "ok");
  EXPECT_EQ(
      test::render("{{ [" + repeat("1,", kLong) + "]|length }}"), "50000"
  );
  EXPECT_EQ(
      test::render("{{ (''" + repeat(" ~ 'x'", kLong) + ")|length }}"), "50000"
  );
  EXPECT_EQ(test::render(repeat("{{ 1 }}", kLong)).size(), size_t{kLong});
}

// Names times branches is no product of time.
TEST(HostileChatTemplate, ManyBranchesWithManyNames) {
  auto start = std::chrono::steady_clock::now();
  std::string source = "{% if x %}";
  for (int i = 0; i < 60'000; ++i) {
    source += "{% elif a" + std::to_string(i) + " %}{% set b" +
              std::to_string(i) + " = 1 %}";
  }
  EXPECT_EQ(test::render(source + "{% endif %}ok"), "ok");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(HostileChatTemplate, EndlessRecursion) {
  for (const char* source :
       {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro a() %}{{ b() }}{% endmacro %}"
        "{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% macro m(n) %}{% for i in [1] %}{% if 1 %}{% with x = n %}"
        "{{ [[((m(n + 1)|trim)|upper)|string]] }}{% endwith %}{% endif %}"
        "{% endfor %}{% endmacro %}{{ m(0) }}",
        "{% macro m() %}{{ caller() }}{% endmacro %}"
        "{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}"
        "{{ n() }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% macro m(x=m()) %}{% endmacro %}{{ m() }}"}) {
    EXPECT_EQ(render_error(source).kind(), Kind::limit) << source;
  }
}

// The deepest call chain fits the stack that threads have by default.
TEST(HostileChatTemplate, RecursionOnASmallStack) {
  std::string source = "{% macro m(n) %}" + repeat("{% if 1 %}", 20) + "{{ " +
                       repeat("[", 10) + "m(n)" + repeat("]", 10) + " }}" +
                       repeat("{% endif %}", 20) + "{% endmacro %}{{ m(0) }}";
  EXPECT_EQ(render_error(source).kind(), Kind::limit);
}

// Values inside each other are limited too: they are walked and destroyed by
// recursion.
TEST(HostileChatTemplate, DeepValues) {
  for (const char* step :
       {"[ns.v]",
        "(ns.v,)",
        "{'a': ns.v}",
        "[ns.v]|select",
        "[ns.v]|reverse",
        "{'a': ns.v}.items()",
        "[ns.v].copy",
        "joiner(ns.v)",
        "cycler(ns.v)",
        "cycler(ns.v).next"}) {
    expect_limit(
        std::string("{% set ns = namespace(v=1) %}"
                    "{% for i in range(99999) %}{% set ns.v = ") +
        step + " %}{% endfor %}"
    );
  }
  expect_limit(
      "{% set ns = namespace(v=1) %}{% for i in range(99999) %}"
      "{% for x in [ns.v] %}{% set ns.v = loop %}{% endfor %}{% endfor %}"
  );
}

// What a template can change may hold itself: no leak, no endless walk.
TEST(HostileChatTemplate, Cycles) {
  EXPECT_EQ(
      test::render("{% set ns = namespace() %}{% set ns.me = ns %}"
                   "{% set ns.list = [ns] %}{{ ns.me.list[0].me == ns }}"),
      "True"
  );
  EXPECT_EQ(
      test::render(
          "{% for x in [1] %}{{ loop.changed(loop) }}{% endfor %}"
          "{% set ns = namespace() %}{% macro m() %}{{ ns }}{% endmacro %}"
          "{% set ns.m = m %}"
      ),
      "True"
  );
  EXPECT_EQ(
      render_error("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns }}")
          .kind(),
      Kind::limit
  );
  // A long chain of namespaces is taken apart without recursion.
  EXPECT_EQ(
      test::render("{% set ns = namespace(v=1) %}{% for i in range(50000) %}"
                   "{% set ns.v = namespace(v=ns.v) %}{% endfor %}ok"),
      "ok"
  );
}

// Macros that outlive the macro that made them.
TEST(HostileChatTemplate, EscapingMacros) {
  EXPECT_EQ(
      test::render("{% set ns = namespace() %}"
                   "{% macro make(x) %}{% macro inner() %}{{ x }}{% endmacro %}"
                   "{% set ns.f = inner %}{% endmacro %}"
                   "{{ make('a') }}{% set f = ns.f %}{{ make('b') }}{{ f() }}"
                   "{{ ns.f() }}"),
      "ab"
  );
  EXPECT_EQ(
      test::render("{% set ns = namespace() %}{% macro m(y) %}"
                   "{% for x in [1, 2] recursive %}{{ x }}{{ y }}"
                   "{% set ns.loop = loop %}{% endfor %}{% endmacro %}"
                   "{{ m('a') }}{{ ns.loop([3]) }}"),
      "1a2a3a"
  );
  EXPECT_EQ(
      test::render("{% set ns = namespace() %}{% macro m(y) %}"
                   "{% for x in [1, 2, 3] if x != y %}{% set ns.loop = loop %}"
                   "{% break %}{% endfor %}{% endmacro %}"
                   "{{ m(2) }}{{ ns.loop.length }}"),
      "2"
  );
}

TEST(HostileChatTemplate, SlowSearches) {
  // Quadratic searches would take minutes.
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(
      test::render(
          "{% set hay = 'a' * 4000000 %}{% set needle = 'a' * 100000 ~ 'b' %}"
          "{{ needle in hay }}{{ hay.find(needle) }}{{ hay.rfind('b' ~ "
          "needle) }}{{ hay.count(needle) }}{{ hay.split(needle)|length }}"
          "{{ hay.strip('b' * 1000000)|length }}"
      ),
      "False-1-1014000000"
  );
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(HostileChatTemplate, LongTextsInLayoutFilters) {
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(
      test::render("{{ ('a-' * 500000)|wordwrap(1)|length }} "
                   "{{ ('-' * 500000)|wordwrap(9)|length }} "
                   "{{ (('<' * 500000)|striptags)|length }} "
                   "{{ ('<!--' * 500000)|striptags|length }} "
                   "{{ ('&a' * 500000)|striptags|length }} "
                   "{{ ('a ' * 200000)|pprint|length > 400000 }}"),
      "1999999 555555 500000 2000000 1000000 True"
  );
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  expect_limit("{{ ('a' * 900000)|wordwrap(1, wrapstring='xyz') }}");
  EXPECT_EQ(render_error("{{ 'a'|wordwrap(0) }}").kind(), Kind::failure);
}

TEST(HostileChatTemplate, SortingStrangeValues) {
  EXPECT_EQ(
      test::render(
          "{{ (['nan'|float] * 1000 + range(1000)|list + ['nan'|float] * 1000)"
          "|sort|length }}"
      ),
      "3000"
  );
  render_error("{{ [1, 'a', none]|sort }}");
}

TEST(HostileChatTemplate, IntegerLimits) {
  for (const char* source :
       {"{{ 9223372036854775808 }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ -9223372036854775807 - 2 }}",
        "{{ 9223372036854775807 * 2 }}",
        "{{ 2 ** 63 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ (-9223372036854775807 - 1)|abs }}",
        "{{ 1e30|int }}",
        "{{ '99999999999999999999'|int }}",
        "{{ range(9223372036854775806, 9223372036854775807, 2)[5:] }}",
        "{{ '%99999999999999999999d' % 1 }}",
        "{{ '{:99999999999999999999}'.format(1) }}",
        "{{ '{99999999999999999999}'.format(1) }}"}) {
    render_error(source);
  }
  EXPECT_EQ(
      test::render("{{ (-9223372036854775807 - 1) % -1 }}"
                   "{{ 'abc'[-9223372036854775807:9223372036854775807] }}"
                   "{{ 'abc'[::9223372036854775807] }}"
                   "{{ 'abc'[::-9223372036854775807] }}"
                   "{{ [1, 2][:-9223372036854775807] }}"),
      "0abcac[]"
  );
}

TEST(HostileChatTemplate, BadText) {
  for (const std::string& source :
       {std::string("a\xff") + "b",
        std::string("{{ '\xc3' }}"),
        std::string("\xed\xa0\x80"),
        std::string("{{ '\\ud800' }}"),
        std::string("{{ '\\U00110000' }}"),
        std::string("{{ '\\x4' }}"),
        std::string("{{ '\\N{DIGIT ONE}' }}"),
        std::string("{# never closed"),
        std::string("{% raw %} never closed"),
        std::string("{{ 'never closed }}"),
        std::string("{{"),
        std::string("{%"),
        std::string("{% if"),
        std::string("{{ ] }}"),
        std::string("{{ (] }}"),
        std::string("{{ \0 }}", 7)}) {
    EXPECT_EQ(render_error(source).kind(), Kind::syntax);
  }
  EXPECT_EQ(test::render(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(
      ChatTemplate::from_source(std::string(5 << 20, ' '), "T").source().size(),
      size_t{5} << 20
  );
}

// Bytes that are no text don't get into a rendering.
TEST(HostileChatTemplate, BadMessages) {
  auto plain = ChatTemplate::from_source("{{ messages[0].content }}", "T");
  EXPECT_THROW(
      plain.render(RenderInput(to_messages({{"user", "a\xff"}}))), Error
  );
  EXPECT_EQ(
      plain.render(RenderInput(to_messages({{"user", std::string("\0", 1)}}))),
      std::string("\0", 1)
  );
  EXPECT_THROW(
      plain.render(RenderInput(Json::parse(
          R"([{"role": "u", "content": 18446744073709551615}])", "m"
      ))),
      Error
  );
}

TEST(HostileChatTemplate, MessagesOfTemplates) {
  TemplateError error =
      render_error("{{ raise_exception('\\x1b[2J' ~ 'x' * 1000000) }}");
  EXPECT_EQ(error.kind(), Kind::rejected);
  EXPECT_EQ(error.reason().size(), size_t{1'000'004});
  EXPECT_LT(error.message().size(), size_t{5000});
  EXPECT_EQ(error.message().find('\x1b'), std::string::npos);
  EXPECT_NE(error.message().find("\\x1b[2Jxx"), std::string::npos);
}

TEST(HostileChatTemplate, ErrorsSayWhere) {
  TemplateError error =
      render_error("ok\n  {% for x in [1] %}\n日本 {{ x.y.z }}{% endfor %}");
  EXPECT_EQ(error.kind(), Kind::failure);
  EXPECT_EQ(error.line(), 3);
  EXPECT_EQ(error.column(), 10);
  EXPECT_EQ(error.reason(), "'int object' has no attribute 'y'");
  EXPECT_EQ(
      error.message(),
      "[chat template] test:3:10: 'int object' has no attribute 'y'"
  );
}

}  // namespace

}  // namespace mlxcel
