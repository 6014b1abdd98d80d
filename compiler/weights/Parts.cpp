//===- Parts.cpp - codes and scales that lie apart ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Parts.h"
#include "compiler/weights/SourceBlock.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <optional>

using namespace llmc;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;
using llvm::support::endian::write16le;
using llvm::support::endian::write32le;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

unsigned SourceParts::Part::bits() const {
  switch (kind) {
  case Kind::U4:
  case Kind::I4:
    return 4;
  case Kind::U8:
  case Kind::I8:
    return 8;
  case Kind::F32:
    return 32;
  case Kind::F16:
  case Kind::BF16:
    return 16;
  }
  llvm_unreachable("all kinds are handled");
}

/// Codes in offset binary: what is signed becomes unsigned with its zero in the middle.
uint8_t SourceParts::Part::code(uint64_t index) const {
  if (bits() == 8)
    return data[index] ^ (isSigned() ? 0x80 : 0);
  return ((data[index / 2] >> (index % 2 * 4)) & 15) ^ (isSigned() ? 8 : 0);
}

float SourceParts::Part::value(uint64_t index) const {
  switch (kind) {
  case Kind::F32:
    return llvm::bit_cast<float>(read32le(data + 4 * index));
  case Kind::F16:
    return halfToFloat(read16le(data + 2 * index));
  case Kind::BF16:
    return bfloatToFloat(read16le(data + 2 * index));
  default:
    return code(index);
  }
}

llvm::Expected<SourceParts::Part> SourceParts::makePart(llvm::StringRef kind, int64_t file,
                                                        int64_t offset, int64_t stride,
                                                        uint64_t rows, uint64_t columns,
                                                        llvm::ArrayRef<SourceFile> files) {
  auto known = llvm::StringSwitch<std::optional<Kind>>(kind)
                   .Case("u4", Kind::U4)
                   .Case("i4", Kind::I4)
                   .Case("u8", Kind::U8)
                   .Case("i8", Kind::I8)
                   .Case("f32", Kind::F32)
                   .Case("f16", Kind::F16)
                   .Case("bf16", Kind::BF16)
                   .Default(std::nullopt);
  if (!known)
    return makeError("has a part of elements '" + kind +
                     "'; u4, i4, u8, i8, f32, f16 and bf16 are known");
  if (file < 0 || uint64_t(file) >= files.size())
    return makeError("refers to a source file that was not given");
  if (offset < 0 || stride < 0)
    return makeError("has a part with a negative offset or stride");
  Part part{*known, nullptr, 0, uint64_t(stride)};
  // The last element of the last row must be in the file.
  unsigned __int128 last = (unsigned __int128)(rows - 1) * part.stride + (columns - 1);
  unsigned __int128 bytes = ((last + 1) * part.bits() + 7) / 8;
  const llvm::MemoryBuffer &buffer = *files[file].bytes;
  if (bytes + uint64_t(offset) > buffer.getBufferSize())
    return makeError("needs bytes that lie behind the end of '" + files[file].path + "'");
  part.data = reinterpret_cast<const uint8_t *>(buffer.getBufferStart()) + offset;
  part.bytes = uint64_t(bytes);
  return part;
}

