//===- TrustTest.cpp - what came from the user stays marked ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rendering.h"

#include <gtest/gtest.h>

using namespace llmc::test;

namespace {

const Json context = {
    {"messages",
     {{{"role", "user"},
       {"content", "ab cd"},
       {"n", 5},
       {"nested", {{"role", "evil"}}},
       {"parts", {"x", "y"}}}}},
    {"tools", {{{"name", "get_weather"}}}},
    {"bos_token", "<s>"},
    {"greeting", "hello"},
};

/// The output with untrusted pieces in « ».
std::string marked(std::string_view source, const RenderOptions &options = fixedOptions()) {
  auto parsed = Template::parse(source, "t");
  if (!parsed.ok())
    return "error: " + parsed.status().message();
  auto spans = parsed.value().renderSpans(context, options);
  if (!spans.ok())
    return "error: " + spans.status().message();
  std::string result;
  for (const Span &span : spans.value())
    result += span.trusted ? span.text : "«" + span.text + "»";
  return result;
}

} // namespace

TEST(JinjaTrust, SourcesOfText) {
  EXPECT_EQ(marked("<|im_start|>{{ messages[0].content }}<|im_end|>"),
            "<|im_start|>«ab cd»<|im_end|>");
  EXPECT_EQ(marked("{{ bos_token }}{{ greeting }}{{ 'lit' }}"), "<s>hellolit");
  EXPECT_EQ(marked("{{ tools[0].name }}"), "«get_weather»");
  EXPECT_EQ(marked("{{ messages[0].n }}"), "5"); // a number cannot spell a control token
  EXPECT_EQ(marked("{% for key in messages[0] %}{{ key }},{% endfor %}"),
            "«role»,«content»,«n»,«nested»,«parts»,");
}

/// The role comes from the API; the same key further down does not.
TEST(JinjaTrust, RoleOfAMessage) {
  EXPECT_EQ(marked("<|{{ messages[0].role }}|>"), "<|user|>");
  EXPECT_EQ(marked("{{ messages[0].nested.role }}"), "«evil»");
}

TEST(JinjaTrust, KeysAreAnOption) {
  RenderOptions options = fixedOptions();
  options.untrustedKeys = {"greeting"};
  EXPECT_EQ(marked("{{ greeting }} {{ tools[0].name }}", options), "«hello» get_weather");
}

TEST(JinjaTrust, NeighboursAreMerged) {
  EXPECT_EQ(marked("{{ messages[0].content }}{{ tools[0].name }}a{{ 'b' }}"),
            "«ab cdget_weather»ab");
}

TEST(JinjaTrust, FollowsTheBytesThroughOperations) {
  struct {
    const char *expression, *expected;
  } rows[] = {
      {"'<' + c + '>'", "<«ab cd»>"},
      {"'<' ~ c ~ 1", "<«ab cd»1"},
      {"('<' + c + '>')[1:4]", "«ab »"},
      {"('<' + c + '>')[::-1]", ">«dc ba»<"},
      {"('<' + c + '>')[0]", "<"},
      {"('<' + c + '>') | upper", "<«AB CD»>"},
      {"('x' + c).title()", "X«ab Cd»"},
      {"('x' + c) | title", "X«ab Cd»"},
      {"c | capitalize", "«Ab cd»"},
      {"('  ' + c + '  ') | trim", "«ab cd»"},
      {"c.strip('a')", "«b cd»"},
      {"c | replace(' ', '<sep>')", "«ab»<sep>«cd»"},
      {"'[x]' | replace('x', c)", "[«ab cd»]"},
      {"c.split(' ') | join('<sep>')", "«ab»<sep>«cd»"},
      {"'a-b'.split('-') | join(c)", "a«ab cd»b"},
      {"c.partition(' ')[2]", "«cd»"},
      {"c.splitlines() | first", "«ab cd»"},
      {"c | list | join('.')", "«a».«b».« ».«c».«d»"},
      {"messages[0].parts | join(', ')", "«x», «y»"},
      {"c * 2", "«ab cdab cd»"},
      {"'%s|%5d' % (c, 3)", "«ab cd»|    3"},
      {"c % ()", "«ab cd»"},
      {"'<{}>{:>7}'.format(c, c)", "<«ab cd»>  «ab cd»"},
      {"messages[0].parts | tojson", "[\"«x»\", \"«y»\"]"},
      {"(c + '\"') | tojson", "\"«ab cd»\\\"\""},
      {"messages[0].parts", "['«x»', '«y»']"},
      {"c | indent(2, first=true)", "  «ab cd»"},
      {"c | center(9)", "  «ab cd»  "},
      {"c.rjust(7, '-')", "--«ab cd»"},
      {"c | truncate(4, true, '~', 0)", "«ab »~"},
      {"('<' ~ c) | e", "&lt;«ab cd»"},
      {"c | safe", "«ab cd»"},
      {"c | string", "«ab cd»"},
      {"c if c == 'ab cd' else 'no'", "«ab cd»"},
      {"{'ab cd': '<known>'}[c]", "<known>"},
      {"[c, 'z'] | sort | join", "«ab cd»z"},
      {"['AB CD', c] | unique | join", "AB CD"},
      {"[c] | map('upper') | first", "«AB CD»"},
      {"messages | map(attribute='content') | first", "«ab cd»"},
      {"strftime_now('%Y') ~ strftime_now(c)", "2026«ab cd»"},
      {"('[\"' ~ c ~ '\"]') | from_json | first", "«ab cd»"},
      {"greeting | default(c)", "hello"},
      {"missing | default(c)", "«ab cd»"},
      {"c.format()", "«ab cd»"},
      {"c.zfill(6)", "0«ab cd»"},
      {"c.removeprefix('a') ~ c.removesuffix('d')", "«b cdab c»"},
  };
  for (const auto &row : rows)
    EXPECT_EQ(marked("{% set c = messages[0].content %}{{ " + std::string(row.expression) + " }}"),
              row.expected)
        << row.expression;
}

TEST(JinjaTrust, FollowsTheBytesThroughStatements) {
  EXPECT_EQ(marked("{% set x %}<{{ messages[0].content }}>{% endset %}{{ x | upper }}"),
            "<«AB CD»>");
  EXPECT_EQ(marked("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(messages[0].content) }}"),
            "<«ab cd»>");
  EXPECT_EQ(marked("{% macro m() %}<{{ caller() }}>{% endmacro %}"
                   "{% call m() %}{{ messages[0].content }}{% endcall %}"),
            "<«ab cd»>");
  EXPECT_EQ(marked("{% filter upper %}a{{ messages[0].content }}{% endfilter %}"), "A«AB CD»");
  EXPECT_EQ(marked("{% set ns = namespace(out='') %}{% for m in messages %}"
                   "{% set ns.out = ns.out ~ m.content ~ '<eot>' %}{% endfor %}{{ ns.out }}"),
            "«ab cd»<eot>");
}
