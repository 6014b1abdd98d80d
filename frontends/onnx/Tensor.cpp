//===- Tensor.cpp - a tensor's bytes, in a file or in memory --------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cmath>
#include <cstring>

using namespace llmc;
using namespace llmc::onnx;

std::optional<int64_t> onnx::elementCount(llvm::ArrayRef<int64_t> dims) {
  // A zero does not excuse an overflow beside it: the sizes would not be representable.
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return std::nullopt;
    if (dim == 0)
      empty = true;
    else if (llvm::MulOverflow(count, dim, count))
      return std::nullopt;
  }
  return empty ? 0 : count;
}

std::optional<uint64_t> onnx::tensorBytes(ElementType type, int64_t elements) {
  uint64_t bits;
  if (__builtin_mul_overflow(uint64_t(elements), uint64_t(elementBits(type)), &bits))
    return std::nullopt;
  return bits / 8 + (bits % 8 != 0);
}

/// The bits of element i, which are the low ones of the result.
static uint64_t loadBits(const Tensor &t, int64_t i) {
  unsigned bits = elementBits(t.type);
  if (bits == 0)
    return 0; // strings are no numbers
  if (bits < 8) {
    unsigned perByte = 8 / bits;
    return t.bytes[size_t(i) / perByte] >> (size_t(i) % perByte * bits) & ((1u << bits) - 1);
  }
  uint64_t value = 0;
  std::memcpy(&value, t.bytes.data() + size_t(i) * (bits / 8), std::min(bits / 8, 8u));
  return value;
}

static void storeBits(ElementType type, std::vector<uint8_t> &bytes, size_t i, uint64_t value) {
  unsigned bits = elementBits(type);
  if (bits == 0)
    return;
  if (bits < 8) {
    unsigned perByte = 8 / bits;
    bytes[i / perByte] |= uint8_t((value & ((1u << bits) - 1)) << (i % perByte * bits));
    return;
  }
  std::memcpy(bytes.data() + i * (bits / 8), &value, std::min(bits / 8, 8u));
}

int64_t Tensor::integer(int64_t i) const {
  if (isFloat(type)) {
    double value = number(i);
    return value >= -0x1p63 && value < 0x1p63 ? int64_t(value) : INT64_MIN;
  }
  uint64_t bits = loadBits(*this, i);
  if (type == ElementType::Bool)
    return bits != 0;
  return isSignedInteger(type) ? llvm::SignExtend64(bits, elementBits(type)) : int64_t(bits);
}

double Tensor::number(int64_t i) const {
  if (isFloat(type))
    return floatFromBits(type, loadBits(*this, i));
  return type == ElementType::UInt64 ? double(uint64_t(integer(i))) : double(integer(i));
}

std::vector<double> Tensor::doubles() const {
  std::vector<double> values(size_t(elements()), 0.0);
  if (type == ElementType::Float) {
    for (size_t i = 0; i < values.size(); ++i) {
      float value;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      values[i] = double(value);
    }
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = number(int64_t(i));
  return values;
}

std::vector<int64_t> Tensor::integers() const {
  std::vector<int64_t> values(size_t(elements()), 0);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = integer(int64_t(i));
  return values;
}

Tensor Tensor::ofBytes(ElementType type, llvm::ArrayRef<int64_t> dims, std::vector<uint8_t> bytes) {
  Tensor t;
  t.type = type;
  t.dims.assign(dims.begin(), dims.end());
  auto owned = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  t.bytes = *owned;
  t.storage = std::move(owned);
  return t;
}

static std::vector<uint8_t> room(ElementType type, size_t elements) {
  return std::vector<uint8_t>(tensorBytes(type, int64_t(elements)).value_or(0));
}

Tensor Tensor::ofIntegers(ElementType type, llvm::ArrayRef<int64_t> dims,
                          llvm::ArrayRef<int64_t> values) {
  if (isFloat(type))
    return ofDoubles(type, dims, std::vector<double>(values.begin(), values.end()));
  assert(elementCount(dims) == int64_t(values.size()) && "dims and values disagree");
  std::vector<uint8_t> bytes = room(type, values.size());
  for (auto [i, value] : llvm::enumerate(values))
    storeBits(type, bytes, i, type == ElementType::Bool ? value != 0 : uint64_t(value));
  return ofBytes(type, dims, std::move(bytes));
}

Tensor Tensor::ofDoubles(ElementType type, llvm::ArrayRef<int64_t> dims,
                         llvm::ArrayRef<double> values) {
  assert(elementCount(dims) == int64_t(values.size()) && "dims and values disagree");
  std::vector<uint8_t> bytes = room(type, values.size());
  for (auto [i, value] : llvm::enumerate(values)) {
    if (isFloat(type))
      storeBits(type, bytes, i, floatToBits(type, value));
    else if (type == ElementType::Bool)
      storeBits(type, bytes, i, value != 0);
    else if (type == ElementType::UInt64 && value >= 0x1p63)
      storeBits(type, bytes, i, value < 0x1p64 ? uint64_t(value) : UINT64_MAX);
    else
      storeBits(type, bytes, i,
                uint64_t(value >= -0x1p63 && value < 0x1p63 ? int64_t(value) : INT64_MIN));
  }
  return ofBytes(type, dims, std::move(bytes));
}

Tensor Tensor::ofStrings(llvm::ArrayRef<int64_t> dims, std::vector<std::string> values) {
  Tensor t;
  t.type = ElementType::String;
  t.dims.assign(dims.begin(), dims.end());
  t.strings = std::make_shared<const std::vector<std::string>>(std::move(values));
  return t;
}
