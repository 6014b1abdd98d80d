//===- CasesTest.cpp - small templates against Python's Jinja2 ------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tests/data/jinja/cases.json is made by MakeCases.py: several hundred templates
// on every operator, filter, test, method, statement and white space rule, with
// the text or the error of Python.
//
//===----------------------------------------------------------------------===//

#include "Rendering.h"

#include <gtest/gtest.h>

using namespace llmc::test;

TEST(JinjaCases, RenderAsInPython) {
  Json file = Json::parse(readFile(LLMC_SOURCE_DIR "/tests/data/jinja/cases.json"));
  ASSERT_GT(file["cases"].size(), 600u);
  for (const Json &example : file["cases"]) {
    std::string source = example["template"].get<std::string>();
    std::string got = render(source, file["context"]);
    if (example.contains("error"))
      EXPECT_TRUE(got.starts_with("error: test.jinja:"))
          << source << "\nprints " << got << "\nPython: " << example["error"];
    else
      EXPECT_EQ(got, example["text"].get<std::string>()) << source;
  }
}
