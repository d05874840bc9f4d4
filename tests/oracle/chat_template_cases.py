"""Templates for test_chat_templates.py: written by hand, and made from tables
of values, filters, tests, methods and statements."""

import itertools
import random

CONTEXT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi <there> & \"you\""},
        {"role": "assistant", "content": "  Héllo 😀  "},
        {"role": "user", "content": [
            {"type": "text", "text": "Look"}, {"type": "image"}]},
    ],
    "tools": [{"type": "function", "function": {
        "name": "get_weather", "description": "It's <hot>?",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "enum": ["Köln", "a\"b\\"]},
            "days": {"type": ["integer", "null"], "default": None}},
            "required": ["city"]}}}],
    "users": [
        {"name": "Zoe", "age": 31, "city": "berlin", "tags": ["x", "y"]},
        {"name": "adam", "age": 7, "city": "Berlin", "on": True},
        {"name": "Bob", "age": 31, "city": "Ulm", "on": False},
        {"name": "eve", "age": 12.5, "on": None},
    ],
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []},
                               {"v": 3, "kids": [{"v": 4, "kids": []}]}]},
             {"v": 5, "kids": []}],
    "text": "The quick brown fox\njumps over\n\nthe lazy dog",
    "number": 42, "real": 2.675, "flag": True, "nothing": None,
    "d": {"b": 2, "a": 1, "C": 3, "items": "shadow"},
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True,
}

