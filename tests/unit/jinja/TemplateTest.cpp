//===- TemplateTest.cpp - the interface of chat templates -----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rendering.h"

#include <gtest/gtest.h>

using namespace llmc::test;
using llmc::rt::StatusCode;
using llmc::rt::jinja::ParseOptions;
using llmc::rt::jinja::renderTemplate;

namespace {

/// The message with which parsing fails.
std::string refusal(std::string_view source, StatusCode code) {
  auto parsed = Template::parse(source, "t");
  EXPECT_FALSE(parsed.ok()) << source;
  EXPECT_EQ(parsed.status().code(), code) << source;
  return parsed.status().message();
}

} // namespace

/// Field report c4: what other engines lack.
TEST(JinjaTemplate, FieldReportC4) {
  Json context = {{"messages", {{{"content", "a"}}, {{"content", "b"}}, {{"content", "c"}}}},
                  {"dict", {{"x", 1}, {"y", 2}}}};
  EXPECT_EQ(render("{% for m in messages %}{{ m.content }}{% if loop.index == 2 %}{% break %}"
                   "{% endif %}{% endfor %}",
                   context),
            "ab");
  EXPECT_EQ(render("{% for k, v in dict.items() %}{{ k }}{{ v }}{% endfor %}", context), "x1y2");
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y') }}"), "30 Nov 2026");
  EXPECT_EQ(render("\n{{ raise_exception('no') }}"), "error: test.jinja:2: no");
}

TEST(JinjaTemplate, RefusesWhenParsing) {
  const StatusCode unsupported = StatusCode::Unsupported, corrupt = StatusCode::Corrupt;
  EXPECT_EQ(refusal("\n{% include 'x' %}", unsupported), "t:2: unknown tag 'include'");
  EXPECT_EQ(refusal("{% if false %}{{ 1 | urlize }}{% endif %}", unsupported),
            "t:1: unknown filter 'urlize'");
  EXPECT_EQ(refusal("{{ 1 is prime }}", unsupported), "t:1: unknown test 'prime'");
  EXPECT_EQ(refusal("{{ [] | map('urlize') }}", unsupported), "t:1: unknown filter 'urlize'");
  EXPECT_EQ(refusal("{{ [] | selectattr('a', 'prime') }}", unsupported),
            "t:1: unknown test 'prime'");
  EXPECT_EQ(refusal("\n\n{{ lipsum() }}", unsupported), "t:3: unknown function 'lipsum'");
  EXPECT_EQ(refusal("{{ 'a'.encode() }}", unsupported), "t:1: unknown method 'encode'");
  EXPECT_EQ(refusal("{% generation %}{% endgeneration %}", unsupported),
            "t:1: unknown tag 'generation'");
  EXPECT_EQ(refusal("a\n{% if x %}\n", corrupt),
            "t:2: unexpected end of template, expected 'endif'");
  EXPECT_EQ(refusal("{{ 'a }}", corrupt), "t:1: unterminated string");
  EXPECT_EQ(refusal("{% break %}", corrupt), "t:1: 'break' outside of a loop");
}

/// A template may ask whether a function is there before it calls it.
TEST(JinjaTemplate, AcceptsGuardedCalls) {
  EXPECT_EQ(render("{% if now is defined %}{{ now() }}{% else %}never{% endif %}"), "never");
  EXPECT_EQ(render("{% set ns = namespace(f=range) %}{{ ns.f(2) | list }}"), "[0, 1]");
}

TEST(JinjaTemplate, ErrorsNameTheInnermostLine) {
  EXPECT_EQ(render("{% macro m(x) %}\n{{ x.y.z }}\n{% endmacro %}\n{{ m({}) }}"),
            "error: test.jinja:2: 'dict object' has no attribute 'y'");
  EXPECT_EQ(render("\n{{ missing.x }}"), "error: test.jinja:2: 'missing' is undefined");
  EXPECT_EQ(render("{{ 'a' + 1 }}"),
            "error: test.jinja:1: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(render("{% for a, b in [1] %}{% endfor %}"),
            "error: test.jinja:1: 'int' object is not iterable");
}

TEST(JinjaTemplate, ContextMustBeAnObject) {
  auto parsed = Template::parse("x", "t");
  ASSERT_TRUE(parsed.ok());
  auto text = parsed.value().render(Json::array());
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), StatusCode::InvalidArgument);
}

TEST(JinjaTemplate, GenerationTagIsAnOption) {
  auto parsed = Template::parse(
      "a\n  {% generation %}\n{{ x }}{% set y = 1 %}{% endgeneration %}{{ y is defined }}", "t",
      ParseOptions{.generationTag = true});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  auto text = parsed.value().render({{"x", "b"}});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(), "a\nbFalse");
}

TEST(JinjaTemplate, ContextIsNotChanged) {
  Json context = {{"messages", {1, 2}}};
  EXPECT_EQ(render("{{ messages.append(3) }}{{ messages }}", context), "None[1, 2, 3]");
  EXPECT_EQ(context["messages"].size(), 2u);
}

TEST(JinjaTemplate, JsonNumbers) {
  Json context =
      Json::parse(R"({"a": 9223372036854775807, "b": 18446744073709551615, "c": -1.5e3})");
  EXPECT_EQ(render("{{ a }} {{ b }} {{ c }}", context),
            "9223372036854775807 1.8446744073709552e+19 -1500.0");
}

TEST(JinjaTemplate, InvalidUtf8Survives) {
  Json context = {{"s", "a\xFF\xC3(\xE6\xBC"}};
  EXPECT_EQ(render("{{ s }}|{{ s | length }}|{{ s[1:2] }}|{{ s | upper }}", context),
            "a\xFF\xC3(\xE6\xBC|6|\xFF|A\xFF\xC3(\xE6\xBC");
}

TEST(JinjaTemplate, FromJson) {
  EXPECT_EQ(render("{{ ('{\"a\": [1, null]}' | from_json).a }}"), "[1, None]");
  EXPECT_EQ(render("{{ '{' | from_json }}"), "error: test.jinja:1: from_json() got invalid JSON");
}

TEST(JinjaTemplate, RendersFromText) {
  auto text = renderTemplate("{{ bos_token }}{{ messages[0].content }}", "t",
                             R"({"messages": [{"content": "hi"}], "bos_token": "<s>"})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(), "<s>hi");
  auto broken = renderTemplate("x", "t", "{");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.status().message(), "t: the context is not valid JSON");
}
