#!/usr/bin/env python3
"""Writes what Python's Jinja2 makes of small templates, as the oracle of CasesTest.cpp.

Usage: MakeCases.py > ../../data/jinja/cases.json      (needs jinja2 3.1)

The environment is that of transformers' apply_chat_template.
"""

import datetime
import json

import jinja2
from jinja2.sandbox import SandboxedEnvironment

CONTEXT = {
    "messages": [
        {"role": "user", "content": "Hi <b> & 'you'"},
        {"role": "assistant", "content": "Größe\n two \n", "tool_calls": [{"name": "f", "n": 2}]},
        {"role": "user", "content": "bye", "meta": None},
    ],
    "nested": {"a": {"b": [10, 20, {"c": "deep"}]}, "items": "shadowed", "x": 1, "y": 2},
    "numbers": [3, 1, 2, 3.5, -1],
    "words": ["b", "A", "c", "a", "B"],
    "empty": [],
    "text": "  Hello, World!  ",
    "uni": "naïve Straße ĳ ΑΒΓ 漢字 🎉",
    "big": 9007199254740993,
    "ratio": 0.1,
    "yes": True,
    "no": False,
    "nothing": None,
    "bos_token": "<s>",
}

EXPRESSIONS = """
1 + 2 * 3 - 4
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
-7.5 // 2
-7.5 % 2
7.5 % -2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
7 / 2
1 / 0
1 // 0
1.0 % 0
9223372036854775807 + 0
1e3
1.5e-7
1e16
1e15
123456789012345678.0
0.1 + 0.2
1_000 + 1
0x1F + 0o17 + 0b11
1.0
100000.0
-0.0
3.0 * 2
true + 1
none
true and 0
0 or 'x'
'' or none
not 1
not not ''
1 < 2 < 3
1 < 3 < 2
1 == 1.0
1 == true
'a' == "a"
'a' < 'b'
[1, 2] < [1, 3]
(1, 2) == [1, 2]
[1, 2] == [1, 2.0]
'1' == 1
1 < 'a'
none < 1
none == undefinedvar
undefinedvar == undefinedvar
1 != 2
'ell' in 'hello'
1 in 'hello'
'x' not in ['x', 'y']
'x' in nested
1 in undefinedvar
'a' in none
2 in (1, 2)
'a' ~ 1 ~ none ~ 2.0 ~ true
'a' + 'b' * 3
[1] * 3 + [2]
(1,) + (2, 3)
[1] + (2,)
'a' + 1
1 + 'a'
'a' + none
'a' + undefinedvar
undefinedvar + 'a'
undefinedvar ~ 'a'
-undefinedvar
- 'a'
+true
undefinedvar
undefinedvar.x
undefinedvar['x']
undefinedvar()
nested.missing
nested.missing.x
nested['missing'] is defined
nested.a.b[2].c
nested['a']['b'][-1]['c']
nested.a.b.0
nested.a.b[5]
nested.a.b['x']
nested['items']
nested.items is callable
nested.x.y
nested[[1]]
{1: 'a', 1.0: 'b', true: 'c'}
{'a': 1, 'b': [1, (2,), {}], 'c': none}
{[1]: 2}
{(1, 2): 3}[(1, 2)]
{'a': 1}.a
{}
[]
()
(1,)
[1, 'two', 3.0, none, true]
['it\\'s', 'say "hi"', 'both \\' and "', 'tab\\t', 'nl\\n', 'é', '\\x07']
'a\\tb\\nc\\\\d\\'e\\"f\\qg'
'\\u00e9\\x41\\U0001F389\\101'
'a' 'b' "c"
1 if yes else 2
1 if no else 2
1 if no
(1 if no) is defined
1 if no else 2 if no else 3
'x' if yes and no or yes
text[2:7]
text[-5:]
text[::-1]
text[::2]
text[5:2]
text[10:2:-3]
text[0]
text[-1]
text[100]
text['0']
uni[6:12]
uni[::-1]
uni[-1]
uni | length
numbers[1:3]
numbers[::-1]
numbers[:-1]
numbers[::0]
numbers['a':]
nothing[1:]
undefinedvar[1:]
nested[1:]
messages[0].content
messages[-1]['content']
messages[0]['role'] == 'user'
messages | length
messages | map(attribute='content') | list
messages | map(attribute='tool_calls.0.name', default='-') | join(',')
messages | selectattr('role', 'equalto', 'user') | list | length
messages | selectattr('tool_calls') | map(attribute='role') | list
messages | selectattr('meta', 'none') | list | length
messages | selectattr('tool_calls', 'defined') | list | length
messages | rejectattr('role', 'eq', 'user') | map(attribute='content') | first
messages | rejectattr('tool_calls', 'undefined') | list | length
messages | selectattr('role', 'in', ['user', 'x']) | list | length
messages | selectattr('role', '==', 'user') | length
messages | selectattr('zzz') is iterable
(messages | selectattr('role', 'equalto', 'nobody')) and true
numbers | select('odd') | list
numbers | select('gt', 2) | list
numbers | reject('lessthan', 2) | list
[0, 1, '', 'a', none] | select | list
[0, 1, '', 'a', none] | reject | list
none | select | list
numbers | sort
numbers | sort(reverse=true)
words | sort
words | sort(case_sensitive=true)
words | sort(true)
words | unique | list
words | unique(true) | list
[1, 1.0, true, 2] | unique | list
[3, 'a'] | sort
messages | sort(attribute='role') | map(attribute='content') | list | length
messages | sort(attribute='role,content') | map(attribute='role') | list
numbers | min
numbers | max
words | min
words | max(case_sensitive=true)
empty | min
numbers | sum
messages | sum(attribute='content')
['a', 'b'] | sum(start='')
[[1], [2]] | sum(start=[])
numbers | first
numbers | last
empty | first
empty | last is defined
text | first
uni | last
numbers | map('string') | join('-')
words | map('upper') | list
words | map('replace', 'a', 'x') | join
words | map('nosuch') | list
numbers | reverse | list
'abc' | reverse
nested | list
'abc' | list
nothing | list
numbers | batch(2) | list
numbers | batch(2, 'x') | map('list') | list
numbers | slice(2) | list
numbers | slice(3, 'x') | list
messages | groupby('role') | map('first') | list
messages | groupby('role') | length
(messages | groupby('role'))[0].grouper
(messages | groupby('role') | last).list | length
nested | dictsort
{'b': 1, 'A': 2, 'c': 0} | dictsort
{'b': 1, 'A': 2, 'c': 0} | dictsort(true)
{'b': 1, 'A': 2, 'c': 0} | dictsort(false, 'value')
{'b': 1, 'A': 2, 'c': 0} | dictsort(by='value', reverse=true)
nested | items | list | length
undefinedvar | items | list
'a' | items | list
numbers | join
numbers | join(', ')
[['a', 1], none] | join(';')
messages | join('|', attribute='role')
undefinedvar | join('x')
undefinedvar | default('d')
nothing | default('d')
nothing | default('d', true)
'' | d('d', boolean=true)
undefinedvar | default
text | trim
'xxaxx' | trim('x')
text | upper
text | lower
'hello wORLD-foo (bar)' | title
'hELLO' | capitalize
uni | upper
uni | lower
uni | title
uni.title()
undefinedvar is callable
'a' % undefinedvar
none | map('upper') | list
['<' | e, '>']
uni | capitalize
none | upper
undefinedvar | upper
5 | string
none | string
text | replace('l', 'L')
text | replace('l', 'L', 1)
'aaa' | replace('', '-')
'aaa' | replace('', '-', 2)
5 | replace(5, 6)
text | length
undefinedvar | length
5 | length
text | wordcount
'a\\nb\\n\\nc' | indent
'a\\nb\\n\\nc\\n' | indent(2)
'a\\nb' | indent('> ', first=true)
'a\\n\\nb' | indent(2, blank=true)
'hello world foo bar' | truncate(11)
'hello world foo bar' | truncate(11, true)
'hello world foo bar' | truncate(11, false, '!', 0)
'short' | truncate(3)
'x' | center(5)
'x' | center(4)
'xy' | center(5)
'42' | int
' 42 ' | int
'4_2' | int
'42.7' | int
'x' | int
'x' | int(7)
'ff' | int(0, 16)
'0x1f' | int(0, 16)
'0b11' | int(0, 0)
42.9 | int
-42.9 | int
none | int
none | int(-1)
undefinedvar | int
true | int
'1e3' | int
'4.5' | float
'x' | float
'inf' | float
' 1_0.5 ' | float
none | float(2.5)
2.5 | round
3.5 | round
2.675 | round(2)
-2.5 | round
3 | round
1234 | round(-2)
1234.5 | round(-2)
2.1 | round(0, 'ceil')
2.9 | round(method='floor')
2.15 | round(1, 'ceil')
-5 | abs
5.5 | abs
'a' | abs
'<a & "b">' | escape
'<a>' | e ~ '<b>'
('<a>' | safe) + '<b>'
'<b>' + ('<a>' | safe)
('<a>' | safe) ~ '<b>'
'<a>' | safe is escaped
'%s is %d and %.2f' | format('x', 5, 2.345)
'%(a)s-%(b)05d' | format(a='x', b=42)
'%5s|%-5s|%05d|%+d|%x|%X|%o|%e|%g' % ('a', 'b', 42, 7, 255, 255, 8, 12345.678, 0.0001)
'%s' % 'one'
'%s %s' % 'one'
'%s' % ('a', 'b')
'100%%' % ()
'%r %s' % ('a', none)
'%d' % 3.9
'%d' % 'x'
'%s' % [[1, 2]]
'{} {}'.format(1, 'a')
'{0} {1} {0}'.format('a', 'b')
'{x} {y[0]} {z.a}'.format(x=1, y=[5], z={'a': 3})
'{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:+}|{:x}|{:*^7}'.format('a', 'b', 'c', 42, 3.14159, 1234567, 5, 255, 'm')
'{!r} {!s}'.format('a', 'b')
'{{}} {}'.format(1)
'{} {0}'.format(1)
'{}'.format()
'{'.format()
'{:d}'.format('a')
'{:.3}|{:10.4}|{:e}|{:%}'.format('abcdef', 3.14159265, 12345.678, 0.25)
'{}'.format(none) ~ '{}'.format(true) ~ '{}'.format([1])
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
'  a  b c '.split()
'  a  b  c '.split(none, 1)
'a,b,,c'.rsplit(',', 1)
'  a  b c '.rsplit(none, 1)
'a'.split('')
'abc'.split('x')
''.split(',')
''.split()
'a\\nb\\r\\nc\\n'.splitlines()
'a\\nb\\n'.splitlines(true)
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.rpartition('-')
' x '.strip()
' x '.lstrip()
' x '.rstrip()
'xxyxx'.strip('x')
'abcba'.strip('ab')
'héh'.strip('h')
'ééaé'.rstrip('é')
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.startswith('b', 1)
'abc'.endswith(('c', 'x'))
'abc'.endswith('')
'abc'.startswith(1)
'abcabc'.find('c')
'abcabc'.rfind('c')
'abc'.find('x')
'ééa'.find('a')
'abcabc'.find('c', 3)
'abcabc'.find('a', 1, 3)
'abcabc'.index('c')
'abc'.index('x')
'ababa'.count('aba')
'abc'.count('')
'aXbX'.replace('X', 'y', 1)
'aXbX'.replace('X', 'y', count=1) if false else 'skip'
', '.join(['a', 'b'])
', '.join([1])
'-'.join('abc')
'hello'.capitalize()
"they're here".title()
'ABC'.lower() ~ 'abc'.upper()
'5'.zfill(3) ~ '-5'.zfill(4)
'x'.ljust(3, '.') ~ 'x'.rjust(3) ~ 'x'.center(4, '*')
'12'.isdigit() ~ 'a1'.isalnum() ~ 'a'.isalpha() ~ ' '.isspace() ~ ''.isdigit()
'a'.islower() ~ 'A'.isupper() ~ '1'.islower() ~ 'aB'.islower()
'prefix-x'.removeprefix('prefix-') ~ 'x.txt'.removesuffix('.txt')
'²'.isdigit() ~ '²'.isdecimal() ~ '½'.isnumeric()
'abc'.nosuch()
nested.get('x')
nested.get('zz')
nested.get('zz', 'd')
nested.keys() | list
nested.values() | list | length
nested.items() | list | last
nested.keys() | length
nested.keys()[0]
'x' in nested.keys()
{'a': 1}.copy()
dict(a=1, b=2)
dict({'a': 1}, b=2)
dict([('a', 1), ['b', 2]])
[1, 2, 1].count(1)
[1, 2].index(2)
[1, 2].index(3)
(1, 2).index(2)
range(3) | list
range(1, 4) | list
range(10, 0, -3) | list
range(0) | list
range(1, 2, 0) | list
range(3) | length
range(1000000) | length
1 is number
1.5 is number and 1.5 is float and 1 is integer and true is not integer
true is number
true is boolean
'a' is string
none is none
nested is mapping
nested is iterable and 'a' is iterable and numbers is iterable and 5 is not iterable
nested is sequence and 'a' is sequence and numbers is sequence and 5 is not sequence
(numbers | map('string')) is sequence
undefinedvar is iterable
undefinedvar is sequence
undefinedvar is undefined
undefinedvar is defined
nested.x is defined
1 is odd and 2 is even and 9 is divisibleby 3
9 is divisibleby(4)
1 is eq 1 and 1 is ne 2 and 1 is lt 2 and 1 is le 1 and 2 is gt 1 and 2 is ge 2
1 is sameas 1
true is true and false is false and 1 is not true
'a' is in 'abc'
'a' is in ['b']
'abc' is lower and 'ABC' is upper
range is callable
5 is callable
none is not none
not none is none
1 is odd == true
'a' is string and 'b' is string
loop is defined
5 | nosuch
5 is nosuch
nosuch(5)
raise_exception('stop here')
raise_exception()
strftime_now('%Y-%m-%d %H:%M:%S %d %b %Y %A %j')
strftime_now('')
nested | tojson
messages | tojson
uni | tojson
uni | tojson(ensure_ascii=true)
uni | tojson(true)
nested | tojson(indent=2)
[[], {}, [1, [2]]] | tojson(indent=4)
{'b': 1, 'a': {'d': 1, 'c': 2}} | tojson(sort_keys=true)
[1, 2] | tojson(separators=(',', ':'))
{'a': [1, 2]} | tojson(separators=(',', ':'), indent=1)
{'a': 1} | tojson(indent='\\t')
[1.0, 1e20, 1e-7, 0.1, -0.0] | tojson
{1: 'a', none: 'b', true: 'c', 2.5: 'd'} | tojson
{(1, 2): 3} | tojson
undefinedvar | tojson
[undefinedvar] | tojson
(1, 2) | tojson
nested.keys() | tojson
'\\x00\\x1f\\x7f"\\\\/\\b\\f<>&\\'' | tojson
'😀' | tojson(ensure_ascii=true)
none | tojson ~ true | tojson
big
big + 1
big | tojson
ratio * 3
ratio | tojson
nested | attr('items') is callable
nested | attr('x')
(1)
((1, 2), 3)
{'a': 1,}
[1, 2,]
nested.a.b[0:2][1]
'a'.upper().lower().strip()
nested['a'].b | last | tojson
(numbers | sort)[0]
numbers | sort | first
-1 | abs
-(1) | abs
- 1 | string
1 + 1 | string
'a' ~ 1 + 2
'a' in 'abc' and 'b' in 'abc'
1 if 1 == 1 and not no else 0
messages[0].content | replace("'", '"')
messages[0].content|e
messages|map(attribute='role')|join
[1, 2] is eq [1, 2]
'a' if nested.zz else 'b'
nested.zz or 'fallback'
nested.zz is none
not nested.zz
nested.x == 1 and nested['y'] == 2
1.
.5
a b
1 +
(1
[1, 2
{'a'}
'unterminated
1 is
x |
nested.
nested.a.b[1
""".strip("\n").split("\n")

