//===- Npy.cpp - NumPy's files --------------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/llmc-run/Npy.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

using namespace llmc::run;
using namespace llmc;
using llmc::rt::Status;

/// Magic, version, length of the dictionary, the dictionary; together a multiple of 64 bytes.
static std::string npyHeader(const std::string &type, std::span<const uint64_t> shape) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i)
    header += (i ? ", " : "") + std::to_string(shape[i]);
  header += shape.size() == 1 ? ",), }" : "), }";
  constexpr size_t fixed = 10, alignment = 64;
  header.resize((fixed + header.size() + alignment) / alignment * alignment - fixed, ' ');
  header.back() = '\n';
  const char prefix[fixed] = {'\x93',
                              'N',
                              'U',
                              'M',
                              'P',
                              'Y',
                              1,
                              0,
                              static_cast<char>(header.size() & 0xff),
                              static_cast<char>(header.size() >> 8)};
  return std::string(prefix, fixed) + header;
}

NpyWriter::NpyWriter(std::string name, uint64_t rows, uint64_t columns)
    : path(std::move(name)), partial(path + ".partial"), file(std::fopen(partial.c_str(), "wb")) {
  const uint64_t shape[] = {rows, columns};
  const std::string header = npyHeader("<f4", shape);
  if (!file || std::fwrite(header.data(), 1, header.size(), file) != header.size())
    error = errno;
}

NpyWriter::~NpyWriter() {
  if (file) {
    std::fclose(file);
    std::remove(partial.c_str());
  }
}

bool NpyWriter::append(std::span<const float> values) {
  if (!error && std::fwrite(values.data(), sizeof(float), values.size(), file) != values.size())
    error = errno;
  return !error;
}

Status NpyWriter::finish() {
  if (!error && std::fflush(file) != 0)
    error = errno;
  if (!error && std::rename(partial.c_str(), path.c_str()) != 0)
    error = errno;
  if (error)
    return rt::notFound("cannot write " + path + ": " + std::strerror(error));
  std::fclose(file);
  file = nullptr;
  return {};
}

//===----------------------------------------------------------------------===//
// Whole arrays
//===----------------------------------------------------------------------===//

namespace {

struct Closer {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

struct TypeName {
  std::string_view element, npy, also;
};
constexpr TypeName typeNames[] = {
    {"float", "<f4", ""},       {"double", "<f8", ""},   {"float16", "<f2", ""},
    {"bfloat16", "<V2", "<u2"}, {"int8", "|i1", ""},     {"int16", "<i2", ""},
    {"int32", "<i4", ""},       {"int64", "<i8", ""},    {"uint8", "|u1", ""},
    {"uint16", "<u2", ""},      {"uint32", "<u4", ""},   {"uint64", "<u8", ""},
    {"bool", "|b1", ""},        {"int4", "<V1", "|i1"},  {"uint4", "<V1", "|u1"},
    {"int2", "<V1", "|i1"},     {"uint2", "<V1", "|u1"},
};
constexpr TypeName otherType = {"", "<V1", "|u1"}; // small floats

const TypeName &namesOf(std::string_view element) {
  for (const TypeName &row : typeNames)
    if (row.element == element)
      return row;
  return otherType;
}

/// What stands behind `key` in the dictionary, without leading blanks.
std::string_view valueOf(std::string_view header, std::string_view key) {
  size_t at = header.find(key);
  if (at == std::string_view::npos)
    return {};
  header.remove_prefix(at + key.size());
  header.remove_prefix(std::min(header.find_first_not_of(" :"), header.size()));
  return header;
}

/// Fills in type and shape; false where the dictionary is none.
bool parseHeader(std::string_view header, NpyArray &array, bool &isFortran) {
  std::string_view type = valueOf(header, "'descr'"), order = valueOf(header, "'fortran_order'"),
                   shape = valueOf(header, "'shape'");
  if (type.empty() || type[0] != '\'' || type.find('\'', 1) == std::string_view::npos ||
      shape.empty() || shape[0] != '(')
    return false;
  array.type = type.substr(1, type.find('\'', 1) - 1);
  isFortran = order.starts_with("True");
  shape = shape.substr(1, shape.find(')') - 1);
  while (true) {
    shape.remove_prefix(std::min(shape.find_first_not_of(" ,"), shape.size()));
    if (shape.empty())
      return true;
    uint64_t size = 0;
    auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), size);
    if (error != std::errc() || array.shape.size() >= 64)
      return false;
    array.shape.push_back(size);
    shape.remove_prefix(size_t(end - shape.data()));
  }
}

