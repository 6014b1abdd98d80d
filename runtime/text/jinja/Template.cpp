//===- Template.cpp - chat templates --------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Template.h"

#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/Parser.h"

namespace llmc::rt::jinja {

StatusOr<Template> Template::parse(std::string_view source, std::string_view name,
                                   const ParseOptions &options) {
  Template result;
  LLMC_ASSIGN_OR_RETURN(result.program, parseProgram(source, name, options));
  return result;
}

StatusOr<std::string> Template::render(const Json &context, const RenderOptions &options) const {
  LLMC_ASSIGN_OR_RETURN(Text text, Interpreter(*program, options).run(context));
  return std::string(text.str());
}

StatusOr<std::vector<Span>> Template::renderSpans(const Json &context,
                                                  const RenderOptions &options) const {
  LLMC_ASSIGN_OR_RETURN(Text text, Interpreter(*program, options).run(context));
  std::vector<Span> spans;
  text.forEachRun(0, text.size(), [&](std::string_view run, Trust trust) {
    spans.push_back({std::string(run), trust == Trust::Trusted});
  });
  return spans;
}

StatusOr<std::string> renderTemplate(std::string_view source, std::string_view name,
                                     std::string_view contextJson, const RenderOptions &options) {
  LLMC_ASSIGN_OR_RETURN(Template parsed, Template::parse(source, name));
  Json context = Json::parse(contextJson, nullptr, /*allow_exceptions=*/false);
  if (context.is_discarded())
    return corrupt(std::string(name) + ": the context is not valid JSON");
  return parsed.render(context, options);
}

} // namespace llmc::rt::jinja
