//===- Graph.cpp - runs a graph of tensors --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/Graph.h"

#include "runtime/base/Topology.h"
#include "runtime/llm/GraphSession.h"
#include "tools/llmc-run/Npy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>

using namespace llmc;
using namespace llmc::run;
using namespace llmc::rt;

namespace {

Status setInput(GraphSession &session, const std::string &name, const std::string &path) {
  LLMC_ASSIGN_OR_RETURN(const GraphPort *port, session.findInput(name));
  LLMC_ASSIGN_OR_RETURN(NpyArray array, readNpy(path));
  const std::string wanted = "input '" + name + "' is " + port->typeText();
  if (!acceptsNpyType(port->element, array.type))
    return invalidArgument(path + " has elements of type '" + array.type + "'; " + wanted +
                           ", which is '" + npyType(port->element) + "'");
  if (array.shape != port->shape) {
    GraphPort given{name, port->element, array.shape, {}};
    return invalidArgument(path + " is " + given.typeText() + "; " + wanted);
  }
  return session.setInput(*port, array.bytes);
}

/// Names of outputs are paths to their producers in some exporters.
std::string fileName(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  if (name.empty() || name[0] == '.')
    name.insert(0, "_");
  return name + ".npy";
}

} // namespace

Status llmc::run::runGraph(const Options &options) {
  LLMC_ASSIGN_OR_RETURN(auto model, Model::load(options.model, options.load));
  LLMC_ASSIGN_OR_RETURN(std::shared_ptr<WorkerPool> pool,
                        WorkerPool::create(options.threads ? options.threads : usableCores()));
  LLMC_ASSIGN_OR_RETURN(auto session, GraphSession::create(std::move(model), std::move(pool)));
  std::vector<std::string> missing;
  for (const GraphPort &port : session->inputs())
    missing.push_back(port.name);
  for (const auto &[name, path] : options.inputs) {
    LLMC_RETURN_IF_ERROR(setInput(*session, name, path));
    std::erase(missing, name);
  }
  if (!missing.empty()) {
    LLMC_ASSIGN_OR_RETURN(const GraphPort *port, session->findInput(missing.front()));
    return invalidArgument("input '" + port->name + "', " + port->typeText() +
                           ", is missing; give it with --input " + port->name + "=FILE.npy");
  }
  if (mkdir(options.outputDir.c_str(), 0777) != 0 && errno != EEXIST)
    return notFound("cannot create " + options.outputDir + ": " + std::strerror(errno));
  session->run();
  for (const GraphPort &port : session->outputs())
    LLMC_RETURN_IF_ERROR(writeNpy(options.outputDir + "/" + fileName(port.name),
                                  npyType(port.element), port.shape, port.bytes));
  return {};
}
