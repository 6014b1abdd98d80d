//===- ImportError.cpp - why a model file was refused ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/common/ImportError.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llmc;
using llvm::StringRef;
using llvm::Twine;

char ImportError::ID = 0;

static llvm::Error make(ImportError::Kind kind, StringRef file, const Twine &message) {
  return llvm::make_error<ImportError>(kind, (file + ": " + message).str());
}

llvm::Error llmc::unreadable(StringRef file, const Twine &message) {
  return make(ImportError::Kind::Unreadable, file, message);
}
llvm::Error llmc::corrupt(StringRef file, const Twine &message) {
  return make(ImportError::Kind::Corrupt, file, message);
}
llvm::Error llmc::unsupported(StringRef file, const Twine &message) {
  return make(ImportError::Kind::Unsupported, file, message);
}

std::string llmc::quoted(StringRef name) {
  constexpr size_t kLongest = 80;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '\'';
  os.write_escaped(name.take_front(kLongest));
  os << (name.size() > kLongest ? "...'" : "'");
  return text;
}

std::string llmc::numberText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}
