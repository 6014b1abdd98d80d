//===- GraphSession.h - a graph of tensors, run -----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An artifact of the kind Graph has named tensors in and named tensors out, of
// fixed shapes, and no tokens. A session owns the arena in which they and all
// intermediate values lie: write the inputs, run, read the outputs. Inputs keep
// their values from run to run.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_GRAPHSESSION_H
#define LLMC_RUNTIME_LLM_GRAPHSESSION_H

#include "runtime/base/Memory.h"
#include "runtime/base/WorkerPool.h"
#include "runtime/device/cpu/Program.h"
#include "runtime/llm/Model.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace llmc::rt {

/// An input or output: dense, row-major.
struct GraphPort {
  std::string name;
  std::string element; ///< "float", "int64", ...; see runtime/schema/llmc.fbs, table Port
  std::vector<uint64_t> shape;
  std::span<uint8_t> bytes; ///< in the session's arena

  /// "float [2, 3]"
  std::string typeText() const;
};

class GraphSession {
public:
  /// Unsupported where `model` is no graph.
  static StatusOr<std::unique_ptr<GraphSession>> create(std::shared_ptr<const Model> model,
                                                        std::shared_ptr<WorkerPool> pool);

  std::span<const GraphPort> inputs() const { return in; }
  std::span<const GraphPort> outputs() const { return out; }
  /// The input of that name; NotFound lists those that there are.
  StatusOr<const GraphPort *> findInput(const std::string &name) const;

  /// Copies an input's bytes. InvalidArgument where their number is not the port's, or a bool is
  /// neither 0 nor 1.
  Status setInput(const GraphPort &port, std::span<const uint8_t> bytes);

  /// Computes all outputs from the inputs. Allocates nothing.
  void run();

private:
  GraphSession(std::shared_ptr<const Model> model, std::shared_ptr<WorkerPool> pool)
      : model(std::move(model)), pool(std::move(pool)) {}
  Status reserve();

  std::shared_ptr<const Model> model;
  std::shared_ptr<WorkerPool> pool;
  PageBuffer arena;
  WorkerScratch scratch;
  Program program;
  std::vector<GraphPort> in, out;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_GRAPHSESSION_H
