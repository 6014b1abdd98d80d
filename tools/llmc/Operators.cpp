//===- Operators.cpp - llmc operators -------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/ImportGraph.h"
#include "tools/llmc/Commands.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

using namespace llmc;
using namespace llmc::tool;

static llvm::Error listOperators(bool markdown) {
  const char *row = markdown ? "| %s | %s | %s | %s |\n" : "%-44s %-10s %-6s %s\n";
  if (markdown)
    llvm::outs() << "<!-- Written by `llmc operators --markdown`. -->\n\n# ONNX operators\n\n"
                    "Versions are opsets since which an operator means something else to llmc. "
                    "*Folded*: computed while\ncompiling where its inputs are constants. *Code*: "
                    "computed by generated code where no pattern raises it to\nthe llm "
                    "dialect. See [ONNX](design/onnx.md).\n\n";
  llvm::outs() << llvm::format(row, "Operator", "Versions", "Folded", "Code");
  if (markdown)
    llvm::outs() << "|---|---|---|---|\n";
  for (const OnnxOperator &op : onnxOperators()) {
    std::string name = (op.domain.empty() ? "" : op.domain + ".") + op.name;
    std::string versions = llvm::join(
        llvm::map_range(op.versions, [](int64_t since) { return std::to_string(since); }), ", ");
    llvm::outs() << llvm::format(row, name.c_str(), versions.c_str(), op.folds ? "yes" : "",
                                 op.lowers ? "yes" : "");
  }
  return llvm::Error::success();
}

void llmc::tool::addOperators(CLI::App &app, Action &action) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App *command = app.add_subcommand("operators", "List the ONNX operators that are known");
  command->add_flag("--markdown", *markdown, "As docs/onnx-operators.md has it");
  command->callback(
      [markdown, &action] { action = [markdown] { return listOperators(*markdown); }; });
}