# One template per entry; most come in pairs of a rule and its opposite.
SNIPPETS = r"""
{{ 'a' 'b' "c" }}
{{ "\n\t\\\"\x41\u00e9\U0001F600\101\q" }}
{{ 1_000 + 0x1f + 0b101 + 0o17 }} {{ 1.5e3 }} {{ 1e-7 }} {{ 12_3.4_5 }}
{{ 007 }}
{{ 9223372036854775807 }} {{ -9223372036854775807 }}
{{ 1.0 }} {{ 1e16 }} {{ 123456789012345680.0 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }}
{{ 2**10 }} {{ 2**-1 }} {{ -2**2 }} {{ 2**3**2 }} {{ 7//2 }} {{ -7//2 }} {{ -7%3 }} {{ 7%-3 }} {{ 7.5//2 }} {{ -7.5%2 }}
{{ 1/0 }}
{{ 1//0 }}
{{ 1%0 }}
{{ 4/2 }} {{ 1/3 }} {{ 10/4*2 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 == 2 }} {{ 1 in [1] in [[1]] }}
{{ 'a' < 'b' }} {{ [1,2] < [1,3] }} {{ (1,) <= (1,0) }}
{{ 'a' < 1 }}
{{ none < none }}
{{ not true and false or 1 }} {{ not (true and false) }} {{ 0 or '' or none }} {{ 1 and 2 }}
{{ undefined_name }}|{{ undefined_name is defined }}|{{ undefined_name ~ 'x' }}
{{ undefined_name.x }}
{{ undefined_name['x'] }}
{{ undefined_name() }}
{{ undefined_name + 'x' }}
{{ 'x' + undefined_name }}
{{ number.nothing }}|{{ d.nothing }}|{{ d['nothing'] }}|{{ messages[99] }}|{{ messages['x'] }}
{{ number.nothing.more }}
{{ d.items }}
{{ d['items'] }}|{{ d.b }}|{{ d['b'] }}|{{ d.get('b') }}|{{ d.get('z') }}|{{ d.get('z', 7) }}
{{ d.items is defined }} {{ d.pop is defined }} {{ messages.append is defined }} {{ text.__class__ is defined }}
{{ d.pop('b') }}
{{ messages.append(1) }}
{{ d.update({'x': 1}) }}
{{ ''.__class__.__mro__ }}
{{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list }}
{{ d.keys() }} {{ d.values() }} {{ d.items() }}
{{ d }} {{ messages[0] }} {{ tools }}
{{ [] }} {{ () }} {{ (1,) }} {{ {} }} {{ [none, true, 1.0, 'a\'b', "a'b\"c", '\n\x00é'] }}
{{ {'a': 1, 'a': 2, 1: 'x', 1.0: 'y', true: 'z', none: 0, (1,2): 3} }}
{{ {[1]: 2} }}
{{ 1 in {1: 2} }} {{ 'a' in 'cat' }} {{ 'z' not in ['a'] }} {{ (1,2) in {(1,2): 3} }} {{ 1 in undefined_name }}
{{ 1 in 'a' }}
{{ 1 in 5 }}
{{ [1] in {} }}
{{ 'x' if flag }}|{{ 'x' if nothing }}|{{ 'a' if nothing else 'b' if 0 else 'c' }}
{{ ('x' if nothing).y }}
{{ 'a' ~ 1 ~ none ~ true ~ [1] ~ 1.5 }}
{{ [1,2] + [3] }} {{ (1,) + (2,) }} {{ 'ab' * 3 }} {{ 3 * [0] }} {{ 'x' * -1 }}
{{ [1] + (2,) }}
{{ 'a' - 'b' }}
{{ 'a' + 1 }}
{{ true + true }} {{ true * 2.5 }} {{ -true }} {{ +false }}
{{ -'a' }}
{{ 'abcdef'[1] }} {{ 'abcdef'[-1] }} {{ 'abcdef'[9] }}| {{ '日本語'[1] }} {{ '日本語'[-1] }}
{{ 'abcdef'[1:4] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[::2] }} {{ '日本語😀x'[::-2] }} {{ [1,2,3,4][1:] }} {{ (1,2,3)[:2] }} {{ range(10)[2:8:3] }}
{{ 'abc'[::0] }}
{{ text['a':] }}
{{ d[1:2] }}
{{ nothing[1:] }}
{{ undefined_name[1:] }}
{{ [1,2,3][true] }} {{ [1,2,3][1.0] }}| {{ [1,2,3].1 }} {{ d.0 }}
{{ messages[0].role }} {{ messages[-1]['content'][0].text }} {{ messages|length }}
{{ 'x'.upper }}|
{{ range(5)|list }} {{ range(2, 5)|list }} {{ range(5, 0, -2)|list }} {{ range(0) }} {{ range(1,7,2) }}
{{ range(100001)|length }}
{{ range(1.5) }}
{{ range(1, 2, 0) }}
{{ dict(a=1, b=2) }} {{ dict([('x', 1)]) }} {{ dict({'a': 1}, b=3) }} {{ dict.fromkeys('ab', 0) }}
{{ 'a%sb%d%%' % ('x', 3) }} {{ '%5.2f|%-6s|%06d|%+d|%x|%o|%e' % (3.14159, 'ab', 42, 7, 255, 8, 12345.678) }} {{ '%(k)s' % {'k': 'v'} }} {{ '%s' % [1] }} {{ '%r' % 'a' }} {{ '%c' % 65 }} {{ '%*d' % (5, 3) }} {{ '%.3s' % 'abcdef' }} {{ '%5s%%' % 'é' }}
{{ '%d' % 'x' }}
{{ '%s %s' % 'x' }}
{{ '%s' % (1, 2) }}
{{ '{} {}'.format(1, 'b') }} {{ '{1} {0}'.format(1, 2) }} {{ '{a} {b[x]} {b.y}'.format(a=1, b={'x': 2, 'y': 3}) }} {{ '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd') }} {{ '{:05d} {:+.2f} {:x} {:,} {:.1%} {:e}'.format(42, 3.14159, 255, 1234567, 0.256, 12345.0) }} {{ '{{}} {!r} {!s}'.format('a', 'b') }} {{ '{:{w}}'.format('x', w=4) }}|
{{ '{}'.format() }}
{{ '{'.format() }}
{{ '{0} {}'.format(1) }}
{{ '{:d}'.format('x') }}
{{ 'x'|upper|lower|title }}
{{ users|map(attribute='name')|join(', ') }} {{ users|map(attribute='city', default='?')|list }} {{ ['a','b']|map('upper')|join }} {{ ['a1','b1']|map('replace', '1', '2')|list }}
{{ users|map('nofilter')|list }}
{{ users|map()|list }}
{{ users|selectattr('on')|map(attribute='name')|list }} {{ users|rejectattr('on')|map(attribute='name')|list }} {{ users|selectattr('age', 'equalto', 31)|map(attribute='name')|list }} {{ users|selectattr('age', '>', 10)|list|length }} {{ users|selectattr('on', 'defined')|list|length }} {{ users|rejectattr('on', 'none')|list|length }}
{{ [1,2,3,4]|select('odd')|list }} {{ [1,2,3,4]|reject('divisibleby', 2)|list }} {{ [0,1,'',none]|select|list }} {{ [0,1]|reject|list }}
{{ [1]|select('nosuchtest')|list }}
{{ [1]|select('nosuchtest') is defined }}
{% set s = [1,2]|select('odd') %}{% if [] |select %}true{% endif %}{{ s|list }}{{ s|list }}
{% set s = [1,2,3]|map('string') %}{{ s|first }}{{ s|join('+') }}{{ s|list }}
{{ ([1]|map('upper'))|length }}
{{ none|map('upper')|list }}|{{ 0|select|list }}|{{ ''|map('upper')|list }}
{{ 5|map('upper')|list }}
{{ 5|map('upper') is defined }}
{{ ['b','A','c']|sort }} {{ ['b','A','c']|sort(case_sensitive=true) }} {{ [3,1,2]|sort(reverse=true) }} {{ users|sort(attribute='age,name')|map(attribute='name')|list }} {{ users|sort(attribute='name')|map(attribute='name')|list }}
{{ [1,'a']|sort }}
{{ [none,1]|sort }}
{{ d|dictsort }} {{ d|dictsort(true) }} {{ {'b':1,'a':2}|dictsort(by='value') }} {{ {'b':1,'a':2}|dictsort(reverse=true) }}
{{ {'b':1,'a':'x'}|dictsort(by='value') }}
{{ users|groupby('age') }}
{% for g in users|groupby('city', default='none') %}{{ g.grouper }}:{{ g.list|map(attribute='name')|join(',') }};{{ g[0] }}{% endfor %}
{% for city, all in users|groupby('city', default='x', case_sensitive=true) %}{{ city }}={{ all|length }} {% endfor %}
{{ ['a','A','b','a']|unique|list }} {{ ['a','A']|unique(true)|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }} {{ [1,1.0,true,'1']|unique|list }}
{{ [[1],[1]]|unique|list }}
{{ [3,1,2]|min }} {{ [3,1,2]|max }} {{ ['b','A']|min }} {{ ['b','A']|max(true) }} {{ users|max(attribute='age') }} {{ []|min }}|{{ []|max is defined }}
{{ [1,'a']|max }}
{{ [1,2.5,true]|sum }} {{ users|sum(attribute='age') }} {{ [[1],[2]]|sum(start=[]) }} {{ []|sum }}
{{ ['a']|sum }}
{{ [1,2,3,4,5]|batch(2)|list }} {{ [1,2,3]|batch(2, 'x')|list }} {{ [1,2,3,4,5]|slice(3)|list }} {{ [1,2,3,4]|slice(3, 'x')|list }}
{{ [1,2,3]|first }} {{ [1,2,3]|last }} {{ 'abc'|first }} {{ 'abc'|last }} {{ d|first }} {{ d|last }} {{ []|first }}|{{ []|last }}|{{ range(3)|last }} {{ d.items()|first }} {{ d.items()|list|last }}
{{ ([1]|select)|last }}
{{ 'abc'|reverse }} {{ [1,2]|reverse|list }} {{ range(3)|reverse|list }} {{ ([1,2]|select)|reverse }} {{ d|reverse|list }}
{{ 5|reverse }}
{{ 'abc'|list }} {{ d|list }} {{ 5|string|list }} {{ (1,2)|list }}
{{ 5|list }}
{{ d|items|list }} {{ undefined_name|items|list }}
{{ 5|items|list }}
{{ [1,2]|join(', ') }} {{ 'abc'|join('-') }} {{ [1,none,true,[2]]|join('|') }} {{ d|join(',') }} {{ [1,2]|join(3) }}
{{ 5|join }}
{{ '  x '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ none|trim }}|{{ 5|trim }}|{{ '\u00a0\u2003x\x1c'|trim }}|
{{ 'aXbX'|replace('X', '-') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 'abc'|replace('', '-') }} {{ 123|replace(2, 'x') }} {{ 'aa'|replace('a', 'b', 0) }}
{{ 'hello wORLD-foo (bar) [baz'|title }} {{ "it's ǆ ß"|title }} {{ 'hELLO'|capitalize }} {{ 'ßa'|upper }} {{ 'ΑΣ ΣΑΣ. İ'|lower }}
{{ text|indent }} ~ {{ text|indent(2, true) }} ~ {{ text|indent(3, blank=true) }} ~ {{ text|indent('> ') }} ~ {{ ''|indent }} ~ {{ 'a\n'|indent }} ~ {{ 'a\n\n'|indent(1, true, true) }}
{{ 5|indent }}
{{ undefined_name|indent }}
{{ text|wordcount }} {{ 'a-b c_d é1'|wordcount }} {{ ''|wordcount }}
{{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }} {{ 'foo bar baz qux'|truncate(11) }} {{ 'foo bar baz qux'|truncate(11, false, '...', 0) }} {{ '日本語日本語日本語'|truncate(5, true, '', 0) }}
{{ 'x'|truncate(1, false, '...') }}
{{ 'abc'|center(9) }}|{{ 'ab'|center(5) }}|{{ 'a'|center(4) }}|{{ 'abc'|center(2) }}|
{{ 3.7|int }} {{ '42.9'|int }} {{ 'x'|int }} {{ 'x'|int(-1) }} {{ '0x1f'|int(base=16) }} {{ '12'|int(0, 8) }} {{ none|int }} {{ ' 7 '|int }} {{ '1_0'|int }} {{ true|int }} {{ [1]|int(5) }} {{ '٣'|int }} {{ 'inf'|int }}
{{ undefined_name|int }}
{{ '3.5'|float }} {{ 'x'|float }} {{ 2|float }} {{ 'nan'|float }} {{ '-inf'|float }} {{ '1e3'|float }} {{ none|float(1.5) }}
{{ real|round(2) }} {{ 42.55|round }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 5|round }} {{ 2.5|round }} {{ 3.5|round }} {{ 1234|round(-2) }} {{ 0.5|round|int }} {{ 15|round(-1) }} {{ 25|round(-1) }}
{{ 'x'|round }}
{{ -5|abs }} {{ -2.5|abs }} {{ true|abs }}
{{ 'x'|abs }}
{{ undefined_name|default('d') }} {{ none|default('d') }} {{ ''|default('d', true) }} {{ 0|d('x', boolean=true) }} {{ 1|d(2) }} {{ undefined_name|default }}|
{{ undefined_name.x|default('d') }}
{{ d|tojson }} {{ tools|tojson }} {{ 'é</script>\u2028\x7f\x00"\\'|tojson }} {{ [1.0, 1e20, none, true, (1,2), {}]|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}
{{ tools|tojson(indent=2) }} {{ [[], {}, [1]]|tojson(indent=4) }} {{ [1,[2]]|tojson(indent='--') }} {{ [1,2]|tojson(indent=0) }} {{ [1]|tojson(indent=-1) }}
{{ 'é😀\x7f'|tojson(ensure_ascii=true) }} {{ {'b':1,'a':2}|tojson(sort_keys=true) }} {{ {'b':1,'a':[1,2]}|tojson(separators=(',', ':')) }} {{ {'a':[1]}|tojson(indent=1, separators=('; ', ' = ')) }} {{ 'é'|tojson(true) }}
{{ {1:0,'a':0}|tojson(sort_keys=true) }}
{{ undefined_name|tojson }}
{{ [undefined_name]|tojson }}
{{ range(3)|tojson }}
{{ d.items()|tojson }}
{{ {(1,2): 3}|tojson }}
{{ 'x'|tojson(bad=1) }}
{{ '<b>'|e }} {{ '<b>'|escape|escape }} {{ '<b>'|safe|e }} {{ '<b>'|e ~ '<i>' }} {{ ('<b>'|e) + '<i>' }} {{ '<i>' + ('<b>'|safe) }} {{ ('<b>'|e)|forceescape }} {{ ('<%s>'|safe) % '<' }} {{ ('x'|safe).join(['<', 'a'|safe]) }} {{ 5|e }} {{ '<'|e is escaped }} {{ ('a<'|safe)|upper is escaped }}
{{ ['<'|e] }}
{{ {'a b': 'c&d', 'e': 1}|urlencode }} {{ 'a b/c?é'|urlencode }} {{ [('x', 'y z')]|urlencode }}
{{ {'class': 'a', 'x': none, 'y': '<'}|xmlattr }}|{{ {'a': 1}|xmlattr(false) }}
{{ {'a b': 1}|xmlattr }}
{{ 1|filesizeformat }} {{ 999|filesizeformat }} {{ 1000|filesizeformat }} {{ 123456789|filesizeformat }} {{ 123456789|filesizeformat(true) }} {{ '1500'|filesizeformat }}
{{ '%s-%s'|format(1, 2) }} {{ '%(a)s'|format(a=3) }}
{{ '%s'|format(1, a=2) }}
{{ d|attr('keys') is defined }} {{ d|attr('b') is defined }} {{ users|attr('x') }}|
{{ 'x'|nofilter }}
{% if false %}{{ 'x'|nofilter }}{% endif %}ok
{% if true %}{{ 'x'|nofilter }}{% endif %}
{{ 'x' if true else ('y'|nofilter) }}
{% if false %}{% for i in [1] %}{{ i|nofilter }}{% endfor %}{% endif %}
{% macro m() %}{{ 1|nofilter }}{% endmacro %}ok
{{ 1 is nosuchtest }}
{% if false %}{{ 1 is nosuchtest }}{% endif %}ok
{{ 1 is odd }} {{ 2 is not odd }} {{ 3 is divisibleby 3 }} {{ 3 is divisibleby(2) }} {{ 'a' is in 'abc' }} {{ 1 is in [2] }} {{ 2 is eq 2 }} {{ 2 is lt 3 and 3 is gt 2 }} {{ not 1 is none }} {{ 1 is sameas 1 }} {{ none is sameas none }} {{ [] is sameas [] }}
{{ 'x' is string }} {{ 5 is number }} {{ 5 is integer }} {{ 5.0 is float }} {{ true is number }} {{ true is boolean }} {{ true is integer }} {{ d is mapping }} {{ [] is sequence }} {{ 'a' is sequence }} {{ d is sequence }} {{ d.items() is sequence }} {{ 5 is iterable }} {{ 'a' is iterable }} {{ range is callable }} {{ 'ABC' is upper }} {{ 'abc' is lower }} {{ '1' is lower }} {{ 'upper' is filter }} {{ 'x' is filter }} {{ 'odd' is test }}
{{ 'x' is odd }}
{{ 1 is divisibleby 0 }}
{{ x is defined is true }}
{{ undefined_name is none }} {{ undefined_name == undefined_name2 }} {{ undefined_name == none }} {{ undefined_name|length }} {{ undefined_name is iterable }} {{ undefined_name is sequence }} {{ undefined_name is callable }}
{% for m in messages %}{{ loop.index }}/{{ loop.length }} {{ loop.first }} {{ loop.last }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.index0 }} {{ m.role }} {{ loop.previtem.role if loop.previtem }} {{ loop.nextitem.role if loop.nextitem is defined }} {{ loop.cycle('a', 'b') }} {{ loop.depth }}|{% endfor %}
{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }} {{ loop.last }};{% else %}none{% endfor %}
{% for x in [1,2,3,4] if x is even %}{{ x }}{{ ',' if not loop.last }}{% endfor %}
{% for x in [] %}a{% else %}empty{% endfor %}{% for x in undefined_name %}a{% else %}undef{% endfor %}
{% for x in none %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}-{{ b }};{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for a, b in [(1,)] %}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }} {% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'añ😀' %}[{{ c }}]{% endfor %}
{% for x in range(10) %}{% if x == 3 %}{% continue %}{% endif %}{% if x == 6 %}{% break %}{% endif %}{{ x }}{% else %}else{% endfor %}
{% for x in [1,2] %}{% continue %}{% else %}all cut{% endfor %}
{% for x in [1,2] %}{% break %}{% else %}cut{% endfor %}
{% for x in [1,2] %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% else %}no{% endfor %}
{% break %}
{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for x in [1,2,3] %}{% filter upper %}a{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfilter %}{% endfor %}
{% for n in tree recursive %}{{ n.v }}@{{ loop.depth }}{% if n.kids %}({{ loop(n.kids) }}){% endif %}{% endfor %}
{% for n in tree if n.v != 3 recursive %}{{ n.v }}{{ loop.index0 }}{{ loop(n.kids) }}{% else %}-{% endfor %}
{% for x in [1] %}{{ loop([2]) }}{% endfor %}
{% for x in [1,1,2] %}{{ loop.changed(x) }} {% endfor %}{{ loop }}
{% for x in [1,2] %}{% for y in [3,4] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% for x in [1,2] %}{% set outer = loop %}{% for y in [3,4] %}{{ outer.index }}{{ loop.index }}{% endfor %}{% endfor %}
{% for x in [1,2]|map('string') %}{{ loop.length }}{{ loop.last }}{{ x }}{% endfor %}
{% for loop in [1] %}{% endfor %}
{% for x in [1] %}{% set loop = 1 %}{% endfor %}
{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = i + 10 %}{{ x }}{% endfor %}{{ x }}
{% for i in [1,2] %}{{ x is defined }}{% set x = i %}{{ x }}{% endfor %}{{ x is defined }}
{% for i in [1,2] %}{% if i == 1 %}{% set y = 'first' %}{% endif %}{{ y }};{% endfor %}
{% if true %}{% set z = 1 %}{% endif %}{{ z }}{% if false %}{% set w = 1 %}{% endif %}{{ w is defined }}
{% set number = number + 1 %}{{ number }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = 'xy' %}{{ c }}{{ d2 }}{% set e = 1, 2 %}{{ e }}
{% set a, b = 1 %}
{% set a.b = 1 %}
{% set ns = namespace(x=1, y=[]) %}{% for i in range(3) %}{% set ns.x = ns.x + i %}{% set ns.z = i %}{% endfor %}{{ ns.x }}{{ ns.z }}{{ ns.nope is defined }}{{ ns }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}{% set ns.a, ns.b = ns.b, ns.a %}{{ ns.a }}{{ ns.b }}
{% set ns = namespace() %}{% set ns.__x = 1 %}
{% set ns = namespace(_x=1) %}
{% set ns = namespace() %}{% set ns._y = 1 %}
{% set ns = {} %}{% set ns.x = 1 %}
{% set undefinedns.x = 1 %}
{% set x %}a{{ 1 }}b{% endset %}{{ x }}{% set y | upper | replace('A', '-') %}abc{% endset %}{{ y }}
{% set ns = namespace() %}{% set ns.t %}block{% endset %}{{ ns.t }}
{% set true = 1 %}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}
{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.caller }}{{ m }}
{% macro outer() %}[{{ caller('x') }}]{% endmacro %}{% call(v) outer() %}body {{ v }}{% endcall %}
{% macro outer() %}{{ caller is defined }}{% endmacro %}{{ outer() }}{% call outer() %}x{% endcall %}
{% macro outer() %}x{% endmacro %}{% call outer() %}y{% endcall %}
{% call 5 %}{% endcall %}
{% macro fact(n) %}{{ n * fact(n - 1)|int if n > 1 else 1 }}{% endmacro %}{{ fact(10) }}
{% macro a() %}{{ v }}{% endmacro %}{% set v = 1 %}{{ a() }}{% set v = 2 %}{{ a() }}
{% macro a() %}{{ number }}{% endmacro %}{{ a() }}{% set number = 7 %}{{ a() }}
{% macro a() %}{% set v = 5 %}{{ v }}{% endmacro %}{% set v = 1 %}{{ a() }}{{ v }}
{% for i in [1,2] %}{% macro a() %}{{ i }}{% endmacro %}{{ a() }}{% endfor %}
{% macro a(x) %}{% macro b(y) %}{{ x }}{{ y }}{% endmacro %}{{ b(2) }}{% endmacro %}{{ a(1) }}
{% macro a(x) %}{% set ns.f = b %}{% endmacro %}{% macro b() %}b{% endmacro %}{% set ns = namespace() %}{{ a(1) }}{{ ns.f() }}
{% macro a() %}  x  {% endmacro %}{{ a()|trim }}{{ a() == '  x  ' }}{{ a() is string }}
{% macro m(a, a) %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}
{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}
{% filter upper %}abc{{ 1 }}{% set z = 2 %}{% endfilter %}{{ z is defined }}
{% filter replace('a', 'b')|upper %}aXa{% endfilter %}
{% block b %}in {{ number }}{% set v = 1 %}{% endblock %}{{ v is defined }}
{% set v = 3 %}{% block b %}{{ v }}{% endblock %}
{% for i in [1,2] %}{% block b scoped %}{{ i }}{% endblock %}{% endfor %}
{% for i in [1] %}{% block b %}[{{ i }}]{% endblock %}{% endfor %}
{% block b %}{% endblock %}{% block b %}{% endblock %}
{% generation %}a{{ number }}{% set g = 1 %}{% endgeneration %}{{ g is defined }}
{% for i in [1] %}{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% print 1, 'a' %}
{% raw %}{{ x }}{% if %}{# c #}{% endraw %}
{%- raw -%}  {{ x }}  {%- endraw -%}  y
{# comment {{ x }} {% if %} #}a{#- strip -#} b
{% if number > 40 and messages|length == 4 or false %}yes{% elif 1 %}no{% else %}x{% endif %}
{% if 0 %}a{% elif '' %}b{% elif [] %}c{% elif none %}d{% elif 0.0 %}e{% elif {} %}f{% else %}g{% endif %}
{% if x is not defined %}a{% endif %}{% if not x %}b{% endif %}
{% include 'x' %}
{% if false %}{% include 'x' %}{% endif %}ok
{% import 'x' as y %}
{% extends 'x' %}
{% do 1 %}
{% unknown %}
{% if %}{% endif %}
{% if true %}
{% endif %}
{% for %}{% endfor %}
{% for x in [1] %}{% endif %}
{{ }}
{{ 1 2 }}
{{ (1 }}
{{ [1 }}
{{ 'abc }}
{{ a. }}
{{ a.'b' }}
{{ x|}}
{{ x| 5 }}
{{ @ }}
{{ a $ b }}
{% set %}
{% set x = %}
{{ {'a' 1} }}
{{ f(a=1, 2) }}
{{ f(**{}, a=1) }}
{{ f(a=1, a=2) }}
{{ range(*[1, 5])|list }} {{ dict(**{'a': 1}) }} {{ dict(b=2, **{'a': 1}) }}
{{ range(*5) }}
{{ dict(**[1]) }}
{{ raise_exception('No! ' ~ number) }}
{% if false %}{{ raise_exception('x') }}{% endif %}fine
{{ joiner(', ') is callable }}{% set j = joiner('|') %}{{ j() }}{{ j() }}{{ j() }}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}
{{ 'abc'.startswith('a') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('c', 0, 2) }} {{ 'abc'.find('c') }} {{ 'abc'.find('z') }} {{ '日本日'.find('日', 1) }} {{ '日本日'.rfind('日') }} {{ 'aXbXc'.split('X') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b  c '.rsplit(none, 1) }} {{ 'a\nb\r\nc\x0bd\u2028e'.splitlines() }} {{ 'a\nb\n'.splitlines(true) }} {{ 'a-b'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'ab'.partition('-') }}
{{ 'x'.join([1]) }}
{{ 'x'.join('abc') }} {{ 'abc'.replace('b', 'X') }} {{ 'aaa'.replace('a', 'b', 1) }} {{ 'aXa'.strip('a') }} {{ 'xax'.lstrip('x') }} {{ 'xax'.rstrip('x') }} {{ 'abc'.title() }} {{ "they're bill's"|title }} {{ "they're bill's".title() }} {{ 'abc'.center(8, '*') }} {{ 'abc'.ljust(5) }}| {{ 'abc'.rjust(5, '.') }} {{ '-42'.zfill(6) }} {{ 'aBc'.swapcase() }} {{ 'a\tb'.expandtabs(4) }} {{ 'abc'.count('') }} {{ 'aaaa'.count('aa') }} {{ 'abc'.index('b') }} {{ 'TestCase'.removeprefix('Test') }} {{ 'x.py'.removesuffix('.py') }} {{ 'ß'.casefold() }} {{ 'abc'.isalpha() }} {{ '12'.isdigit() }} {{ '²'.isdigit() }} {{ '½'.isnumeric() }} {{ 'a b'.isalnum() }} {{ ' '.isspace() }} {{ 'Abc Def'.istitle() }} {{ 'abc'.isidentifier() }}
{{ 'abc'.index('z') }}
{{ 'abc'.split('') }}
{{ 'abc'.nosuch() }}
{{ 'abc'.strip(5) }}
{{ 'abc'.startswith(5) }}
{{ (5).real }} {{ 5.5.real }} {{ true.real }} {{ (5).bit_length() }} {{ (2.0).is_integer() }}
{{ [1,2,1].count(1) }} {{ [1,2,1].index(2) }} {{ (1,2).index(2) }} {{ [1].copy() }} {{ {'a': 1}.copy() }}
{{ [1].index(5) }}
{{ 'a' if 1 else 'b' ~ 'c' }} {{ 1 if 0 else 2 + 3 }} {{ (1 if 1 else 2) + 3 }}
{{ 1 + 2 ~ 3 * 4 }} {{ 2 * 3 ~ 1 }} {{ -1 ~ -2 }} {{ - 3 | abs }} {{ -3|abs }} {{ (-3)|abs }}
{{ not 1 == 2 }} {{ not 1 in [2] }} {{ 1 not in [2] }} {{ 'a' not in 'b' ~ 'a' }}
{{ messages[0]['role'] == 'system' and 'x' or 'y' }}
{{ loop }}|{{ self }}|{{ super is defined }}
{{ 1 if x is defined else 2 }} {{ x is defined and x or 3 }} {{ 1 is defined and 2 is not none }}
{{ [1, 2,] }} {{ (1, 2,) }} {{ {'a': 1,} }} {{ range(1, 3,)|list }}
{{ {} | tojson }}{{ {'a': {'b': {}}} | tojson }}
{% set x = [1,2,3] %}{% set x = x + [4] %}{{ x }}{{ x[-2:] }}
{{ messages[1:]|map(attribute='role')|list }} {{ messages[::-1][0].role }} {{ messages[:1] + messages[2:3] }}
{% for m in messages[1:] %}{{ m.role }}{% endfor %}
{{ 'abc' is in ['abc'] }} {{ none is in [none] }} {{ 'k' in d }} {{ 'b' in d.keys() }} {{ 2 in d.values() }} {{ ('b', 2) in d.items() }}
{{ d.items() > d.items() }} {{ {'a': 1}.keys() < d.keys() }} {{ d.keys() >= d.keys() }} {{ d.keys() == {'C': 0, 'items': 0, 'b': 0, 'a': 0}.keys() }} {{ d.values() == d.values() }}
{{ d.values() < d.values() }}
{{ d.keys() < ['a'] }}
{{ '1' == 1 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ [1] == (1,) }} {{ {'a':1,'b':2} == {'b':2,'a':1} }} {{ 'é' == 'e\u0301' }}
{{ 1.5 is odd }} {{ 3.0 is odd }}
""".strip("\n").split("\n")

