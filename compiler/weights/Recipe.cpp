//===- Recipe.cpp - evaluating the recipe of a weight ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Recipe.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace llmc;

/// Rows of one piece, whole panels and tiles: large enough to amortize, small enough to balance.
static constexpr uint64_t kPieceRows = 256;

static llvm::Error makeError(llm::WeightOp weight, const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "weight '" + weight.getSymName() + "' " + message);
}

llvm::Expected<Recipe> Recipe::create(llm::WeightOp weight, llvm::ArrayRef<SourceFile> files,
                                      llvm::StringRef layoutName) {
  Recipe r;
  r.sourceEncoding = lookupEncoding(weight.getEncoding());
  r.finalEncoding = lookupEncoding(weight.getFinalEncoding());
  if (!r.sourceEncoding || !r.finalEncoding)
    return makeError(weight, "has encoding '" + weight.getEncoding() + "', which is not known");
  llvm::ArrayRef<int64_t> shape = weight.getShape();
  bool vector = shape.size() == 1;
  r.rows = vector ? 1 : shape[0];
  r.columns = shape.back();
  if (!r.sourceEncoding->acceptsRow(r.columns))
    return makeError(weight, "has rows of " + llvm::Twine(r.columns) +
                                 " elements, no multiple of " +
                                 llvm::Twine(r.sourceEncoding->blockElements) + " as " +
                                 r.sourceEncoding->name + " needs");
  if (llvm::Error error = r.findSource(weight, files))
    return makeError(weight, llvm::toString(std::move(error)));
  r.sourceIsMapped =
      files[weight.getFile()].bytes->getBufferKind() == llvm::MemoryBuffer::MemoryBuffer_MMap;
  const uint64_t rowBytes = r.sourceEncoding->rowBytes(r.columns);

  llvm::Error failure = llvm::Error::success();
  for (mlir::Attribute step : weight.getRecipe()) {
    if (failure)
      return makeError(weight, llvm::toString(std::move(failure)));
    bool known = llvm::TypeSwitch<mlir::Attribute, bool>(step)
                     .Case([&](llm::SliceRowsAttr slice) {
                       if (r.parts || r.transposedRows) {
                         r.firstRow += slice.getBegin();
                         r.rows = slice.getCount();
                       } else if (vector) {
                         r.source += r.sourceEncoding->rowBytes(slice.getBegin());
                         r.columns = slice.getCount();
                       } else {
                         r.source += slice.getBegin() * rowBytes;
                         r.rows = slice.getCount();
                       }
                       return true;
                     })
                     .Case([&](llm::TransposeAttr) {
                       r.transposedRows = r.columns;
                       std::swap(r.rows, r.columns);
                       return true;
                     })
                     .Case([&](llm::CastAttr) { return true; })
                     .Case([&](llm::ScaleAttr s) {
                       r.scale *= s.getFactor().getValueAsDouble();
                       return true;
                     })
                     .Case([&](llm::QuantizeAttr step) {
                       failure = r.readQuantize(step, files);
                       return true;
                     })
                     .Case([&](llm::PackAttr pack) {
                       for (mlir::StringAttr name : pack.getLayouts()) {
                         if (!layoutName.empty() && name != layoutName)
                           continue;
                         r.layout = name == "panel16"  ? Layout::Panels
                                    : name == "warp32" ? Layout::Tiles
                                                       : Layout::Rows;
                         break;
                       }
                       return r.layout != Layout::Rows;
                     })
                     .Default([](mlir::Attribute) { return false; });
    if (!known)
      return makeError(weight, "has a recipe step that cannot be evaluated");
  }
  if (failure)
    return makeError(weight, llvm::toString(std::move(failure)));
  // Packing reads source blocks; it follows a conversion only through a float row.
  if (r.layout == Layout::Panels) {
    PackedLayout panels = packedLayout(*r.finalEncoding, r.rows, r.columns);
    r.unitBytes = panels.panelBytes;
    r.finalBytes = panels.totalBytes;
  } else if (r.layout == Layout::Tiles) {
    WarpLayout tiles = warpLayout(*r.finalEncoding, r.rows, r.columns);
    r.unitBytes = tiles.tileBytes;
    r.finalBytes = tiles.totalBytes;
  } else {
    r.finalBytes = r.rows * r.finalEncoding->rowBytes(r.columns);
  }
  return r;
}

uint64_t Recipe::pieces() const { return llvm::divideCeil(rows, kPieceRows); }

llvm::Error Recipe::findSource(llm::WeightOp weight, llvm::ArrayRef<SourceFile> files) {
  auto fail = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  if (weight.getParts()) {
    llvm::Expected<SourceParts> made = SourceParts::create(weight, files);
    if (!made)
      return made.takeError();
    parts = *made;
    return llvm::Error::success();
  }
  if (uint64_t(weight.getFile()) >= files.size())
    return fail("refers to a source file that was not given");
  const SourceFile &file = files[weight.getFile()];
  uint64_t fileSize = file.bytes->getBufferSize(), offset = weight.getOffset();
  uint64_t rowBytes = sourceEncoding->rowBytes(columns);
  if (offset > fileSize || rowBytes == 0 || rows > (fileSize - offset) / rowBytes)
    return fail("needs bytes that lie behind the end of '" + file.path + "'");
  source = reinterpret_cast<const uint8_t *>(file.bytes->getBufferStart()) + offset;
  return llvm::Error::success();
}

