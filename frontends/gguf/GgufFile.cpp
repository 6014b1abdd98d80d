//===- GgufFile.cpp - one GGUF file, mapped and checked -------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufFile.h"
#include "frontends/common/ImportError.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc;
using namespace llmc::gguf;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {
struct TypeInfo {
  llvm::StringLiteral name;
  uint32_t bytes; ///< per element; 0 for strings and arrays
};
constexpr TypeInfo kTypes[kValueTypes] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8},
};
const TypeInfo &info(ValueType type) { return kTypes[uint32_t(type)]; }

template <typename T> T load(StringRef bytes, uint64_t index) {
  return llvm::support::endian::read<T>(bytes.data() + index * sizeof(T), llvm::endianness::little);
}
} // namespace

std::optional<int64_t> MetaValue::asSigned(uint64_t i) const {
  if (i >= count)
    return std::nullopt;
  switch (type) {
  case ValueType::U8:
    return load<uint8_t>(bytes, i);
  case ValueType::I8:
    return load<int8_t>(bytes, i);
  case ValueType::U16:
    return load<uint16_t>(bytes, i);
  case ValueType::I16:
    return load<int16_t>(bytes, i);
  case ValueType::U32:
    return load<uint32_t>(bytes, i);
  case ValueType::I32:
    return load<int32_t>(bytes, i);
  case ValueType::I64:
    return load<int64_t>(bytes, i);
  case ValueType::U64:
    if (uint64_t value = load<uint64_t>(bytes, i); value <= uint64_t(INT64_MAX))
      return int64_t(value);
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

std::optional<uint64_t> MetaValue::asUnsigned(uint64_t i) const {
  std::optional<int64_t> value = asSigned(i);
  if (!value || *value < 0)
    return std::nullopt;
  return uint64_t(*value);
}

std::optional<double> MetaValue::asNumber(uint64_t i) const {
  if (i < count && type == ValueType::F32)
    return llvm::bit_cast<float>(load<uint32_t>(bytes, i));
  if (i < count && type == ValueType::F64)
    return llvm::bit_cast<double>(load<uint64_t>(bytes, i));
  if (std::optional<int64_t> value = asSigned(i))
    return double(*value);
  return std::nullopt;
}

std::optional<bool> MetaValue::asBool(uint64_t i) const {
  if (i < count && type == ValueType::Bool)
    return bytes[i] != 0;
  std::optional<int64_t> value = asSigned(i);
  if (value && (*value == 0 || *value == 1))
    return *value == 1;
  return std::nullopt;
}

std::optional<StringRef> MetaValue::asString() const {
  if (type != ValueType::String || isArray)
    return std::nullopt;
  return bytes.drop_front(8);
}

void MetaValue::forEachString(llvm::function_ref<void(uint64_t, StringRef)> visit) const {
  if (type != ValueType::String)
    return;
  StringRef rest = bytes;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length = load<uint64_t>(rest, 0);
    visit(i, rest.substr(8, length));
    rest = rest.drop_front(8 + length);
  }
}

std::string MetaValue::typeName() const {
  std::string name = info(type).name.str();
  return isArray ? name + " array of " + std::to_string(count) : name;
}

StringRef gguf::unreadTypeName(uint32_t ggmlType) {
  static constexpr std::pair<uint32_t, llvm::StringLiteral> kNames[] = {
      {4, "q4_2"},     {5, "q4_3"},   {9, "q8_1"},   {15, "q8_k"},  {16, "iq2_xxs"}, {17, "iq2_xs"},
      {18, "iq3_xxs"}, {19, "iq1_s"}, {21, "iq3_s"}, {22, "iq2_s"}, {24, "i8"},      {25, "i16"},
      {26, "i32"},     {27, "i64"},   {28, "f64"},   {29, "iq1_m"}, {34, "tq1_0"},   {35, "tq2_0"},
      {39, "mxfp4"},   {40, "nvfp4"}, {41, "q1_0"},  {42, "q2_0"}};
  for (const auto &[id, name] : kNames)
    if (id == ggmlType)
      return name;
  return "";
}

//===----------------------------------------------------------------------===//
// Parser
//===----------------------------------------------------------------------===//

namespace llmc::gguf {

/// Reads a file front to back. `pos` never leaves the file.
class Parser {
public:
  explicit Parser(GgufFile &file) : file(file), bytes(file.bytes->getBuffer()) {}
  Error run();

private:
  Error bad(const Twine &message) { return corrupt(file.path(), message); }
  Error take(uint64_t length, const Twine &what, StringRef &out);
  template <typename T> Error read(const Twine &what, T &out) {
    StringRef raw;
    if (Error error = take(sizeof(T), what, raw))
      return error;
    out = load<T>(raw, 0);
    return Error::success();
  }
  Error readString(const Twine &what, StringRef &out);
  Error readHeader();
  Error readEntry(uint64_t index);
  Error readElements(const Twine &what, MetaValue &value);
  Error readAlignment();
  Error readTensor(uint64_t index);
  Error placeTensors();

  GgufFile &file;
  StringRef bytes;
  uint64_t pos = 0;
  uint64_t tensorCount = 0, entryCount = 0, alignment = 32;
  llvm::DenseSet<StringRef> tensorNames;
};

} // namespace llmc::gguf

Error Parser::take(uint64_t length, const Twine &what, StringRef &out) {
  if (length > bytes.size() - pos) {
    // A wild length cannot be added to the position.
    std::string needed = length <= uint64_t(INT64_MAX) - pos
                             ? "needs at least " + std::to_string(pos + length) + " bytes"
                             : "has a length of " + std::to_string(length);
    return bad(what + " " + needed + ", the file has " + Twine(bytes.size()) +
               "; it is truncated or damaged");
  }
  out = bytes.substr(pos, length);
  pos += length;
  return Error::success();
}

Error Parser::readString(const Twine &what, StringRef &out) {
  uint64_t length = 0;
  if (Error error = read(what, length))
    return error;
  return take(length, what, out);
}

Error Parser::readHeader() {
  StringRef magic;
  if (Error error = take(4, "the magic", magic))
    return error;
  if (magic != "GGUF")
    return bad("not a GGUF file: it begins with " + quoted(magic));
  if (Error error = read("the version", file.formatVersion))
    return error;
  if ((file.formatVersion & 0xffff) == 0 && file.formatVersion != 0)
    return unsupported(file.path(), "the byte order is big-endian (version reads 0x" +
                                        llvm::utohexstr(file.formatVersion) +
                                        "); convert the model to a little-endian GGUF file");
  if (file.formatVersion < 2 || file.formatVersion > 3)
    return unsupported(file.path(), "GGUF version " + Twine(file.formatVersion) +
                                        " is unsupported; versions 2 and 3 are read");
  if (Error error = read("the number of tensors", tensorCount))
    return error;
  if (Error error = read("the number of metadata entries", entryCount))
    return error;
  // The smallest entry is a key of one byte with a value of one; the smallest tensor has an empty
  // name and one dimension.
  constexpr uint64_t kSmallestEntry = 8 + 1 + 4 + 1, kSmallestTensor = 8 + 4 + 8 + 4 + 8;
  uint64_t left = bytes.size() - pos;
  if (entryCount > left / kSmallestEntry)
    return bad("the number of metadata entries, " + Twine(entryCount) +
               ", is more than a file of " + Twine(bytes.size()) + " bytes can hold");
  if (tensorCount > left / kSmallestTensor)
    return bad("the number of tensors, " + Twine(tensorCount) + ", is more than a file of " +
               Twine(bytes.size()) + " bytes can hold");
  // Far above any model; bounds the memory that a large hostile file can ask for.
  constexpr uint64_t kMostEntries = 1 << 16, kMostTensors = 1 << 18;
  if (entryCount > kMostEntries || tensorCount > kMostTensors)
    return unsupported(file.path(), Twine(entryCount) + " metadata entries and " +
                                        Twine(tensorCount) + " tensors are more than " +
                                        Twine(kMostEntries) + " and " + Twine(kMostTensors));
  return Error::success();
}

Error Parser::readElements(const Twine &what, MetaValue &value) {
  if (value.type != ValueType::String) {
    uint64_t size = info(value.type).bytes;
    if (value.count > bytes.size() / size)
      return bad(what + " has a count of " + Twine(value.count) + ", more than a file of " +
                 Twine(bytes.size()) + " bytes can hold");
    return take(value.count * size, what, value.bytes);
  }
  if (value.count > (bytes.size() - pos) / 8)
    return bad(what + " has a count of " + Twine(value.count) + ", more than a file of " +
               Twine(bytes.size()) + " bytes can hold");
  uint64_t begin = pos;
  for (uint64_t i = 0; i < value.count; ++i) {
    StringRef text;
    if (Error error = readString(what, text))
      return error;
  }
  value.bytes = bytes.slice(begin, pos);
  return Error::success();
}

Error Parser::readEntry(uint64_t index) {
  std::string what = "metadata entry " + std::to_string(index);
  Entry entry;
  if (Error error = readString("the key of " + what, entry.key))
    return error;
  if (entry.key.empty())
    return bad(what + " has an empty key");
  what = "metadata entry " + std::to_string(index) + " (" + quoted(entry.key) + ")";
  if (!file.keyIndex.try_emplace(entry.key, index).second)
    return bad(what + " repeats the key of entry " + Twine(file.keyIndex[entry.key]));

  uint32_t type = 0;
  if (Error error = read("the type of " + what, type))
    return error;
  if (type == uint32_t(ValueType::Array)) {
    entry.value.isArray = true;
    if (Error error = read("the element type of " + what, type))
      return error;
    if (Error error = read("the count of " + what, entry.value.count))
      return error;
  }
  if (type >= kValueTypes || type == uint32_t(ValueType::Array))
    return bad(what + " has value type " + Twine(type) +
               (entry.value.isArray ? " inside an array" : "") + ", which does not exist");
  entry.value.type = ValueType(type);
  if (Error error = readElements(what, entry.value))
    return error;
  file.metadata.push_back(entry);
  return Error::success();
}

Error Parser::readAlignment() {
  const MetaValue *value = file.find("general.alignment");
  if (!value)
    return Error::success();
  if (value->isArray || value->type != ValueType::U32)
    return bad("general.alignment is of type " + value->typeName() + "; u32 is expected");
  alignment = *value->asUnsigned();
  if (!llvm::isPowerOf2_64(alignment))
    return bad("general.alignment is " + Twine(alignment) + ", which is no power of two");
  return Error::success();
}

Error Parser::readTensor(uint64_t index) {
  std::string what = "tensor " + std::to_string(index);
  Tensor tensor;
  if (Error error = readString("the name of " + what, tensor.name))
    return error;
  what = "tensor " + quoted(tensor.name);
  if (tensor.name.empty())
    return bad("tensor " + Twine(index) + " has an empty name");
  if (!tensorNames.insert(tensor.name).second)
    return bad(what + " is there twice");

  uint32_t dims = 0;
  if (Error error = read("the number of dimensions of " + what, dims))
    return error;
  if (dims < 1 || dims > 4)
    return bad(what + " has " + Twine(dims) + " dimensions; 1 to 4 are possible");
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dims; ++i) {
    uint64_t dim = 0;
    if (Error error = read("dimension " + Twine(i) + " of " + what, dim))
      return error;
    if (dim == 0)
      return bad(what + " has a dimension " + Twine(i) + " of 0");
    if (dim > uint64_t(INT64_MAX) / elements)
      return bad(what + " has dimensions whose product overflows (dimension " + Twine(i) + " is " +
                 Twine(dim) + ")");
    elements *= dim;
    tensor.shape.insert(tensor.shape.begin(), dim);
  }
  while (tensor.shape.size() > 1 && tensor.shape.front() == 1)
    tensor.shape.erase(tensor.shape.begin());

  uint32_t type = 0;
  if (Error error = read("the type of " + what, type))
    return error;
  tensor.encoding = lookupGgmlType(type);
  if (!tensor.encoding) {
    StringRef name = unreadTypeName(type);
    std::string known = llvm::join(
        llvm::map_range(encodings(), [](const Encoding &e) { return e.name.str(); }), ", ");
    return unsupported(file.path(), what + " has type id " + Twine(type) +
                                        (name.empty() ? "" : " (" + name.str() + ")") +
                                        ", which is unsupported; convert it to one of " + known);
  }
  uint64_t columns = tensor.shape.back();
  if (!tensor.encoding->acceptsRow(columns))
    return bad(what + " has rows of " + Twine(columns) + " elements, no multiple of the " +
               Twine(tensor.encoding->blockElements) + " of a block of " + tensor.encoding->name);
  if (elements / tensor.encoding->blockElements > uint64_t(INT64_MAX) / tensor.encoding->blockBytes)
    return bad(what + " has a size in bytes that overflows");
  tensor.bytes = elements / tensor.encoding->blockElements * tensor.encoding->blockBytes;
  if (Error error = read("the offset of " + what, tensor.offset))
    return error;
  if (tensor.offset % alignment)
    return bad(what + " is at offset " + Twine(tensor.offset) + ", no multiple of the alignment " +
               Twine(alignment));
  file.tensorInfos.push_back(std::move(tensor));
  return Error::success();
}