# What stands around a tag: white space control in all its combinations.
TAGS = ["{%S if true E%}", "{%S endif E%}", "{{S 'v' E}}", "{#S c E#}",
        "{%S set q = 1 E%}", "{%S raw E%}r{%S endraw E%}"]
AROUND = ["", " ", "\n", "  \n", "\n  ", "a", "a  ", " a\n", "\n\n", "\t"]


def whitespace_templates():
    for tag, before, after in itertools.product(TAGS, AROUND, AROUND):
        for start, end in (("", ""), ("-", ""), ("", "-"), ("-", "-"),
                           ("+", ""), ("", "+")):
            if "{{" in tag and end == "+":
                continue
            text = tag.replace("S", start).replace("E", end)
            if "endif" in tag:
                text = "{% if true %}" + before + text
            elif "if true" in tag:
                text = before + text + after + "{% endif %}"
            else:
                text = before + text
            yield text + after + "|\n"


VALUES = [
    "0", "1", "-7", "3.5", "-0.0", "1e20", "1e-7", "true", "false", "none",
    "undef", "''", "'abc'", "'Hello World'", "'  pad  '", "'it\\'s \"q\"'",
    "'ÄÖü ß é'", "'日本語'", "'😀x'", "'a\\nb\\r\\nc'", "'12'", "'-3.5'",
    "[]", "[1, 2, 3]", "['b', 'A', 'c']", "[[1, 2], [3]]", "(1,)", "()",
    "{}", "{'a': 1, 'b': 'x'}", "{'b': 2, 'A': 1}", "range(3)",
    "[none, true, 1.5]", "'a,b,,c'", "'<b>&'", "d.items()", "users",
]

