//===- Ptxas.cpp - PTX becomes a cubin ------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/CodeObject.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>

using namespace llmc;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

std::string cuda::findPtxas() {
  if (std::optional<std::string> named = llvm::sys::Process::GetEnv("LLMC_PTXAS"))
    return *named;
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  std::string home = llvm::sys::Process::GetEnv("CUDA_HOME").value_or("/usr/local/cuda") + "/bin";
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas", {home}))
    return *found;
  return "";
}

/// Names of the kernels that `log` says have a stack.
static std::vector<std::string> spilling(llvm::StringRef log) {
  std::vector<std::string> kernels;
  llvm::StringRef name, line;
  while (!log.empty()) {
    std::tie(line, log) = log.split('\n');
    if (auto [before, after] = line.split("Compiling entry function '"); !after.empty())
      name = after.split('\'').first;
    if (line.contains("bytes stack frame") && !line.ltrim().starts_with("0 bytes"))
      kernels.push_back(name.str());
  }
  return kernels;
}

/// Asks for room for `blocks` blocks of a kernel on a multiprocessor; for 0, does not.
static void setMinBlocks(std::string &ptx, llvm::StringRef kernel, int blocks) {
  size_t entry = ptx.find((".entry " + kernel + "(").str());
  size_t body = ptx.find("\n{", entry);
  if (entry == std::string::npos || body == std::string::npos)
    return;
  size_t old = ptx.find("\n.minnctapersm ", entry);
  if (old < body) {
    size_t end = ptx.find('\n', old + 1);
    ptx.erase(old, end - old);
    body -= end - old;
  }
  if (blocks)
    ptx.insert(body, "\n.minnctapersm " + std::to_string(blocks));
}

llvm::Expected<std::string> cuda::assembleWithoutSpills(llvm::StringRef ptxas, std::string &ptx,
                                                        const Target &target, std::string &log) {
  // How eagerly ptxas moves loads forward, and how many registers it gives a kernel, depends on a
  // level and on the blocks it is told to make room for. There is no rule for what suits a kernel.
  llvm::Expected<std::string> best = assemble(ptxas, ptx, target, log);
  if (!best)
    return best;
  const std::string original = ptx;
  std::vector<std::string> kernels = spilling(log);
  for (unsigned level : {kUsageLevel, 0u}) {
    std::string tried = original;
    std::vector<std::string> changed;
    for (int blocks : {-1, 2, 3, 0}) { // -1: as it is
      if (kernels.empty())
        return best;
      if (blocks < 0 && level == kUsageLevel) {
        changed = kernels;
        continue;
      }
      if (blocks >= 0)
        for (const std::string &kernel : changed)
          setMinBlocks(tried, kernel, blocks);
      std::string said;
      llvm::Expected<std::string> cubin = assemble(ptxas, tried, target, said, level);
      if (!cubin)
        return cubin;
      changed = spilling(said);
      if (changed.size() >= kernels.size())
        continue;
      best = std::move(cubin);
      ptx = tried;
      log = said;
      kernels = changed;
    }
  }
  return best;
}

llvm::Expected<std::string> cuda::assemble(llvm::StringRef ptxas, llvm::StringRef ptx,
                                           const Target &target, std::string &log,
                                           unsigned usageLevel) {
  llvm::SmallString<128> in, out, said;
  for (auto [suffix, path] : {std::pair("ptx", &in), {"cubin", &out}, {"txt", &said}})
    if (std::error_code ec = llvm::sys::fs::createTemporaryFile("llmc", suffix, *path))
      return makeError("cannot create a temporary file: " + ec.message());
  llvm::FileRemover removeIn(in), removeOut(out), removeSaid(said);
  std::error_code ec;
  llvm::raw_fd_ostream(in, ec) << ptx;
  if (ec)
    return makeError("cannot write '" + in + "': " + ec.message());
  std::string arch = ("-arch=" + target.chip).str();
  std::string error;
  std::string usage = "--register-usage-level=" + std::to_string(usageLevel);
  llvm::SmallVector<llvm::StringRef> arguments = {ptxas, arch, "-O3", "-v", "-o", out, in};
  if (usageLevel != kUsageLevel) // an option that is not very old
    arguments.push_back(usage);
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt,
                                         {"", said.str(), said.str()}, 0, 0, &error);
  if (auto text = llvm::MemoryBuffer::getFile(said))
    log = (*text)->getBuffer().str();
  if (status != 0)
    return makeError("ptxas ('" + ptxas + "') failed: " +
                     (error.empty() ? llvm::StringRef(log).split('\n').first : error));
  auto cubin = llvm::MemoryBuffer::getFile(out, false, false);
  if (!cubin)
    return makeError("ptxas wrote nothing: " + cubin.getError().message());
  return (*cubin)->getBuffer().str();
}