/// Makes offsets absolute; checks that tensors are inside the file, do not overlap, and that what
/// follows them is no second file.
Error Parser::placeTensors() {
  uint64_t dataBegin = llvm::alignTo(pos, alignment), end = pos;
  std::vector<const Tensor *> order;
  for (Tensor &tensor : file.tensorInfos) {
    if (tensor.offset > uint64_t(INT64_MAX) - dataBegin ||
        tensor.bytes > uint64_t(INT64_MAX) - dataBegin - tensor.offset)
      return bad("tensor " + quoted(tensor.name) + " at offset " + Twine(tensor.offset) + " with " +
                 Twine(tensor.bytes) + " bytes overflows");
    tensor.offset += dataBegin;
    end = std::max(end, tensor.offset + tensor.bytes);
    order.push_back(&tensor);
  }
  if (end > bytes.size())
    return bad("the file is truncated: its tensors need " + Twine(end) + " bytes, it has " +
               Twine(bytes.size()));
  llvm::sort(order, [](const Tensor *a, const Tensor *b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset)
      return bad("tensors " + quoted(order[i - 1]->name) + " and " + quoted(order[i]->name) +
                 " overlap");
  for (uint64_t next : {end, llvm::alignTo(end, alignment)})
    if (next < bytes.size() && bytes.drop_front(next).starts_with("GGUF"))
      return bad("a second GGUF file begins at byte " + Twine(next) +
                 ": these are joined shards of a split model; keep the parts as files of their "
                 "own and name the first");
  return Error::success();
}

Error Parser::run() {
  if (Error error = readHeader())
    return error;
  file.metadata.reserve(entryCount);
  for (uint64_t i = 0; i < entryCount; ++i)
    if (Error error = readEntry(i))
      return error;
  if (Error error = readAlignment())
    return error;
  file.tensorInfos.reserve(tensorCount);
  for (uint64_t i = 0; i < tensorCount; ++i)
    if (Error error = readTensor(i))
      return error;
  return placeTensors();
}

//===----------------------------------------------------------------------===//
// GgufFile
//===----------------------------------------------------------------------===//

const MetaValue *GgufFile::find(StringRef key) const {
  auto it = keyIndex.find(key);
  return it == keyIndex.end() ? nullptr : &metadata[it->second].value;
}

Expected<GgufFile> GgufFile::parse(std::unique_ptr<llvm::MemoryBuffer> bytes) {
  GgufFile file;
  file.bytes = std::move(bytes);
  if (Error error = Parser(file).run())
    return std::move(error);
  return std::move(file);
}

Expected<GgufFile> GgufFile::open(StringRef path) {
  // A device or a pipe has no size to check against.
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path))
    return unreadable(path, "is no regular file");
  auto bytes = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                           /*RequiresNullTerminator=*/false);
  if (!bytes)
    return unreadable(path, "cannot be opened: " + bytes.getError().message());
  return parse(std::move(*bytes));
}