FILTERS = [
    "abs", "attr('x')", "batch(2)|list", "batch(2, 0)|list", "capitalize",
    "center(9)", "count", "d('z')", "default('z', true)", "dictsort",
    "dictsort(by='value')", "e", "filesizeformat", "first", "float",
    "float(2.0)", "forceescape", "format", "format(1)", "groupby('name')",
    "groupby(0)", "indent", "indent(1, true, true)", "int", "int(5)",
    "int(base=16)", "join", "join('-')", "join('-', 'name')", "last",
    "length", "list", "lower", "pprint", "striptags", "wordwrap(4)",
    "wordwrap(3, false)", "wordwrap(5, wrapstring='|')",
    "wordwrap(4, break_on_hyphens=false)", "items|list", "map('string')|list",
    "map('int')|join(',')", "map(attribute='name')|list", "map('first')|list",
    "min", "max", "max(attribute='age')", "reject|list", "reject('odd')|list",
    "rejectattr('age', 'odd')|list|length", "replace('a', 'X')", "reverse",
    "reverse|list", "round", "round(1, 'ceil')", "safe", "select|list",
    "select('string')|list", "selectattr('on')|list|length", "slice(2)|list",
    "sort", "sort(true)", "sort(attribute='age')|length", "string", "sum",
    "sum(attribute='age')", "title", "tojson", "tojson(true)",
    "tojson(indent=1)", "tojson(separators=(',', ':'))", "trim", "trim('a')",
    "truncate(5)", "truncate(5, true, '', 0)", "unique|list", "upper",
    "urlencode", "wordcount", "xmlattr",
]

