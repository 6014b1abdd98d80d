//===- Wire.h - protobuf's wire format --------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A message is a sequence of fields. A field is a varint `number << 3 | type`, then
//
//   type 0   a varint: seven bits per byte, low ones first, the top bit says "more"
//   type 1   8 bytes
//   type 2   a varint length, then that many bytes: a string, a nested message, or
//            repeated numbers one after the other ("packed")
//   type 5   4 bytes
//
// Fields come in any order; of a field that is not repeated the last one counts;
// unknown fields are skipped, which is how newer files stay readable. Nothing is
// copied: bytes and strings stay where they are in the file, so that a weight inside
// a model file has an offset, as one beside it has.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_ONNX_WIRE_H
#define LLMC_FRONTENDS_ONNX_WIRE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstring>
#include <optional>
#include <vector>

namespace llmc::onnx {

struct WireField {
  enum Type : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
  uint32_t number = 0;
  Type type = Varint;
  uint64_t value = 0;            ///< Varint, Fixed64, Fixed32
  llvm::ArrayRef<uint8_t> bytes; ///< Bytes

  llvm::StringRef text() const {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  }
  int64_t integer() const { return int64_t(value); }
  float number32() const {
    float result;
    uint32_t bits = uint32_t(value);
    std::memcpy(&result, &bits, 4);
    return result;
  }
};

/// Walks the fields of one message. After `next` gave false, `failed` tells damage from the end.
class WireReader {
public:
  explicit WireReader(llvm::ArrayRef<uint8_t> message) : rest(message) {}

  bool next(WireField &field);
  bool failed() const { return isBad; }
  /// First byte not read yet.
  const uint8_t *position() const { return rest.data(); }

private:
  bool varint(uint64_t &value);
  bool bad() {
    isBad = true;
    return false;
  }

  llvm::ArrayRef<uint8_t> rest;
  bool isBad = false;
};

/// A message with a text in field 1 and something in field 2: a ValueInfoProto, or an entry of
/// strings. Nothing where it is damaged.
struct NamedField {
  llvm::StringRef name;
  WireField value;
};
std::optional<NamedField> readNamedField(llvm::ArrayRef<uint8_t> message);

/// Appends the numbers of one occurrence of a repeated varint field, packed or single; false where
/// the field has another type or its bytes end within a number.
bool appendIntegers(const WireField &field, std::vector<int64_t> &values);

} // namespace llmc::onnx

#endif // LLMC_FRONTENDS_ONNX_WIRE_H