/// Bytes of an element of NumPy's "<f4"; 0 where it is no plain type.
uint64_t widthOf(std::string_view type) {
  uint64_t width = 0;
  if (type.size() < 3 || (type[0] != '<' && type[0] != '|'))
    return 0;
  std::from_chars(type.data() + 2, type.data() + type.size(), width);
  return width <= 16 ? width : 0;
}

} // namespace

std::string llmc::run::npyType(std::string_view element) {
  return std::string(namesOf(element).npy);
}

bool llmc::run::acceptsNpyType(std::string_view element, std::string_view type) {
  const TypeName &names = namesOf(element);
  // Types without a byte order are written either way.
  const auto same = [&](std::string_view name) {
    return !name.empty() && type.size() == name.size() && type.substr(1) == name.substr(1) &&
           (type[0] == '<' || type[0] == '|');
  };
  return same(names.npy) || same(names.also);
}

rt::StatusOr<NpyArray> llmc::run::readNpy(const std::string &path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file)
    return rt::notFound("cannot open " + path + ": " + std::strerror(errno));
  const auto bad = [&](const std::string &why) { return rt::corrupt(path + " " + why); };
  uint8_t fixed[12];
  if (std::fread(fixed, 1, 10, file.get()) != 10 || std::memcmp(fixed, "\x93NUMPY", 6) != 0)
    return bad("is no .npy file; write it with numpy.save");
  size_t length = fixed[8] | fixed[9] << 8;
  if (fixed[6] > 1) {
    if (std::fread(fixed + 10, 1, 2, file.get()) != 2)
      return bad("is truncated");
    length |= size_t(fixed[10]) << 16 | size_t(fixed[11]) << 24;
  }
  constexpr size_t longest = 1 << 16;
  std::string header(std::min(length, longest), ' ');
  NpyArray array;
  bool isFortran = false;
  if (length > longest || std::fread(header.data(), 1, length, file.get()) != length ||
      !parseHeader(header, array, isFortran))
    return bad("has a header that cannot be read; write it with numpy.save");
  if (isFortran)
    return bad("is stored by columns; save numpy.ascontiguousarray of it");
  uint64_t bytes = widthOf(array.type);
  if (!bytes)
    return bad("has elements of type '" + array.type + "', which cannot be read");
  for (uint64_t size : array.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return bad("says that it is larger than any memory");
  // Piece by piece, so that a header alone cannot ask for memory.
  constexpr size_t piece = 1 << 20;
  while (array.bytes.size() < bytes) {
    const size_t have = array.bytes.size(), want = std::min<uint64_t>(piece, bytes - have);
    array.bytes.resize(have + want);
    if (std::fread(array.bytes.data() + have, 1, want, file.get()) != want)
      return bad("is truncated: its header promises " + std::to_string(bytes) + " bytes of data");
  }
  return array;
}

Status llmc::run::writeNpy(const std::string &path, const std::string &type,
                           std::span<const uint64_t> shape, std::span<const uint8_t> bytes) {
  const std::string partial = path + ".partial", header = npyHeader(type, shape);
  File file(std::fopen(partial.c_str(), "wb"));
  if (!file || std::fwrite(header.data(), 1, header.size(), file.get()) != header.size() ||
      std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() ||
      std::fflush(file.get()) != 0 || std::rename(partial.c_str(), path.c_str()) != 0) {
    Status status = rt::notFound("cannot write " + path + ": " + std::strerror(errno));
    std::remove(partial.c_str());
    return status;
  }
  return {};
}