TESTS = [
    "odd", "even", "divisibleby(3)", "defined", "undefined", "none",
    "boolean", "false", "true", "integer", "float", "lower", "upper",
    "string", "mapping", "number", "sequence", "sameas(1)", "iterable",
    "callable", "escaped", "in('abc')", "in([1, 'abc'])", "eq('abc')",
    "ne(1)", "gt(0)", "ge(0)", "lt(0)", "le('b')", "filter", "test",
]

OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">",
             ">=", "in", "not in", "~", "and", "or"]

STRINGS = ["''", "'abc'", "'Hello World'", "'  pad\\t'", "'ÄÖü ß ŉ ΣΑΣ'",
           "'日本語 日本'", "'a,b,,c'", "'line\\none\\r\\ntwo\\x85x'", "'12'",
           "'٣²½'", "'ǅz ﬁ İI'"]
METHODS = [
    "strip()", "strip('a b')", "lstrip()", "lstrip('日')", "rstrip()",
    "rstrip('c本')", "split()", "split(',')", "split(' ', 1)", "split(none, 1)",
    "split('日')", "rsplit()", "rsplit(',', 1)", "rsplit(none, 1)",
    "splitlines()", "splitlines(true)", "startswith('a')", "startswith('')",
    "startswith('b', 1)", "endswith('c')", "endswith(('x', 'c'))",
    "endswith('', 9)", "replace('b', '')", "replace('', '.')",
    "replace('日', '月', 1)", "join(['x', 'y'])", "join('')", "upper()",
    "lower()", "title()", "capitalize()", "casefold()", "swapcase()",
    "find('b')", "find('', 2)", "find('本', -3)", "rfind('本')", "rfind('')",
    "index('b')", "count('b')", "count('')", "count('', 1, 2)",
    "count('日本')", "format(1)", "removeprefix('a')", "removesuffix('c')",
    "partition(',')", "rpartition('b')", "ljust(6)", "rjust(6, '.')",
    "center(7)", "center(8, '日')", "zfill(6)", "expandtabs()",
    "expandtabs(3)", "isalnum()", "isalpha()", "isdecimal()", "isdigit()",
    "isnumeric()", "isspace()", "islower()", "isupper()", "istitle()",
    "isidentifier()", "isascii()", "isprintable()", "nothing()",
    "format_map({'a': 1})",
]

