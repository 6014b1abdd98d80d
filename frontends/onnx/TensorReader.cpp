//===- TensorReader.cpp - TensorProto -> Tensor ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/TensorReader.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/Wire.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {

constexpr size_t kMostDims = 32;

class TensorReader {
public:
  TensorReader(std::vector<SourceFile> &files, ExternalFiles &external)
      : files(files), external(external) {}

  Expected<NamedTensor> read(ArrayRef<uint8_t> message);

private:
  Error fail(const Twine &why) {
    return corrupt(files.front().path, "tensor " + quoted(result.name) + " " + why);
  }
  Error readField(const WireField &field);
  Error readExternalEntry(const WireField &field);
  Error place();
  Error placeExternal();
  Error placeNumbers();
  void placeMapped(ArrayRef<uint8_t> bytes) {
    Tensor &t = result.tensor;
    t.bytes = bytes;
    t.file = 0;
    t.offset = uint64_t(bytes.data() -
                        reinterpret_cast<const uint8_t *>(files.front().bytes->getBufferStart()));
  }

  std::vector<SourceFile> &files;
  ExternalFiles &external;
  NamedTensor result;
  std::vector<int64_t> dims, integers;
  uint64_t type = 0;
  std::optional<ArrayRef<uint8_t>> raw;
  /// Packed floats or doubles; a second piece, or single numbers, go to `scattered`.
  std::optional<ArrayRef<uint8_t>> packed;
  std::vector<uint8_t> scattered;
  std::vector<std::string> strings;
  unsigned integerField = 0, floatField = 0;
  bool isExternal = false, hasSegment = false;
  std::optional<StringRef> location, offset, length;
};

} // namespace

Error TensorReader::readExternalEntry(const WireField &field) {
  std::optional<NamedField> entry = readNamedField(field.bytes);
  if (!entry)
    return fail("has damaged external data");
  StringRef key = entry->name, value = entry->value.text();
  if (key == "location")
    location = value;
  else if (key == "offset")
    offset = value;
  else if (key == "length")
    length = value;
  return Error::success();
}

Error TensorReader::readField(const WireField &field) {
  bool isBytes = field.type == WireField::Bytes;
  switch (field.number) {
  case 1:
    if (!appendIntegers(field, dims))
      return fail("has damaged dimensions");
    return dims.size() > kMostDims ? fail("has more than 32 dimensions") : Error::success();
  case 2:
    type = field.value;
    return Error::success();
  case 3:
    hasSegment = true;
    return Error::success();
  case 4:
  case 10:
    floatField = field.number;
    if (isBytes && !packed && scattered.empty()) {
      packed = field.bytes;
    } else {
      if (packed)
        scattered.assign(packed->begin(), packed->end());
      packed.reset();
      const auto *value = reinterpret_cast<const uint8_t *>(&field.value);
      ArrayRef<uint8_t> more =
          isBytes ? field.bytes : ArrayRef<uint8_t>(value, field.number == 4 ? 4 : 8);
      scattered.insert(scattered.end(), more.begin(), more.end());
    }
    return Error::success();
  case 5:
  case 7:
  case 11:
    integerField = field.number;
    return appendIntegers(field, integers) ? Error::success() : fail("has damaged numbers");
  case 6:
    if (isBytes)
      strings.push_back(field.text().str());
    return Error::success();
  case 8:
    if (isBytes)
      result.name = field.text();
    return Error::success();
  case 9:
    if (isBytes)
      raw = field.bytes;
    return Error::success();
  case 13:
    return isBytes ? readExternalEntry(field) : Error::success();
  case 14:
    isExternal = field.value == 1;
    return Error::success();
  default:
    return Error::success();
  }
}

/// A decimal number in an external data entry.
static bool parseCount(StringRef text, uint64_t &value) {
  return !text.empty() && !text.getAsInteger(10, value);
}

