//===- Matrix.cpp - matrix instructions -----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"
#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Collective.h"
#include "tests/ptx/emulator/Lanes.h"
#include "tests/ptx/emulator/Numbers.h"

#include <bit>

// Fragments of mma.sync.m16n8kK, from the PTX ISA. With g = lane / 4 and t = lane % 4, and P values
// to a 32-bit register (2 of 16 bits, 4 of 8 bits, 1 of tf32):
//
//   A (16 x K), register r: row g + 8 * (r % 2), columns P * t + 4 * P * (r / 2) + 0..P-1
//   B (K x 8),  register r: column g, rows P * t + 4 * P * r + 0..P-1
//   C, D (16 x 8), values c0..c3: row g + 8 * (i / 2), columns 2 * t + i % 2
//
// f16 accumulators are pairs: c0, c1 in the first register, c2, c3 in the second.

namespace llmc::ptx {

namespace {
constexpr unsigned maxK = 64;

enum Kind { KindF16, KindBF16, KindTF32, KindS8, KindU8, KindE4M3, KindE5M2 };
unsigned perRegister(unsigned kind) { return kind <= KindBF16 ? 2 : kind == KindTF32 ? 1 : 4; }

template <unsigned kind> float value(uint32_t bits, unsigned k) {
  switch (kind) {
  case KindF16:
    return halfToFloat(uint16_t(bits >> 16 * k));
  case KindBF16:
    return bf16ToFloat(uint16_t(bits >> 16 * k));
  case KindTF32:
    return asFloat(bits & ~0x1fffu);
  case KindE4M3:
    return float(decode(bits >> 8 * k & 255, formatE4M3));
  case KindE5M2:
    return float(decode(bits >> 8 * k & 255, formatE5M2));
  case KindS8:
    return float(int8_t(bits >> 8 * k));
  default:
    return float(uint8_t(bits >> 8 * k));
  }
}

/// All values of a fragment's register, lane by lane.
template <unsigned kind> void expand(const uint32_t *bits, float *out) {
  constexpr unsigned P = kind <= KindBF16 ? 2 : kind == KindTF32 ? 1 : 4;
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned p = 0; p < P; ++p)
      out[l * P + p] = value<kind>(bits[l], p);
}
void expand(unsigned kind, const uint32_t *bits, float *out) {
  static constexpr void (*table[])(const uint32_t *, float *) = {
      expand<KindF16>, expand<KindBF16>, expand<KindTF32>, expand<KindS8>,
      expand<KindU8>,  expand<KindE4M3>, expand<KindE5M2>};
  table[kind](bits, out);
}

// vec: slots of A, B, C; vec2: of D. imm: K; sub: kinds of A and B, f16 accumulator, saturation.
void mma(Warp &w, const Inst &i, uint32_t mask) {
  if (!aligned(w, mask))
    return;
  if (mask != ~0u) {
    w.fail(ErrorKind::Divergent, std::countr_zero(mask), "wants a whole warp");
    return;
  }
  unsigned kindA = i.sub & 15, kindB = i.sub >> 4 & 15, K = i.imm;
  bool half = i.sub & 256, saturates = i.sub & 512, integer = kindA == KindS8 || kindA == KindU8;
  unsigned P = perRegister(kindA), registersA = K / P / 2, registersB = K / P / 4;
  const uint32_t *slots = w.program->pool.data() + i.vec;
  float A[16][maxK], B[maxK][8], values[128];
  for (unsigned r = 0; r < registersA; ++r) {
    expand(kindA, reg<uint32_t>(w, slots[r]), values);
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned p = 0; p < P; ++p)
        A[l / 4 + 8 * (r % 2)][P * (l % 4) + 4 * P * (r / 2) + p] = values[l * P + p];
  }
  for (unsigned r = 0; r < registersB; ++r) {
    expand(kindB, reg<uint32_t>(w, slots[registersA + r]), values);
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned p = 0; p < P; ++p)
        B[P * (l % 4) + 4 * P * r + p][l / 4] = values[l * P + p];
  }
  // Products are exact as doubles, and so are sums of bytes' products.
  double sums[16][8];
  for (unsigned row = 0; row < 16; ++row) {
    double sum[8] = {};
    for (unsigned k = 0; k < K; ++k)
      for (unsigned column = 0; column < 8; ++column)
        sum[column] += double(A[row][k]) * double(B[k][column]);
    memcpy(sums[row], sum, sizeof sum);
  }
  const uint32_t *slotsC = slots + registersA + registersB;
  const uint32_t *slotsD = w.program->pool.data() + i.vec2;
  uint32_t out[4][32];
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned e = 0; e < 4; ++e) {
      unsigned row = l / 4 + 8 * (e / 2), column = 2 * (l % 4) + e % 2;
      double sum = sums[row][column];
      if (integer) {
        int64_t s = int64_t(sum) + reg<int32_t>(w, slotsC[e])[l];
        if (saturates)
          s = std::clamp<int64_t>(s, INT32_MIN, INT32_MAX);
        out[e][l] = uint32_t(s);
      } else if (half) {
        uint16_t c = reg<uint16_t>(w, slotsC[e / 2])[2 * l + e % 2];
        out[e][l] = encode(sum + halfToFloat(c), formatF16, Rounding::Nearest);
      } else {
        out[e][l] = asBits(canonical(float(sum + reg<float>(w, slotsC[e])[l])));
      }
    }
  }
  for (unsigned e = 0; e < (half ? 2 : 4); ++e) {
    uint32_t *d = reg<uint32_t>(w, slotsD[e]);
    for (unsigned l = 0; l < 32; ++l)
      d[l] = half ? out[2 * e][l] | out[2 * e + 1][l] << 16 : out[e][l];
  }
}