SLICES = ["0", "1", "-1", "2", "-2", "5", "-9", "", "none"]

FORMATS = [
    "%s", "%5s", "%-5s|", "%.2s", "%d", "%5d", "%-5d|", "%05d", "%+d", "% d",
    "%x", "%#x", "%X", "%o", "%e", "%.3e", "%f", "%.0f", "%10.2f", "%-9.1f|",
    "%g", "%G", "%r", "%a", "%c", "%i", "%%", "%.3d", "%z",
    "{}", "{:5}|", "{:<5}|", "{:>5}", "{:^6}|", "{:*^6}", "{:05}", "{:d}",
    "{:5d}", "{:+}", "{: }", "{:x}", "{:#x}", "{:b}", "{:o}", "{:c}", "{:,}",
    "{:_}", "{:e}", "{:.2f}", "{:8.3f}", "{:.0f}", "{:g}", "{:.3g}", "{:%}",
    "{:010,}", "{:01,}", "{:+09,}", "{:012_}", "{:012,.2f}", "{:#012_x}",
    "{:016,.1e}", "{:0=7,}", "{:0>10,}", "{:x=10,}", "{:010,%}", "{:09,g}",
    "{:.1%}", "{!r}", "{!s:5}|", "{:s}", "{:.2}", "{:=6}", "{:日>5}",
]
FORMATTED = ["0", "1", "-42", "255", "1234567", "3.14159", "-0.5", "1e10",
             "100.0", "'abc'", "'é'", "true", "none", "[1]", "undef"]


