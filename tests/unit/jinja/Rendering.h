//===- Rendering.h - what the template tests share ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_JINJA_RENDERING_H
#define LLMC_TESTS_UNIT_JINJA_RENDERING_H

#include "runtime/text/jinja/Template.h"

#include <fstream>
#include <iterator>
#include <string>

namespace llmc::test {

using rt::jinja::Json;
using rt::jinja::RenderOptions;
using rt::jinja::Span;
using rt::jinja::Template;

/// The clock of all tests: 2026-11-30 12:34:56, a Monday.
inline RenderOptions fixedOptions() {
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 10;
  now.tm_mday = 30;
  now.tm_hour = 12;
  now.tm_min = 34;
  now.tm_sec = 56;
  now.tm_wday = 1;
  now.tm_yday = 333;
  RenderOptions options;
  options.now = now;
  return options;
}

/// What is printed, or "error: " and the message.
inline std::string render(std::string_view source, const Json &context = Json::object(),
                          const RenderOptions &options = fixedOptions()) {
  auto parsed = Template::parse(source, "test.jinja");
  if (!parsed.ok())
    return "error: " + parsed.status().message();
  auto text = parsed.value().render(context, options);
  return text.ok() ? text.take() : "error: " + text.status().message();
}

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_JINJA_RENDERING_H
