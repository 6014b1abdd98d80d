//===- Pack.cpp - source rows to panels -----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/SourceBlock.h"
#include "llvm/Support/Endian.h"
#include <cstring>

using namespace llmc;
using llvm::support::endian::read32le;
using llvm::support::endian::write16le;
using llvm::support::endian::write32le;

namespace {

/// Writes the codes of row r of one block into its groups, four of them (a lane) at a time. The
/// panel was zeroed before.
void packCodes(const UkFormat &format, const SourceBlock &block, unsigned elements, unsigned r,
               uint8_t *groups) {
  for (unsigned e = 0; e < elements; e += ukGroup, groups += ukGroupCodeBytes(format)) {
    uint8_t *plane = groups;
    unsigned shift = 0;
    for (unsigned bits : {format.loBits, format.hiBits}) {
      if (bits == 0)
        continue;
      const uint32_t mask = ((1u << bits) - 1) * 0x01010101u;
      for (unsigned j = 0; j < ukGroup / 4; ++j) {
        uint8_t *lane = plane + j % bits * 64 + r * 4;
        const uint32_t codes = read32le(&block.codes[e + 4 * j]) >> shift & mask;
        write32le(lane, read32le(lane) | codes << (j / bits * bits));
      }
      plane += 64 * bits;
      shift += bits;
    }
  }
}

/// Writes the scale record of row r of one block.
void packScales(const UkFormat &format, const SourceBlock &block, unsigned r, uint8_t *record) {
  const unsigned size = ukFloatBytes(format.scaleKind), perRecord = ukScalesPerRecord(format);
  uint8_t *subs = record;
  auto put = [&](uint32_t bits) {
    size == 4 ? write32le(subs + 4 * r, bits) : write16le(subs + 2 * r, bits);
    subs += size * ukPanelRows;
  };
  for (unsigned i = 0; i < (format.superGroup ? 1 : perRecord); ++i)
    put(block.scale[i]);
  if (format.minSign)
    for (unsigned i = 0; i < (format.superGroup ? 1 : perRecord); ++i)
      put(block.min[i]);
  if (!format.superGroup)
    return;
  const unsigned count = format.superGroup / format.group;
  for (unsigned sub = 0; sub < count; ++sub) {
    subs[sub * ukPanelRows + r] = static_cast<uint8_t>(block.subScale[sub]);
    if (format.minSign)
      subs[(count + sub) * ukPanelRows + r] = static_cast<uint8_t>(block.subMin[sub]);
  }
}

void packRow(const Encoding &encoding, const uint8_t *src, uint64_t K, unsigned r,
             const PackedLayout &layout, uint8_t *panel) {
  const UkFormat &format = encoding.format;
  if (encoding.isFloat()) {
    const unsigned bytes = encoding.blockBytes;
    for (uint64_t k = 0; k < K; ++k)
      std::memcpy(panel + (k * ukPanelRows + r) * bytes, src + k * bytes, bytes);
    return;
  }
  const unsigned elements = encoding.blockElements;
  const uint64_t codeStep = elements / ukGroup * ukGroupCodeBytes(format);
  const uint64_t length = ukScaleRecordLength(format), recordBytes = ukScaleRecordBytes(format);
  uint8_t *codes = panel, *scales = panel + layout.codesBytes;
  SourceBlock block;
  for (uint64_t k = 0; k < K; k += elements, codes += codeStep) {
    readBlock(encoding, src, K, k / elements, block);
    packCodes(format, block, elements, r, codes);
    packScales(format, block, r, scales + k / length * recordBytes);
  }
}

} // namespace

void llmc::packPanels(const Encoding &encoding, const uint8_t *src, uint64_t N, uint64_t K,
                      uint64_t panelBegin, uint64_t panelEnd, uint8_t *dst) {
  const PackedLayout layout = packedLayout(encoding, N, K);
  const uint64_t rowBytes = encoding.rowBytes(K);
  std::memset(dst, 0, (panelEnd - panelBegin) * layout.panelBytes);
  for (uint64_t p = panelBegin; p < panelEnd; ++p, dst += layout.panelBytes)
    for (unsigned r = 0; r < ukPanelRows && p * ukPanelRows + r < N; ++r)
      packRow(encoding, src + (p * ukPanelRows + r) * rowBytes, K, r, layout, dst);
}