def table_templates():
    for value, name in itertools.product(VALUES, FILTERS):
        yield "{{ (%s)|%s }}" % (value, name)
    for value, name in itertools.product(VALUES, TESTS):
        yield "{{ (%s) is %s }}" % (value, name)
    for value in VALUES:
        yield "{{ {'k' * 77: (%s)}|pprint }}" % value
    for value, name in itertools.product(STRINGS, METHODS):
        yield "{{ (%s).%s }}" % (value, name)
    for start, stop, step in itertools.product(SLICES, SLICES, SLICES):
        for value in ("'añ日😀e'", "'abcdef'", "[1, 2, 3, 4]", "range(5)"):
            yield "{{ %s[%s:%s:%s] }}" % (value, start, stop, step)
    for form, value in itertools.product(FORMATS, FORMATTED + ["'<'|e", "'<'"]):
        if form[0] == "{":
            yield "{{ ('<i>%s'|safe).format(%s) }}" % (form, value)
        yield ("{{ '%s' %% (%s,) }}" if "%" == form[0]
               else "{{ '%s'.format(%s) }}") % (form, value)


def operator_templates():
    for left, op, right in itertools.product(VALUES, OPERATORS, VALUES):
        yield "{{ (%s) %s (%s) }}" % (left, op, right)


