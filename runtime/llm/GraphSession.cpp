//===- GraphSession.cpp - a graph of tensors, run -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/GraphSession.h"

#include <algorithm>
#include <cstring>

using namespace llmc;
using namespace llmc::rt;

std::string GraphPort::typeText() const {
  std::string text = element + " [";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

StatusOr<std::unique_ptr<GraphSession>> GraphSession::create(std::shared_ptr<const Model> model,
                                                             std::shared_ptr<WorkerPool> pool) {
  std::unique_ptr<GraphSession> session(new GraphSession(std::move(model), std::move(pool)));
  LLMC_RETURN_IF_ERROR(session->reserve());
  return session;
}

Status GraphSession::reserve() {
  if (!model->isGraph() || !model->canCompute())
    return unsupported(model->artifact().path() +
                       (model->isEncoder() ? " is a sentence encoder: it takes texts"
                                           : " is a language model: it takes a prompt") +
                       ", not named tensors");
  const fb::Program &main = *findProgram(*model->cpuVariant(), kMainProgram);
  LLMC_ASSIGN_OR_RETURN(arena, PageBuffer::reserve(main.arena_size(), "arena"));
  program =
      Program(main, model->code().kernels(), {arena.data(), model->cpuWeights().data(), nullptr});
  LLMC_ASSIGN_OR_RETURN(
      scratch, WorkerScratch::create(pool->size(), main.scratch_size(), program.rangeCount()));
  const auto addPorts = [&](const auto *records, std::vector<GraphPort> &ports) {
    if (!records)
      return;
    for (const fb::Port *record : *records) {
      GraphPort port{record->name()->str(), record->element()->str(), {}, {}};
      if (record->shape())
        port.shape.assign(record->shape()->begin(), record->shape()->end());
      port.bytes = {arena.data() + record->offset(), record->size()};
      ports.push_back(std::move(port));
    }
  };
  addPorts(main.inputs(), in);
  addPorts(main.outputs(), out);
  return {};
}

StatusOr<const GraphPort *> GraphSession::findInput(const std::string &name) const {
  std::string known;
  for (const GraphPort &port : in) {
    if (port.name == name)
      return &port;
    known += (known.empty() ? "" : ", ") + port.name + ": " + port.typeText();
  }
  return notFound(model->artifact().path() + " has no input '" + name + "'" +
                  (known.empty() ? "; it has none" : "; its inputs are " + known));
}

Status GraphSession::setInput(const GraphPort &port, std::span<const uint8_t> bytes) {
  if (bytes.size() != port.bytes.size())
    return invalidArgument("input '" + port.name + "' is " + port.typeText() + " and takes " +
                           std::to_string(port.bytes.size()) + " bytes, not " +
                           std::to_string(bytes.size()));
  if (port.element == "bool" &&
      std::any_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b > 1; }))
    return invalidArgument("input '" + port.name + "' has a value that is neither 0 nor 1");
  if (!bytes.empty())
    std::memcpy(port.bytes.data(), bytes.data(), bytes.size());
  return {};
}

void GraphSession::run() {
  llmc_step_t step = {};
  step.rows = 1;
  program.run(*pool, scratch, step);
}