// 8 x 8 matrices of 16 bits. Lanes 8m..8m+7 give the rows of matrix m; lane l holds in register m
// row l / 4, columns 2 * (l % 4) and the next, or transposed the same of the columns.
template <bool isStore> void matrix(Warp &w, const Inst &i, uint32_t mask) {
  if (!aligned(w, mask))
    return;
  if (mask != ~0u) {
    w.fail(ErrorKind::Divergent, std::countr_zero(mask), "wants a whole warp");
    return;
  }
  const uint32_t *slots = w.program->pool.data() + i.vec;
  bool transposed = i.sub;
  uint16_t rows[8][8];
  uint64_t addresses[32];
  for (unsigned l = 0; l < 32; ++l)
    addresses[l] = addressOf(w, i, l);
  if (w.machine->options.count) {
    uint64_t low[32];
    for (unsigned l = 0; l < 32; ++l)
      low[l] = uint32_t(addresses[l]);
    countShared(w, low, i.count == 4 ? ~0u : (1u << 8 * i.count) - 1, 16);
  }
  for (unsigned m = 0; m < i.count; ++m) {
    uint32_t *d = reg<uint32_t>(w, slots[m]);
    if (isStore)
      for (unsigned l = 0; l < 32; ++l)
        for (unsigned k = 0; k < 2; ++k) {
          unsigned row = l / 4, column = 2 * (l % 4) + k;
          (transposed ? rows[column][row] : rows[row][column]) = uint16_t(d[l] >> 16 * k);
        }
    for (unsigned r = 0; r < 8; ++r) {
      unsigned lane = 8 * m + r;
      uint8_t *p = access(w, i, lane, i.space, addresses[lane], 16,
                          isStore ? accessWrite : accessRead, isStore ? rows[r] : nullptr);
      if (!p)
        return;
      if (isStore)
        memcpy(p, rows[r], 16);
      else
        memcpy(rows[r], p, 16);
    }
    if (!isStore)
      for (unsigned l = 0; l < 32; ++l) {
        unsigned row = l / 4, column = 2 * (l % 4);
        d[l] = transposed ? rows[column][row] | uint32_t(rows[column + 1][row]) << 16
                          : rows[row][column] | uint32_t(rows[row][column + 1]) << 16;
      }
  }
}

void transpose(Warp &w, const Inst &i, uint32_t mask) {
  if (!aligned(w, mask))
    return;
  uint16_t in[8][8];
  const uint32_t *a = reg<uint32_t>(w, i.a);
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned k = 0; k < 2; ++k)
      in[l / 4][2 * (l % 4) + k] = uint16_t(a[l] >> 16 * k);
  lanes<uint32_t>(w, i.d, mask, [&](unsigned l) {
    unsigned row = l / 4, column = 2 * (l % 4);
    return in[column][row] | uint32_t(in[column + 1][row]) << 16;
  });
}

