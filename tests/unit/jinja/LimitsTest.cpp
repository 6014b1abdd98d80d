//===- LimitsTest.cpp - hostile templates end in time and space -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rendering.h"

#include <gtest/gtest.h>

using namespace llmc::test;
using llmc::rt::StatusCode;

namespace {

std::string repeated(std::string_view text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i)
    result += text;
  return result;
}

void expectExhausted(std::string_view source, const Json &context = Json::object()) {
  RenderOptions options = fixedOptions();
  options.maxSteps = 2'000'000;
  options.maxMemoryBytes = 16 << 20;
  options.maxOutputBytes = 1 << 20;
  auto parsed = Template::parse(source, "t");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  auto text = parsed.value().render(context, options);
  ASSERT_FALSE(text.ok()) << source << " prints " << text.value().size() << " bytes";
  EXPECT_EQ(text.status().code(), StatusCode::ResourceExhausted)
      << source << ": " << text.status().message();
}

void expectRefused(std::string_view source) {
  auto parsed = Template::parse(source, "t");
  ASSERT_FALSE(parsed.ok()) << source.substr(0, 40);
  EXPECT_EQ(parsed.status().code(), StatusCode::Corrupt) << parsed.status().message();
}

} // namespace

TEST(JinjaLimits, Time) {
  expectExhausted("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}");
  expectExhausted("{% set l = [1] %}{% for x in l %}{{ l.append(1) or '' }}{% endfor %}");
  expectExhausted("{% set t = 'a' * 1000000 %}{% for x in range(9999) %}"
                  "{{ t.find('b') }}{% endfor %}");
  expectExhausted("{% set t = 'a' * 1000000 %}{{ t.find('a' * 500000 ~ 'b') }}");
  expectExhausted("{% set t = 'ab' * 500000 %}{{ t.strip('ba' * 500000) }}");
}

TEST(JinjaLimits, Memory) {
  expectExhausted("{{ 'a' * 99999999999 }}");
  expectExhausted("{{ ([1] * 99999999999) | length }}");
  expectExhausted("{% set ns = namespace(x='a') %}{% for i in range(99) %}"
                  "{% set ns.x = ns.x + ns.x %}{% endfor %}");
  expectExhausted("{% set ns = namespace(x=[1]) %}{% for i in range(99) %}"
                  "{% set ns.x = ns.x + ns.x %}{% endfor %}");
  expectExhausted("{% set d = {} %}{% for i in range(99999) %}"
                  "{{ d.update({i ~ 'a' * 100: i}) or '' }}{% endfor %}");
  expectExhausted("{{ 'x' | center(999999999999) }}");
  expectExhausted("{{ 'a\nb' | indent(999999999999) }}");
  expectExhausted("{{ [1] | tojson(indent=999999999999) }}");
  expectExhausted("{% set t = 'a' * 9999 %}{{ t.replace('a', t) }}");
  expectExhausted("{% set t = 'a' * 9999 %}{{ (t | list).copy() | join(t) }}");
  expectExhausted("{{ [1] | batch(999999999999, 1) | list }}");
  EXPECT_EQ(render("{{ '%9999999999d' % 1 }}"), "error: test.jinja:1: width too big");
}

TEST(JinjaLimits, Output) {
  expectExhausted("{% for x in range(99999) %}0123456789abcdef{% endfor %}");
}

TEST(JinjaLimits, Recursion) {
  expectExhausted("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  expectExhausted("{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}");
  const char *nested = "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}"
                       "{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_EQ(render(nested), "");
  expectExhausted(std::string(nested) + "{{ ns.x }}");
  expectExhausted(std::string(nested) + "{{ ns.x | tojson }}");
  expectExhausted(std::string(nested) + "{% set y = ns.x %}{{ [y] == [[y]] }}");
  expectExhausted("{% set l = [] %}{{ l.append(l) }}{{ l }}");
  Json deep = Json::array();
  for (int i = 0; i < 5000; ++i)
    deep = Json::array({deep});
  expectExhausted("x", {{"messages", deep}});
}

/// Cycles are legal and are freed; a leak checker sees to that.
TEST(JinjaLimits, CyclesAreFreed) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = ns %}{% set l = [] %}"
                   "{{ l.append(l) or '' }}{% macro m() %}{% endmacro %}{% set ns.m = m %}ok"),
            "ok");
}

TEST(JinjaLimits, NestingOfTheSource) {
  const size_t deep = 100000;
  expectRefused("{{ " + repeated("(", deep) + "1" + repeated(")", deep) + " }}");
  expectRefused("{{ " + repeated("[", deep));
  expectRefused("{{ " + repeated("{1:", deep));
  expectRefused("{{ " + repeated("-", deep) + "1 }}");
  expectRefused("{{ " + repeated("not ", deep) + "1 }}");
  expectRefused("{{ 1" + repeated(" + 1", deep) + " }}");
  expectRefused("{{ 1" + repeated(" and 1", deep) + " }}");
  expectRefused("{{ a" + repeated(".a", deep) + " }}");
  expectRefused("{{ a" + repeated("|e", deep) + " }}");
  expectRefused("{{ a" + repeated("[0]", deep) + " }}");
  expectRefused("{{ 1" + repeated(" if 1 else 1", deep) + " }}");
  expectRefused(repeated("{% if 1 %}", deep));
  expectRefused("{% for " + repeated("(", deep));
  EXPECT_EQ(render("{{ ''" + repeated(" ~ 'a'", 10000) + " }}").size(), 10000u);
  EXPECT_EQ(render("{% if 0 %}" + repeated("{% elif 0 %}", 10000) + "{% else %}x{% endif %}"), "x");
  EXPECT_EQ(render("{{ 0" + repeated(" + 1", 250) + " }}"), "250");
}
