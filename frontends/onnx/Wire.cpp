//===- Wire.cpp - protobuf's wire format ----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Wire.h"

using namespace llmc;
using namespace llmc::onnx;

bool WireReader::varint(uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest.empty())
      return bad();
    uint8_t byte = rest.front();
    rest = rest.drop_front();
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return bad();
}

bool WireReader::next(WireField &field) {
  if (isBad || rest.empty())
    return false;
  uint64_t tag;
  if (!varint(tag))
    return false;
  if (tag >> 3 == 0 || tag >> 3 > (1u << 29))
    return bad();
  field = WireField();
  field.number = uint32_t(tag >> 3);
  field.type = WireField::Type(tag & 7);
  switch (field.type) {
  case WireField::Varint:
    return varint(field.value);
  case WireField::Bytes: {
    uint64_t length;
    if (!varint(length))
      return false;
    if (length > rest.size())
      return bad();
    field.bytes = rest.take_front(length);
    rest = rest.drop_front(length);
    return true;
  }
  case WireField::Fixed32:
  case WireField::Fixed64: {
    size_t size = field.type == WireField::Fixed32 ? 4 : 8;
    if (rest.size() < size)
      return bad();
    std::memcpy(&field.value, rest.data(), size);
    rest = rest.drop_front(size);
    return true;
  }
  }
  return bad(); // groups, which protobuf has given up, and undefined types
}

std::optional<NamedField> onnx::readNamedField(llvm::ArrayRef<uint8_t> message) {
  WireReader reader(message);
  NamedField result;
  WireField f;
  while (reader.next(f)) {
    if (f.number == 1)
      result.name = f.text();
    else if (f.number == 2)
      result.value = f;
  }
  return reader.failed() ? std::nullopt : std::optional(result);
}

bool onnx::appendIntegers(const WireField &field, std::vector<int64_t> &values) {
  if (field.type == WireField::Varint) {
    values.push_back(field.integer());
    return true;
  }
  if (field.type != WireField::Bytes)
    return false;
  llvm::ArrayRef<uint8_t> rest = field.bytes;
  while (!rest.empty()) {
    uint64_t value = 0;
    unsigned shift = 0;
    while (true) {
      if (rest.empty() || shift >= 64)
        return false;
      uint8_t byte = rest.front();
      rest = rest.drop_front();
      value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        break;
      shift += 7;
    }
    values.push_back(int64_t(value));
  }
  return true;
}