TEMPLATES = [
    "a\n",
    "a\n\n",
    "a\r\nb\rc",
    "",
    "\n",
    "  {% if yes %}\n  x\n  {% endif %}\n",
    "a {% if yes %} b {% endif %} c\n",
    "a\n  {%- if yes -%}  \n b \n {%- endif %}\n c",
    "a\n  {%+ if yes %}b{% endif +%}\n c",
    "  {{ 1 }}\n  {{- 2 -}}  \n3",
    "  {# c #}\n x {#- d -#} y\n",
    "a{#\nmulti\n#}b",
    "{% raw %}{{ x }} {% if %}{% endraw %}",
    "a\n  {% raw %}\n  {{ x }}\n  {% endraw %}\nb",
    "a  {%- raw -%}  x  {%- endraw -%}  b",
    "{%raw%}a{%endraw%}{% raw %}b",
    "{% if yes %}\n\n\nx{% endif %}",
    "{% for i in [1, 2] %}\n{{ i }}\n{% endfor %}\n",
    "\t{% set x = 1 %}\t\n{{ x }}",
    "x\n   {% set x = 1 %} {{ x }}",
    "{{ '}}' }}{{ \"%}\" }}{{ {'a': {'b': 1}} }}",
    "{{'a'}}{{-'b'-}}{{ 'c' }}",
    "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}"
    "{{ loop.last }}{{ loop.length }}{{ loop.depth }} {% endfor %}",
    "{% for m in messages %}{{ loop.previtem.role if loop.previtem }}>{{ m.role }}>"
    "{{ loop.nextitem.role if loop.nextitem is defined }};{% endfor %}",
    "{% for m in messages %}{{ loop.cycle('a', 'b') }}{{ loop.changed(m.role) }}{% endfor %}",
    "{% for x in [] %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in undefinedvar %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in none %}{{ x }}{% endfor %}",
    "{% for x in 5 %}{{ x }}{% endfor %}",
    "{% for x in numbers if x > 1 %}{{ loop.index }}:{{ x }} {% else %}none{% endfor %}",
    "{% for x in numbers if x > 100 %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in nested.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in nested | dictsort %}{{ k }};{% endfor %}",
    "{% for k in nested %}{{ k }};{% endfor %}",
    "{% for c in 'añb' %}{{ c }}-{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3)), (4, [5, 6])] %}{{ a }}{{ b }}{{ c }};{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for a, b in [(1,)] %}{{ a }}{% endfor %}",
    "{% for x in numbers %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in numbers %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1, 2] %}{% for y in [1, 2, 3] %}{% if y == 2 %}{% break %}{% endif %}{{ x }}{{ y }} "
    "{% endfor %}{% endfor %}",
    "{% for x in [1] %}{% break %}{% else %}no{% endfor %}",
    "{% for x in [1, 2] %}{% if x == 2 %}{% continue %}{% endif %}{% else %}no{% endfor %}",
    "{% for x in [1, 2] %}{% if x == 1 %}{% break %}{% endif %}{% else %}no{% endfor %}",
    "{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}no{% endfor %}",
    "{% for x in [1, 2] %}{% set y %}a{% if x == 2 %}{% break %}{% endif %}{% endset %}{{ y }}!{% endfor %}",
    "{% for x in [1, 2] %}{% filter upper %}a{% if x == 1 %}{% continue %}{% endif %}b{% endfilter %}"
    "{% endfor %}",
    "{% for x in [1] %}{% for y in [] %}{% else %}{% break %}{% endfor %}a{% endfor %}",
    "{% for x in [1] %}{% for y in [] recursive %}{% else %}{% break %}{% endfor %}{% endfor %}",
    "{% for x in [] %}{% else %}{% set y = 1 %}{% endfor %}{{ y is defined }}",
    "{% break %}",
    "{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for x in [[1, [2]], [3]] recursive %}{% if x is iterable %}[{{ loop(x) }}]{% else %}{{ x }}"
    "@{{ loop.depth }}{% endif %}{% endfor %}",
    "{% for x in [1] %}{{ loop([2]) }}{% endfor %}",
    "{% for i in range(3) %}{{ i }}{% endfor %}{{ i }}",
    "{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% for i in [1, 2] %}{{ x }}{% set x = i %}{% endfor %}{{ x is defined }}",
    "{% set ns = namespace(x=0) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{{ ns.missing is defined }}{% set ns.a = 1 %}{{ ns.a }}{{ ns['a'] }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}",
    "{% set d = {} %}{% set d.x = 1 %}",
    "{% set undefinedns.x = 1 %}",
    "{% if yes %}{% set x = 1 %}{% endif %}{{ x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [1, 2] %}{{ a }}{{ b }}",
    "{% set a, b = 'xyz' %}{{ a }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}a {{ 1 }} b{% endset %}[{{ x }}]",
    "{% set x | upper | trim %} abc {% endset %}[{{ x }}]",
    "{% set x %}{% set y = 1 %}{% endset %}{{ y is defined }}",
    "{% set none = 1 %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a }}{{ c is defined }}",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% if no %}1{% elif nothing %}2{% elif yes %}3{% else %}4{% endif %}",
    "{% if no %}1{% else %}4{% endif %}",
    "{% if '' or [] or {} or 0 or 0.0 or none %}1{% else %}2{% endif %}",
    "{% if 1, %}x{% endif %}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c=3) }}|{{ m(1, 5, 6) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}{{ m(none) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(a) %}{{ a }}{% if a > 0 %}{{ m(a - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
    "{% set g = 1 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}",
    "{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}",
    "{% macro m() %}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{{ x is defined }}",
    "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m(a, a) %}{% endmacro %}",
    "{% macro m() %} x {% endmacro %}[{{ m() | trim }}]{{ m() | length }}{{ m() is string }}",
    "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body{% endcall %}",
    "{% macro m(x) %}<{{ caller(x, 2) }}>{% endmacro %}{% call(a, b) m(1) %}{{ a }}{{ b }}{% endcall %}",
    "{% macro m() %}{{ 1 }}{% endmacro %}{% call m() %}body{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "{% call 5 %}{% endcall %}",
    "{% filter upper %}abc{{ 'def' }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}aaa{% endfilter %}",
    "{% filter nosuch %}x{% endfilter %}",
    "{% set f = 'abc'.upper %}{{ f() }}",
    "{% set l = [] %}{% set _ = l.append(1) %}{{ l.append(2) }}{{ l }}",
    "{% set l = [3, 1] %}{{ l.pop() }}{{ l.pop(0) }}{{ l }}",
    "{% set l = [] %}{{ l.pop() }}",
    "{% set l = [1] %}{{ l.extend([2, 3]) }}{{ l.insert(0, 0) }}{{ l.reverse() }}{{ l }}",
    "{% set d = {'a': 1} %}{{ d.update({'b': 2}) }}{{ d.update(c=3) }}{{ d }}{{ d.pop('a') }}{{ d }}",
    "{% set d = {} %}{{ d.setdefault('a', 5) }}{{ d.setdefault('a', 6) }}{{ d.pop('x', 1) }}{{ d.pop('x') }}",
    "{% set d = {} %}{{ d.update({'k': 'v'}) or '' }}{{ d.k }}",
    "{% set j = joiner(', ') %}{% for i in [1, 2, 3] %}{{ j() }}{{ i }}{% endfor %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
    "{% set g = numbers | map('string') %}{{ g | list | length }}{{ g | list | length }}",
    "{% set g = numbers | select('odd') %}{{ g | length }}",
    "{% set g = numbers | select('odd') %}{{ g[0] is defined }}",
    "{% if numbers | select('gt', 100) %}yes{% endif %}",
    "{{ messages[0]['content'] if messages and messages[0]['role'] == 'user' else 'none' }}",
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] | trim }}{% endfor %}",
    "{%- set loop_messages = messages[1:] -%}{% for m in loop_messages %}{{ m.role }}{% endfor %}",
    "{% for m in messages[::-1] %}{{ m.content[:2] }}{% endfor %}",
    "{{ [1, 2, 3][1:] | sum }}",
    "{% for m in messages %}{% if not loop.last and messages[loop.index0 + 1].role == 'user' %}!{% endif %}{% endfor %}",
    "{{ none ~ undefinedvar ~ [] ~ {} }}",
    "{{ 1 }}{{ 2 }}\n{{ 3 }}\n",
    "{% if yes %}{% endif %}{% for x in [1] %}{% endfor %}",
    "{{ caller }}",
    "{{ loop }}",
    "{% set loop = 5 %}{{ loop }}",
    "{% set messages = [] %}{{ messages | length }}",
    "{% for x in [1, 2] %}{% set outer = loop %}{% for y in [1] %}{{ outer.index }}{{ loop.index }}{% endfor %}{% endfor %}",
    "{% unknown %}",
    "{% endif %}",
    "{% if yes %}",
    "{% for x in y %}{% endif %}{% endfor %}",
    "{% if yes %}{% else %}{% elif no %}{% endif %}",
    "{{ 1",
    "{% if yes",
    "{# never closed",
    "{{ }}",
    "{% %}",
    "{{ 1 }} }} %} #} { % {x",
    "{{ (1, 2 }}",
    "{{ [1, 2) }}",
    "{{ f(1 2) }}",
    "{{ dict(a=1, a=2) }}",
    "{{ dict(*[[('a', 1)]], **{'b': 2}) }}",
    "{{ range(*[1, 3]) | list }}",
    "{{ 'a' 'b' }}{{ 'it''s' }}",
    "{{ 1 if }}",
    "{{ @ }}",
    "{{ a.b.c() }}",
    "{{ messages.0.role }}",
    "{% extends 'x' %}",
    "{% include 'x' %}",
    "{% import 'x' as y %}",
    "{% for in [1] %}{% endfor %}",
    "{% for x [1] %}{% endfor %}",
    "{% set 5 = 1 %}",
    "{% set x.y.z = 1 %}",
    "{% set x = %}",
    "{% macro %}{% endmacro %}",
    "{% if yes: %}a{% endif %}",
    "{% set x = yes if no else 'b' %}{{ x }}",
    "{% set x = [1, 2] | map('string') | join(' ') if yes %}{{ x }}",
    "{%- for x in range(2) -%}\n  {{- x -}}\n{%- endfor -%}\n!",
    "{{ bos_token }}{%- if messages[0]['role'] == 'system' %}s{%- else %}\n    n\n{%- endif %}",
    "{% generation %}x{% endgeneration %}",
    "{{- bos_token -}}\n\n{#- c -#}\n x",
    "{%if yes%}a{%endif%}{%-if yes-%} b {%-endif-%}",
    "line1\n{% if yes %}  \nline2{% endif %}\nline3",
    "{{ 'a\nb' }}",
    "{{ 'a\\\nb' }}",
]


def make_environment():
    environment = SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    now = datetime.datetime(2026, 11, 30, 12, 34, 56)
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = now.strftime
    return environment


def main():
    environment = make_environment()
    cases = []
    for source in ["{{ " + e + " }}" for e in EXPRESSIONS] + TEMPLATES:
        case = {"template": source}
        try:
            case["text"] = environment.from_string(source).render(**CONTEXT)
        except Exception as error:  # whatever Python raises, the engine must refuse too
            case["error"] = f"{type(error).__name__}: {error}"
        cases.append(case)
    print(json.dumps({"context": CONTEXT, "cases": cases}, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
