//===- Text.cpp - a string that knows what came from the user -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Text.h"

#include <algorithm>

namespace llmc::rt::jinja {

size_t Text::runOf(size_t at) const {
  return std::upper_bound(flips.begin(), flips.end(), at) - flips.begin();
}

Trust Text::trustAt(size_t at) const { return trustOfRun(runOf(at)); }

Trust Text::overallTrust() const {
  return flips.empty() ? first : Trust::Untrusted; // two runs differ, so one of them is untrusted
}

void Text::append(std::string_view more, Trust trust) {
  if (more.empty())
    return;
  if (bytes.empty())
    first = trust;
  else if (trustOfRun(flips.size()) != trust)
    flips.push_back(bytes.size());
  bytes += more;
}

void Text::append(const Text &more, size_t begin, size_t end) {
  more.forEachRun(begin, end, [&](std::string_view run, Trust trust) { append(run, trust); });
}

Text Text::slice(size_t begin, size_t end) const {
  Text result;
  result.append(*this, begin, end);
  return result;
}

} // namespace llmc::rt::jinja
