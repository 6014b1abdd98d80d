//===- Sessions.h - sessions on the chain model -----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_UNIT_RUNTIME_SESSIONS_H
#define LLMC_TESTS_UNIT_RUNTIME_SESSIONS_H

#include "runtime/llm/Session.h"
#include "tests/unit/support/ChainModel.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace llmc::test {

inline std::unique_ptr<rt::Session> makeSession(const ChainModel &chain, unsigned threads = 1,
                                                rt::SessionOptions options = {}) {
  auto model = rt::Model::load(chain.write());
  EXPECT_TRUE(model.ok()) << model.status().message();
  auto pool = rt::WorkerPool::create(threads);
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  auto session = rt::Session::create(model.take(), pool.take(), options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.take();
}

/// first, first + 1, ...
inline std::vector<int32_t> iota(size_t count, int32_t first = 0) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

} // namespace llmc::test

#endif // LLMC_TESTS_UNIT_RUNTIME_SESSIONS_H