Error TensorReader::placeExternal() {
  Tensor &t = result.tensor;
  if (!location)
    return fail("has external data without a location");
  uint64_t begin = 0, need = tensorBytes(t.type, t.elements()).value_or(0), given = need;
  if (offset && !parseCount(*offset, begin))
    return fail("has the external offset " + quoted(*offset) + ", which is no number");
  if (length && !parseCount(*length, given))
    return fail("has the external length " + quoted(*length) + ", which is no number");
  if (given != need)
    return fail("needs " + Twine(need) + " bytes, its external data has " + Twine(given));
  Expected<unsigned> file = external.open(*location);
  if (!file)
    return file.takeError();
  uint64_t size = files[*file].bytes->getBufferSize();
  if (begin > size || need > size - begin)
    return fail("needs bytes " + Twine(begin) + " to " + Twine(begin) + "+" + Twine(need) + " of " +
                quoted(*location) + ", which has " + Twine(size));
  t.file = int(*file);
  t.offset = begin;
  t.bytes = {reinterpret_cast<const uint8_t *>(files[*file].bytes->getBufferStart()) + begin,
             size_t(need)};
  return Error::success();
}

/// The elements are varints: one per element, or per byte of packed small ones.
Error TensorReader::placeNumbers() {
  Tensor &t = result.tensor;
  unsigned bits = elementBits(t.type);
  bool wide = t.type == ElementType::Int64 || t.type == ElementType::UInt64 ||
              t.type == ElementType::UInt32;
  bool sound = integerField == 5
                   ? bits <= 32 && t.type != ElementType::Float && t.type != ElementType::UInt32
                   : wide;
  if (!sound)
    return fail("has type " + elementTypeName(t.type) + " but other numbers");
  unsigned unit = std::max(bits, 8u) / 8;
  std::vector<uint8_t> bytes(integers.size() * unit);
  for (auto [i, value] : llvm::enumerate(integers))
    std::memcpy(bytes.data() + i * unit, &value, unit);
  Tensor owned = Tensor::ofBytes(t.type, t.dims, std::move(bytes));
  t.bytes = owned.bytes;
  t.storage = owned.storage;
  return Error::success();
}

Error TensorReader::place() {
  Tensor &t = result.tensor;
  if (type == 0 || type >= kElementTypes)
    return fail("has the element type " + Twine(type) + ", which is not known");
  t.type = ElementType(type);
  t.dims.assign(dims.begin(), dims.end());
  std::optional<int64_t> elements = elementCount(t.dims);
  std::optional<uint64_t> need = elements ? tensorBytes(t.type, *elements) : std::nullopt;
  if (!need)
    return fail("has a negative dimension, or more elements than can be");
  if (hasSegment)
    return unsupported(files.front().path,
                       "tensor " + quoted(result.name) + " is a segment of another");
  if (t.type == ElementType::String) {
    if (strings.size() != size_t(*elements))
      return fail("has " + Twine(strings.size()) + " strings, its shape asks for " +
                  Twine(*elements));
    t.strings = std::make_shared<const std::vector<std::string>>(std::move(strings));
    return Error::success();
  }
  if (isExternal || (location && !raw))
    return placeExternal();
  if (raw) {
    placeMapped(*raw);
  } else if (integerField) {
    if (Error error = placeNumbers())
      return error;
  } else if (floatField) {
    bool isDouble = t.type == ElementType::Double || t.type == ElementType::Complex128;
    bool isSingle = t.type == ElementType::Float || t.type == ElementType::Complex64;
    if (floatField == 4 ? !isSingle : !isDouble)
      return fail("has type " + elementTypeName(t.type) + " but other numbers");
    if (packed) {
      placeMapped(*packed);
    } else {
      Tensor owned = Tensor::ofBytes(t.type, t.dims, std::move(scattered));
      t.bytes = owned.bytes;
      t.storage = owned.storage;
    }
  }
  if (t.bytes.size() != *need)
    return fail("has " + Twine(t.bytes.size()) + " bytes, its shape and type ask for " +
                Twine(*need));
  return Error::success();
}

Expected<NamedTensor> TensorReader::read(ArrayRef<uint8_t> message) {
  WireReader reader(message);
  WireField field;
  while (reader.next(field))
    if (Error error = readField(field))
      return std::move(error);
  if (reader.failed())
    return fail("is damaged");
  if (Error error = place())
    return std::move(error);
  return std::move(result);
}

Expected<NamedTensor> onnx::readTensor(ArrayRef<uint8_t> message, std::vector<SourceFile> &files,
                                       ExternalFiles &external) {
  return TensorReader(files, external).read(message);
}
