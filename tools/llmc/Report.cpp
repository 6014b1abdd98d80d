//===- Report.cpp - facts and tables, for people or as JSON ---------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

using namespace llmc::tool;

/// Keys are written with underscores for JSON.
static std::string heading(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

/// Text of files must not steer the terminal.
static void printEscaped(llvm::StringRef text, llvm::raw_ostream &stream) {
  for (char c : text) {
    if (llvm::isPrint(c) || uint8_t(c) >= 0x80)
      stream << c;
    else
      stream << llvm::format("\\x%02x", unsigned(uint8_t(c)));
  }
}

static std::string cell(const Json &value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (value.is_string()) {
    printEscaped(value.get_ref<const std::string &>(), stream);
  } else if (value.is_number_float()) {
    stream << llvm::format("%.7g", value.get<double>());
  } else if (value.is_array()) {
    for (const Json &item : value)
      stream << (&item == &value.front() ? "" : " ") << cell(item);
  } else if (!value.is_null()) {
    stream << value.dump();
  }
  return text;
}

static bool isTable(const Json &value) {
  return value.is_array() && !value.empty() && value.front().is_object();
}

static void printFacts(const Json &facts, llvm::StringRef indent) {
  size_t width = 0;
  for (const auto &[key, value] : facts.items())
    if (!value.is_object() && !isTable(value))
      width = std::max(width, key.size());
  for (const auto &[key, value] : facts.items())
    if (!value.is_object() && !isTable(value))
      llvm::outs() << indent << heading(key) << std::string(width - key.size() + 2, ' ')
                   << cell(value) << "\n";
}

static void printTable(const Json &rows) {
  std::vector<std::vector<std::string>> lines(1);
  std::vector<size_t> widths;
  for (const auto &[key, value] : rows.front().items())
    lines[0].push_back(heading(key));
  for (const Json &row : rows) {
    auto &line = lines.emplace_back();
    for (const auto &[key, value] : row.items())
      line.push_back(cell(value));
  }
  for (size_t column = 0; column < lines[0].size(); ++column) {
    widths.push_back(0);
    for (const auto &line : lines)
      widths[column] = std::max(widths[column], line[column].size());
  }
  for (const auto &line : lines) {
    llvm::outs() << " ";
    for (auto [column, value] : llvm::enumerate(rows.front())) {
      const std::string padding(widths[column] - line[column].size(), ' ');
      const bool last = column + 1 == widths.size();
      if (value.is_number())
        llvm::outs() << " " << padding << line[column] << (last ? "" : " ");
      else
        llvm::outs() << " " << line[column] << (last ? "" : padding + " ");
    }
    llvm::outs() << "\n";
  }
}

void llmc::tool::printReport(const Json &report, bool asJson) {
  if (asJson) {
    // Text of models need not be UTF-8; JSON must be.
    llvm::outs() << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  printFacts(report, "");
  for (const auto &[key, value] : report.items()) {
    if (!value.is_object() && !isTable(value))
      continue;
    llvm::outs() << "\n" << heading(key) << "\n";
    value.is_object() ? printFacts(value, "  ") : printTable(value);
  }
}
