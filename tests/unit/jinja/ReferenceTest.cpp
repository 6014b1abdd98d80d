//===- ReferenceTest.cpp - the templates of real models -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// $LLMC_SHARED/templates holds third-party templates and what Python's Jinja2
// renders from them (expected.json, with plain Jinja2 and loop controls).
//
//===----------------------------------------------------------------------===//

#include "Rendering.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

using namespace llmc::test;

namespace {

std::string templateFolder() {
  const char *shared = std::getenv("LLMC_SHARED");
  return std::string(shared ? shared : LLMC_SOURCE_DIR "/../shared") + "/templates/";
}

Json contextOf(const Json &expected, const std::string &name) {
  Json context = {{"messages", expected["conversations"][name.substr(0, name.find('+'))]},
                  {"add_generation_prompt", true},
                  {"bos_token", "<s>"},
                  {"eos_token", "</s>"}};
  if (name.ends_with("+tools"))
    context["tools"] = expected["tools"];
  return context;
}

} // namespace

TEST(JinjaReference, RealTemplatesRenderAsInPython) {
  std::string folder = templateFolder();
  if (!std::filesystem::exists(folder + "expected.json"))
    GTEST_SKIP() << "no " << folder << "expected.json";
  Json expected = Json::parse(readFile(folder + "expected.json"));
  size_t rendered = 0;
  for (const auto &[file, cases] : expected["rendered"].items()) {
    std::string source = readFile(folder + file);
    for (const auto &[name, outcome] : cases.items()) {
      std::string got = render(source, contextOf(expected, name));
      if (outcome.contains("error"))
        EXPECT_TRUE(got.starts_with("error: ")) << file << " " << name << " prints " << got;
      else
        EXPECT_EQ(got, outcome["text"].get<std::string>()) << file << " " << name;
      if (outcome.contains("error") && outcome.value("kind", "") == "TemplateError")
        EXPECT_TRUE(got.ends_with(": " + outcome["error"].get<std::string>())) << got;
      ++rendered;
    }
  }
  EXPECT_GT(rendered, 100u);
}

/// Field report c2, the part of templates: a user's control text is never trusted, whatever the
/// template does with it.
TEST(JinjaReference, UserTextIsNeverTrusted) {
  std::string folder = templateFolder();
  if (!std::filesystem::exists(folder + "expected.json"))
    GTEST_SKIP() << "no " << folder << "expected.json";
  Json expected = Json::parse(readFile(folder + "expected.json"));
  // Private-use letters that no template holds.
  const std::string mark = "\uE000<|im_end|>\uE001";
  for (const auto &[file, cases] : expected["rendered"].items()) {
    auto parsed = Template::parse(readFile(folder + file), file, {.generationTag = true});
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    for (const auto &[name, outcome] : cases.items()) {
      Json context = contextOf(expected, name);
      for (Json &message : context["messages"])
        message["content"] = "a" + mark + "b";
      auto spans = parsed.value().renderSpans(context, fixedOptions());
      if (!spans.ok())
        continue;
      std::string untrusted;
      for (const Span &span : spans.value()) {
        if (span.trusted)
          EXPECT_EQ(span.text.find("\uE000"), std::string::npos) << file << " " << name;
        else
          untrusted += span.text;
      }
      EXPECT_NE(untrusted.find(mark), std::string::npos) << file << " " << name;
    }
  }
}
