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

llvm::Expected<std::string> cuda::assemble(llvm::StringRef ptxas, llvm::StringRef ptx,
                                           const Target &target, std::string &log) {
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
  int status = llvm::sys::ExecuteAndWait(ptxas, {ptxas, arch, "-O3", "-v", "-o", out, in},
                                         std::nullopt, {"", said.str(), said.str()}, 0, 0, &error);
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