llvm::Expected<SourceParts> SourceParts::create(llm::WeightOp weight,
                                                llvm::ArrayRef<SourceFile> files) {
  llm::PartsAttr attr = *weight.getParts();
  SourceParts p;
  p.encoding = lookupEncoding(weight.getEncoding());
  if (!p.encoding || !p.encoding->grouped || p.encoding->format.hiBits ||
      p.encoding->format.codebook)
    return makeError("has parts, which encoding '" + weight.getEncoding() + "' cannot be made of");
  const UkFormat &format = p.encoding->format;
  const uint64_t rows = weight.getShape().size() == 2 ? weight.getShape()[0] : 1;
  p.columns = weight.getShape().back();
  p.transposed = attr.getTransposed();
  auto make = [&](llvm::StringRef kind, int64_t file, int64_t offset, int64_t stride,
                  uint64_t length) {
    return p.transposed ? makePart(kind, file, offset, stride, length, rows, files)
                        : makePart(kind, file, offset, stride, rows, length, files);
  };
  const uint64_t groups = p.encoding->rowGroups(p.columns);
  auto codes =
      make(attr.getCodes(), weight.getFile(), weight.getOffset(), attr.getStride(), p.columns);
  if (!codes)
    return codes.takeError();
  p.codes = *codes;
  if (p.codes.isFloat() || p.codes.bits() != unsigned(format.loBits))
    return makeError("has codes of '" + attr.getCodes() + "', which " + p.encoding->name +
                     " cannot hold");
  auto makeFloats = [&](llm::PartAttr part, llvm::StringRef what) -> llvm::Expected<Part> {
    auto made = make(part.getKind(), part.getFile(), part.getOffset(), part.getStride(), groups);
    if (made && made->isFloat() && format.scaleKind == ukF16 && made->kind != Kind::F16)
      return makeError("has " + what + " of '" + part.getKind() + "', which the f16 of " +
                       p.encoding->name + " cannot hold");
    return made;
  };
  auto scales = makeFloats(attr.getScales(), "scales");
  if (!scales)
    return scales.takeError();
  p.scales = *scales;
  if (!p.scales.isFloat())
    return makeError("has scales of '" + attr.getScales().getKind() + "', which are no floats");
  if (llm::PartAttr part = attr.getOffsets()) {
    if (!format.minSign)
      return makeError("has offsets, which " + p.encoding->name + " does not have");
    auto offsets = makeFloats(part, "offsets");
    if (!offsets)
      return offsets.takeError();
    p.offsets = *offsets;
    p.hasOffsets = true;
    if (p.offsets.isFloat() ? p.codes.isSigned() : p.offsets.kind != p.codes.kind)
      return makeError("has offsets of '" + part.getKind() + "' for codes of '" + attr.getCodes() +
                       "'");
    if (!p.offsets.isFloat() && format.minSign != ukZeroPoints)
      return makeError("has integer offsets, which are no mins");
  } else if (format.minSign && format.minSign != ukZeroPoints) {
    return makeError("has no offsets, which " + p.encoding->name + " needs");
  }
  return p;
}

/// Writes the codes of rows to the heads of rows of `rowBytes` bytes. Source rows are read in the
/// order in which they lie.
void SourceParts::gatherCodes(uint64_t begin, uint64_t end, uint8_t *rows,
                              uint64_t rowBytes) const {
  const unsigned perByte = 8 / encoding->format.loBits, bits = encoding->format.loBits;
  auto put = [&](uint64_t n, uint64_t k) {
    rows[(n - begin) * rowBytes + k / perByte] |= codes.code(indexOf(codes, n, k))
                                                  << (k % perByte * bits);
  };
  if (transposed) {
    for (uint64_t k = 0; k < columns; ++k)
      for (uint64_t n = begin; n < end; ++n)
        put(n, k);
    return;
  }
  const uint8_t flip = !codes.isSigned() ? 0 : bits == 8 ? 0x80 : 0x88;
  const uint64_t whole = columns / perByte;
  for (uint64_t n = begin; n < end; ++n) {
    const uint64_t first = indexOf(codes, n, 0);
    uint64_t k = 0;
    if (first % perByte == 0) {
      uint8_t *out = rows + (n - begin) * rowBytes;
      std::memcpy(out, codes.data + first / perByte, whole);
      for (uint64_t i = 0; flip && i < whole; ++i)
        out[i] ^= flip;
      k = whole * perByte;
    }
    for (; k < columns; ++k)
      put(n, k);
  }
}

/// Writes what a row's groups have in `part`, or `shift` for each where there is no part.
void SourceParts::gatherFloats(const Part *part, float shift, uint64_t row, uint8_t *out) const {
  const uint64_t groups = encoding->rowGroups(columns);
  for (uint64_t g = 0; g < groups; ++g) {
    const float value = part ? part->value(indexOf(*part, row, g)) : shift;
    if (encoding->format.scaleKind == ukF32)
      write32le(out + 4 * g, llvm::bit_cast<uint32_t>(value));
    else if (part && part->kind == Kind::F16) // as they are, NaNs too
      write16le(out + 2 * g, read16le(part->data + 2 * indexOf(*part, row, g)));
    else
      write16le(out + 2 * g, llvm::bit_cast<uint16_t>(_Float16(value)));
  }
}

void SourceParts::gather(uint64_t begin, uint64_t end, uint8_t *out) const {
  const uint64_t rowBytes = encoding->rowBytes(columns),
                 codesBytes = encoding->rowCodesBytes(columns);
  const uint64_t listBytes =
      encoding->rowGroups(columns) * ukFloatBytes(encoding->format.scaleKind);
  std::memset(out, 0, (end - begin) * rowBytes);
  gatherCodes(begin, end, out, rowBytes);
  // Without zero points the stored zero means 0, which is the middle of signed codes.
  const float zero = codes.isSigned() ? float(1 << (codes.bits() - 1)) : 0.0f;
  for (uint64_t n = begin; n < end; ++n, out += rowBytes) {
    gatherFloats(&scales, 0, n, out + codesBytes);
    if (encoding->format.minSign)
      gatherFloats(hasOffsets ? &offsets : nullptr, zero, n, out + codesBytes + listBytes);
  }
}
