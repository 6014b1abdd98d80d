//===- GgufFile.h - one GGUF file, mapped and checked -----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The byte format, versions 2 and 3. All integers are little-endian and
// unaligned; `string` is u64 length, then that many bytes (UTF-8, no NUL).
//
//   "GGUF"                      4 bytes
//   version                     u32: 2 or 3
//   number of tensors           u64
//   number of metadata entries  u64
//   entries, each:
//     key                       string, not empty, unique
//     value type                u32, see ValueType
//     value                     bool: 1 byte, 0 or 1; string; numbers as they are;
//                               array: element type u32, count u64, elements
//                               (no arrays of arrays)
//   tensors, each:
//     name                      string, unique
//     number of dimensions      u32: 1 to 4
//     dimensions                u64 each, none is 0; the first varies fastest: a
//                               matrix of N rows and K columns says (K, N)
//     ggml type                 u32, see compiler/weights/Format.h
//     offset                    u64 from the start of the data, a multiple of the alignment
//   padding                     to a multiple of the alignment
//   data                        of the tensors; each is padded to the alignment,
//                               the last one need not be
//
// The alignment is the entry general.alignment (u32, a power of two), or 32.
//
// A model may be split: parts are files of their own, named
// `<prefix>-00001-of-00003.gguf`, with the entries split.no (u16, from 0),
// split.count (u16) and split.tensors.count (i32, of the whole set); see GgufSet.
//
// The reader maps the file and keeps views into it: it copies no array and no
// tensor. Every count, length, dimension and offset is compared with what the
// file can hold before it is used, so hostile input costs no more memory than
// its own size in entries.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_GGUFFILE_H
#define LLMC_FRONTENDS_GGUF_GGUFFILE_H

#include "compiler/weights/Format.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llmc::gguf {

/// Numbered from 0 as in the file.
enum class ValueType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64
};
inline constexpr uint32_t kValueTypes = 13;

/// A metadata value; views into the mapped file.
struct MetaValue {
  ValueType type; ///< of the value, or of the elements
  bool isArray = false;
  uint64_t count = 1;    ///< number of elements
  llvm::StringRef bytes; ///< the elements as they are in the file

  /// Element i as the wanted kind; nothing where the type is another.
  std::optional<uint64_t> asUnsigned(uint64_t i = 0) const; ///< any integer that is not negative
  std::optional<int64_t> asSigned(uint64_t i = 0) const;    ///< any integer that fits
  std::optional<double> asNumber(uint64_t i = 0) const;     ///< any number
  std::optional<bool> asBool(uint64_t i = 0) const;         ///< bool, or integer 0 or 1
  std::optional<llvm::StringRef> asString() const;          ///< a scalar string

  /// Visits the elements of a string array in order.
  void forEachString(llvm::function_ref<void(uint64_t, llvm::StringRef)> visit) const;
  /// "u32", "string array of 49152", ...
  std::string typeName() const;
};

struct Entry {
  llvm::StringRef key;
  MetaValue value;
};

struct Tensor {
  llvm::StringRef name;
  llvm::SmallVector<uint64_t, 2> shape; ///< rows first: {N, K} or {K}; leading ones removed
  const Encoding *encoding;
  uint64_t offset; ///< in the file
  uint64_t bytes;

  uint64_t elements() const {
    uint64_t n = 1;
    for (uint64_t dim : shape)
      n *= dim;
    return n;
  }
};

class GgufFile {
public:
  /// Maps and checks a file.
  static llvm::Expected<GgufFile> open(llvm::StringRef path);
  /// Checks bytes; their identifier is the file's name in messages.
  static llvm::Expected<GgufFile> parse(std::unique_ptr<llvm::MemoryBuffer> bytes);

  llvm::StringRef path() const { return bytes->getBufferIdentifier(); }
  uint32_t version() const { return formatVersion; }
  llvm::ArrayRef<Entry> entries() const { return metadata; }
  llvm::ArrayRef<Tensor> tensors() const { return tensorInfos; }
  const MetaValue *find(llvm::StringRef key) const;
  const uint8_t *data(const Tensor &tensor) const {
    return reinterpret_cast<const uint8_t *>(bytes->getBufferStart()) + tensor.offset;
  }
  /// Gives up the mapping; names and values stay valid as long as the buffer lives.
  std::unique_ptr<llvm::MemoryBuffer> takeBytes() { return std::move(bytes); }

private:
  friend class Parser;
  std::unique_ptr<llvm::MemoryBuffer> bytes;
  uint32_t formatVersion = 0;
  std::vector<Entry> metadata;
  std::vector<Tensor> tensorInfos;
  llvm::DenseMap<llvm::StringRef, size_t> keyIndex;
};

/// The name of a ggml type that this compiler does not read, or "" where none is known.
llvm::StringRef unreadTypeName(uint32_t ggmlType);

} // namespace llmc::gguf

#endif // LLMC_FRONTENDS_GGUF_GGUFFILE_H
