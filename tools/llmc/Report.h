//===- Report.h - facts and tables, for people or as JSON -------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TOOLS_LLMC_REPORT_H
#define LLMC_TOOLS_LLMC_REPORT_H

#include <nlohmann/json.hpp>

namespace llmc::tool {

/// A report is an object. A member that is a value is a fact; an object is a group of facts; an
/// array of objects with the same keys is a table.
using Json = nlohmann::ordered_json;

/// Prints a report to stdout, as JSON or aligned for reading. Text from hostile files is escaped.
void printReport(const Json &report, bool asJson);

} // namespace llmc::tool

#endif // LLMC_TOOLS_LLMC_REPORT_H