llvm::Error Recipe::readQuantize(llm::QuantizeAttr step, llvm::ArrayRef<SourceFile> files) {
  auto fail = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  const Encoding *target = lookupEncoding(step.getEncoding());
  if (!target || !target->grouped || quantizationTarget(*target) != target)
    return fail("cannot be quantized to '" + step.getEncoding() + "'");
  llm::PartAttr part = step.getImportance();
  if (!part)
    return llvm::Error::success();
  if (part.getKind() != "f32" || part.getFile() < 0 || uint64_t(part.getFile()) >= files.size() ||
      part.getOffset() < 0 || part.getOffset() % 4)
    return fail("has an importance that is no list of f32 in a source file");
  const llvm::MemoryBuffer &buffer = *files[part.getFile()].bytes;
  if (uint64_t(part.getOffset()) > buffer.getBufferSize() ||
      columns > (buffer.getBufferSize() - part.getOffset()) / 4)
    return fail("has an importance behind the end of '" + files[part.getFile()].path + "'");
  importance = reinterpret_cast<const float *>(buffer.getBufferStart() + part.getOffset());
  return llvm::Error::success();
}

const uint8_t *Recipe::sourceRows(uint64_t begin, uint64_t end,
                                  std::vector<uint8_t> &storage) const {
  const uint64_t rowBytes = sourceEncoding->rowBytes(columns);
  if (!parts && !transposedRows)
    return source + begin * rowBytes;
  storage.resize((end - begin) * rowBytes);
  if (transposedRows) {
    // Elements of one column lie side by side: a few of them are read at a time, for all rows.
    const uint64_t size = sourceEncoding->rowBytes(1);
    for (uint64_t k = 0; k < columns; ++k) {
      const uint8_t *from = source + (k * transposedRows + firstRow + begin) * size;
      for (uint64_t i = 0; i < end - begin; ++i)
        std::memcpy(storage.data() + (i * columns + k) * size, from + i * size, size);
    }
    return storage.data();
  }
  parts->gather(firstRow + begin, firstRow + end, storage.data());
  return storage.data();
}

void Recipe::floatRow(const uint8_t *row, float *out) const {
  llmc::dequantizeRow(*sourceEncoding, row, out, columns);
  if (scale != 1.0f)
    for (uint64_t i = 0; i < columns; ++i)
      out[i] *= scale;
}

void Recipe::dequantizeRow(uint64_t row, float *out) const {
  std::vector<uint8_t> storage;
  floatRow(sourceRows(row, row + 1, storage), out);
}

/// Stores floats in a float encoding, rounding to nearest even.
static void storeFloats(const Encoding &encoding, const float *in, uint64_t n, uint8_t *out) {
  switch (encoding.format.floatKind) {
  case ukF32:
    std::memcpy(out, in, n * 4);
    return;
  case ukF16:
    for (uint64_t i = 0; i < n; ++i) {
      _Float16 h = _Float16(in[i]);
      std::memcpy(out + 2 * i, &h, 2);
    }
    return;
  case ukBF16:
    for (uint64_t i = 0; i < n; ++i) {
      uint32_t bits;
      std::memcpy(&bits, in + i, 4);
      bool nan = (bits & 0x7fffffff) > 0x7f800000;
      uint16_t b = nan ? (bits >> 16) | 0x40 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
      std::memcpy(out + 2 * i, &b, 2);
    }
    return;
  }
}

QuantizeError Recipe::evaluate(uint64_t piece, uint8_t *out) const {
  QuantizeError error;
  bool identity = sourceEncoding == finalEncoding && scale == 1.0f;
  uint64_t begin = piece * kPieceRows, end = std::min(rows, begin + kPieceRows);
  uint64_t sourceRow = sourceEncoding->rowBytes(columns),
           finalRow = finalEncoding->rowBytes(columns);

  std::vector<uint8_t> gathered, converted;
  const uint8_t *blocks = sourceRows(begin, end, gathered);
  if (!identity) {
    converted.resize((end - begin) * finalRow);
    std::vector<float> row(columns);
    for (uint64_t i = begin; i < end; ++i) {
      floatRow(blocks + (i - begin) * sourceRow, row.data());
      uint8_t *to = converted.data() + (i - begin) * finalRow;
      if (isLossy())
        error += quantizeRow(*finalEncoding, row.data(), columns, importance, to);
      else
        storeFloats(*finalEncoding, row.data(), columns, to);
    }
    blocks = converted.data();
  }
  switch (layout) {
  case Layout::Rows:
    std::memcpy(out + begin * finalRow, blocks, (end - begin) * finalRow);
    break;
  case Layout::Panels:
    packPanels(*finalEncoding, blocks, end - begin, columns, 0,
               llvm::divideCeil(end - begin, ukPanelRows), out + begin / ukPanelRows * unitBytes);
    break;
  case Layout::Tiles:
    packWarpTiles(*finalEncoding, blocks, end - begin, columns, 0,
                  llvm::divideCeil(end - begin, kWarpRows), out + begin / kWarpRows * unitBytes);
    break;
  }
  return error;
}