bool vectorOf(Builder &b, const Operand &o, size_t n, bool isDestination) {
  // One register may stand without braces.
  std::vector<Operand> single{o};
  const std::vector<Operand> &elements = o.kind == Operand::Vector ? o.elements : single;
  if (elements.size() != n)
    return b.fail("has a fragment of " + std::to_string(elements.size()) + " registers where " +
                  std::to_string(n) + " are wanted");
  for (const Operand &element : elements) {
    uint32_t slot;
    if (isDestination ? !b.destination(element, 4, slot) : !b.source(element, 4, slot))
      return false;
    b.program.pool.push_back(slot);
  }
  return true;
}

int kindOf(Type t) {
  switch (t) {
  case Type::F16:
    return KindF16;
  case Type::BF16:
    return KindBF16;
  case Type::TF32:
    return KindTF32;
  case Type::S8:
    return KindS8;
  case Type::U8:
    return KindU8;
  case Type::E4M3:
    return KindE4M3;
  case Type::E5M2:
    return KindE5M2;
  default:
    return -1;
  }
}

bool decodeMma(Builder &b, Modifiers &m) {
  const auto &o = b.insn->operands;
  if (!m.take("sync") || !m.take("aligned") || !m.take("row") || !m.take("col"))
    return b.fail("wants .sync.aligned, .row and .col");
  unsigned K = 0;
  for (auto [name, k] : {std::pair<const char *, unsigned>{"m16n8k4", 4},
                         {"m16n8k8", 8},
                         {"m16n8k16", 16},
                         {"m16n8k32", 32}})
    if (m.take(name))
      K = k;
  bool saturates = m.take("satfinite");
  Type d = m.type(), a = m.type(), bType = m.type(), c = m.type();
  int kindA = kindOf(a), kindB = kindOf(bType);
  if (!K || kindA < 0 || kindB < 0 || !b.want(4, 4))
    return false;
  bool integer = kindA == KindS8 || kindA == KindU8, fp8 = kindA >= KindE4M3;
  unsigned P = perRegister(kindA);
  bool shape = P == 2   ? K == 8 || K == 16
               : P == 1 ? K == 4 || K == 8
                        : K == 32 || (integer && K == 16);
  bool alike =
      a == bType || (integer && (kindB == KindS8 || kindB == KindU8)) || (fp8 && kindB >= KindE4M3);
  bool half = c == Type::F16;
  bool accumulates =
      d == c && (integer ? c == Type::S32 : c == Type::F32 || (half && (kindA == KindF16 || fp8)));
  if (!shape || !alike || !accumulates)
    return b.fail("has types or a shape that do not go together, or are not supported");
  Inst i = b.make(Class::Mma, mma);
  i.imm = K;
  i.sub = kindA | kindB << 4 | (half ? 256 : 0) | (saturates ? 512 : 0);
  i.vec = b.program.pool.size();
  unsigned accumulators = half ? 2 : 4;
  if (!vectorOf(b, o[1], K / P / 2, false) || !vectorOf(b, o[2], K / P / 4, false) ||
      !vectorOf(b, o[3], accumulators, false))
    return false;
  i.vec2 = b.program.pool.size();
  if (!vectorOf(b, o[0], accumulators, true))
    return false;
  b.emit(i);
  return true;
}
} // namespace

bool decodeMatrix(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  const auto &o = b.insn->operands;
  if (base == "mma")
    return decodeMma(b, m);
  if (!m.take("sync") || !m.take("aligned") || !m.take("m8n8"))
    return false;
  if (base == "movmatrix") {
    Inst i = b.make(Class::Warp, transpose);
    if (!m.take("trans") || m.type() != Type::B16 || !b.want(2, 2) || !b.source(o[1], 4, i.a) ||
        !b.destination(o[0], 4, i.d))
      return false;
    b.emit(i);
    return true;
  }
  bool isStore = base == "stmatrix";
  Inst i = b.make(isStore ? Class::StoreShared : Class::LoadShared,
                  isStore ? matrix<true> : matrix<false>);
  i.count = m.take("x4") ? 4 : m.take("x2") ? 2 : m.take("x1") ? 1 : 0;
  i.sub = m.take("trans");
  if (m.take("shared") || m.take("shared::cta"))
    i.space = Space::Shared;
  if (!i.count || m.type() != Type::B16 || !b.want(2, 2) || !b.address(o[isStore ? 0 : 1], i))
    return false;
  i.vec = b.program.pool.size();
  if (!vectorOf(b, o[isStore ? 1 : 0], i.count, !isStore))
    return false;
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