class ProgramMaker:
    """Random templates of statements, to compare what variables hold where."""

    NAMES = ["a", "b", "c", "number", "flag"]

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.blocks = 0

    def expression(self, depth=0):
        pick = self.random.random()
        if depth > 2 or pick < 0.35:
            return self.random.choice(
                self.NAMES + ["ns.x", "ns.y", "'s'", "1", "none", "[1, 2]"])
        if pick < 0.5:
            return "%s ~ %s" % (self.expression(depth + 1),
                                self.expression(depth + 1))
        if pick < 0.6:
            return "(%s is defined)" % self.random.choice(self.NAMES)
        if pick < 0.7:
            return "(%s if %s else %s)" % tuple(
                self.expression(depth + 1) for _ in range(3))
        if pick < 0.8:
            return "(%s)|default('u', %s)" % (
                self.expression(depth + 1),
                self.random.choice(["true", "false"]))
        if pick < 0.9:
            return "m%d(%s)" % (self.random.randrange(2),
                                self.expression(depth + 1))
        return "(%s == %s)" % (self.expression(depth + 1),
                               self.expression(depth + 1))

    def body(self, depth, in_loop):
        count = self.random.randrange(1, 4 if depth else 7)
        return "".join(self.statement(depth, in_loop) for _ in range(count))

    def statement(self, depth, in_loop):
        name = self.random.choice(self.NAMES)
        kinds = ["print"] * 4 + ["set"] * 4 + ["member"]
        if depth < 3:
            kinds += ["if"] * 2 + ["for"] * 3 + [
                "with", "block_set", "filter", "macro", "call", "generation",
                "block"]
        if in_loop:
            kinds += ["loop", "jump"]
        kind = self.random.choice(kinds)
        inner = lambda loop=in_loop: self.body(depth + 1, loop)
        if kind == "print":
            return "{{ %s }};" % self.expression()
        if kind == "set":
            return "{%% set %s = %s %%}" % (name, self.expression())
        if kind == "member":
            return "{%% set ns.%s = %s %%}" % (
                self.random.choice("xy"), self.expression())
        if kind == "if":
            tail = self.random.choice(
                ["", "{% else %}" + inner(),
                 "{%% elif %s %%}%s{%% else %%}%s" % (
                     self.expression(), inner(), inner())])
            return "{%% if %s %%}%s%s{%% endif %%}" % (
                self.expression(), inner(), tail)
        if kind == "for":
            test = self.random.choice(
                ["", "", " if %s != 1" % name, " if %s" % self.expression()])
            tail = self.random.choice(["", "{% else %}e" + inner()])
            items = self.random.choice(
                ["[1, 2]", "range(3)", "[]", "'xy'", "[%s]" % self.expression()])
            return "{%% for %s in %s%s %%}%s%s{%% endfor %%}" % (
                name, items, test, inner(True), tail)
        if kind == "with":
            return "{%% with %s = %s %%}%s{%% endwith %%}" % (
                name, self.expression(), inner())
        if kind == "block_set":
            return "{%% set %s %%}%s{%% endset %%}" % (name, inner())
        if kind == "filter":
            return "{%% filter upper %%}%s{%% endfilter %%}" % inner()
        if kind == "macro":
            return "{%% macro m%d(%s, z=%s) %%}<%s>{%% endmacro %%}" % (
                self.random.randrange(2), name, self.expression(),
                inner(False))
        if kind == "call":
            return "{%% call m%d(%s) %%}%s{%% endcall %%}" % (
                self.random.randrange(2), self.expression(), inner(False))
        if kind == "generation":
            return "{%% generation %%}%s{%% endgeneration %%}" % inner(False)
        if kind == "block":
            self.blocks += 1
            return "{%% block k%d%s %%}%s{%% endblock %%}" % (
                self.blocks, self.random.choice(["", " scoped"]), inner(False))
        if kind == "loop":
            return "{{ loop.%s }};" % self.random.choice(
                ["index", "last", "length", "first", "revindex", "nextitem",
                 "previtem"])
        return "{%% if %s %%}{%% %s %%}{%% endif %%}" % (
            self.expression(), self.random.choice(["break", "continue"]))

    def program(self):
        self.blocks = 0
        macros = ("{% macro m0(p='d') %}0{{ p }}{{ caller() if caller }}"
                  "{% endmacro %}{% macro m1(a) %}1{{ a }}{{ b }}"
                  "{% endmacro %}{% set ns = namespace(x=0) %}")
        return macros + self.body(0, False)


def program_templates(count, seed=1):
    maker = ProgramMaker(seed)
    return [maker.program() for _ in range(count)]


class LayoutMaker:
    """Texts and values for the filters that lay out or strip."""

    WORDS = ["a", "b", "é", "-", "--", "---", " ", "  ", "\\t", "Ab", "1", "_",
             ".", ",", "!", "&", "\u00a0", "日本", "x-y", "foo-bar", "a-b-c",
             "\\'", "\\n", "\\\\"]
    TAGS = ["<b>", "</b>", "<!--", "-->", "<!-- x -->", "<", ">", "&amp;",
            "&lt", "&nbsp;", "&copy", "&#65;", "&#x41", "&#0;", "&#128;",
            "&#xD800;", "&#1;", "&#xFFFE;", "&notit;", "&zzz", "&amp;lt;",
            " ", "\\n", "a", "é", "&hellip;", "&", "&;", "&ampere", "&#",
            "&#x", "AT&T", "&#99999999999;"]
    OPTIONS = ["", ", false", ", break_on_hyphens=false", ", false, '#', false"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, parts, most):
        return "".join(self.random.choices(
            parts, k=self.random.randrange(1, most)))

    def value(self, depth=0):
        pick = self.random.random()
        count = self.random.randrange(5)
        if depth > 3 or pick < 0.4:
            return self.random.choice([
                "1", "none", "true", "2.5", "'é\\n'", "'%s'" % (
                    "word " * self.random.randrange(30)),
                "'%s'" % ("x" * self.random.randrange(90))])
        if pick < 0.65:
            return "[%s]" % ", ".join(self.value(depth + 1)
                                      for _ in range(count))
        if pick < 0.75:
            return "(%s)" % "".join(self.value(depth + 1) + ", "
                                    for _ in range(count))
        return "{%s}" % ", ".join("'%s': %s" % (
            self.random.choice("abcdefgh") * self.random.randrange(1, 20),
            self.value(depth + 1)) for _ in range(count))

    def templates(self, count):
        for _ in range(count):
            yield "{{ '%s'|wordwrap(%d%s) }}" % (
                self.text(self.WORDS, 25),
                self.random.choice([1, 2, 3, 5, 8, 12]),
                self.random.choice(self.OPTIONS))
            yield "{{ '%s'|striptags }}" % self.text(self.TAGS, 8)
            yield "{{ (%s)|pprint }}" % self.value()
