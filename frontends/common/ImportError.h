//===- ImportError.h - why a model file was refused -------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Frontends refuse a file with one line that names the file, the place, the
// reason and, where there is one, the remedy. The kind tells a damaged file
// from a sound one that this compiler cannot do.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_COMMON_IMPORTERROR_H
#define LLMC_FRONTENDS_COMMON_IMPORTERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace llmc {

class ImportError : public llvm::ErrorInfo<ImportError> {
public:
  enum class Kind {
    Unreadable,  ///< the file, or a part of a set, cannot be opened
    Corrupt,     ///< the bytes contradict the format: damaged, truncated or hostile
    Unsupported, ///< well-formed, but this compiler cannot do it
  };
  static char ID;

  ImportError(Kind kind, std::string message) : kind(kind), message(std::move(message)) {}

  Kind getKind() const { return kind; }
  llvm::StringRef getMessage() const { return message; }
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  Kind kind;
  std::string message;
};

/// "<file>: <message>" of the given kind.
llvm::Error unreadable(llvm::StringRef file, const llvm::Twine &message);
llvm::Error corrupt(llvm::StringRef file, const llvm::Twine &message);
llvm::Error unsupported(llvm::StringRef file, const llvm::Twine &message);

/// A name from a file, quoted and made safe to print on one line: control and non-ASCII bytes are
/// escaped, long names are shortened.
std::string quoted(llvm::StringRef name);

/// A number with up to six significant digits.
std::string numberText(double value);

} // namespace llmc

#endif // LLMC_FRONTENDS_COMMON_IMPORTERROR_H
