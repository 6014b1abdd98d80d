//===- RenderTemplate.cpp - llmc render-template --------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Template.h"
#include "tools/llmc/Commands.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

using namespace llmc;
using namespace llmc::tool;

static llvm::Error render(const std::string &templatePath, const std::string &contextPath) {
  llvm::Expected<std::string> source = readFile(templatePath);
  if (!source)
    return source.takeError();
  llvm::Expected<std::string> context = readFile(contextPath);
  if (!context)
    return context.takeError();
  auto text = rt::jinja::renderTemplate(*source, templatePath, *context);
  if (!text.ok())
    return makeError(text.status());
  llvm::outs() << text.value();
  return llvm::Error::success();
}

void llmc::tool::addRenderTemplate(CLI::App &app, Action &action) {
  struct Arguments {
    std::string source, context;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command =
      app.add_subcommand("render-template", "Print what a chat template makes of a conversation");
  command->add_option("TEMPLATE", arguments->source, "The template (.jinja)")->required();
  command
      ->add_option("CONTEXT", arguments->context,
                   "A JSON object: {messages, tools, add_generation_prompt, bos_token, ...}")
      ->required();
  command->callback([arguments, &action] {
    action = [arguments] { return render(arguments->source, arguments->context); };
  });
}
