//===- DequantizedWeights.cpp - weights behind DequantizeLinear -----------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Codes of 4 or 8 bits with a scale per block of columns, or of 4 bits with a scale
// per row or one in all, stay as they are: their rows are rows of a group encoding.
//
//===----------------------------------------------------------------------===//

#include "compiler/weights/Format.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/raise/Probe.h"
#include "frontends/onnx/raise/WeightRefs.h"
#include "llvm/ADT/STLExtras.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::StringRef;

static bool isCodes(ElementType type) {
  return type == ElementType::Int4 || type == ElementType::UInt4 || type == ElementType::Int8 ||
         type == ElementType::UInt8;
}

/// The name of a kind of parts (Llm_PartAttr); empty where there is none.
static StringRef partKind(ElementType type) {
  switch (type) {
  case ElementType::Int4:
    return "i4";
  case ElementType::UInt4:
    return "u4";
  case ElementType::Int8:
    return "i8";
  case ElementType::UInt8:
    return "u8";
  case ElementType::Float:
    return "f32";
  case ElementType::Float16:
    return "f16";
  case ElementType::BFloat16:
    return "bf16";
  default:
    return "";
  }
}

/// The constant that a value is, computed where it is not there yet; null where it is none.
const Value *WeightRefs::constantOf(const Value *value) {
  if (!value || value->constant)
    return value;
  Roles none;
  none.sequenceSymbol = none.pastSymbol = ~0u;
  llvm::Expected<Tensor> computed = Probe(model, none, 1, 0).evaluate(*value);
  if (!computed) {
    llvm::consumeError(computed.takeError());
    return nullptr;
  }
  Value &result = made.emplace_back();
  result.name = value->name;
  result.type = computed->type;
  result.shape.emplace(computed->dims.begin(), computed->dims.end());
  result.constant = std::move(*computed);
  return &result;
}

WeightRef WeightRefs::dequantized(const Value *value, bool isTransposed) {
  bool transposed = !isTransposed; // the bytes are [columns][rows]
  // A small matrix may have been folded; its codes are still there.
  while (value && value->producer && !(value->constant && value->constant->isMapped())) {
    const Node &node = *value->producer;
    if (node.is("Identity"))
      value = node.input(0);
    else if (isMatrixTranspose(node)) {
      value = node.input(0);
      transposed = !transposed;
    } else
      break;
  }
  const Node *node = value ? value->producer : nullptr;
  if (!node || node->op != "DequantizeLinear")
    return {};
  const Value *codes = constantOf(node->input(0)), *scales = constantOf(node->input(1)),
              *zeros = constantOf(node->input(2));
  if (!codes || !scales || bool(zeros) != bool(node->input(2)) || !isCodes(codes->constant->type) ||
      codes->constant->dims.size() != 2)
    return {};
  const Tensor &c = *codes->constant, &s = *scales->constant;
  const int64_t bits = elementBits(c.type);
  const int64_t rows = c.dims[transposed ? 1 : 0], columns = c.dims[transposed ? 0 : 1];
  int64_t axis = node->integer("axis", 1), block = node->integer("block_size", 0);
  axis += axis < 0 ? 2 : 0;
  if (rows <= 0 || columns <= 0 ||
      (zeros && (zeros->constant->type != c.type || zeros->constant->elements() != s.elements())))
    return {};
  const bool alongColumns = (axis == 0) == transposed;
  const bool isBlocked = block > 0 && alongColumns && s.dims.size() == 2 &&
                         s.dims[transposed ? 1 : 0] == rows &&
                         s.dims[transposed ? 0 : 1] == (columns + block - 1) / block;
  const bool isPerRow = block == 0 && (s.elements() == 1 ||
                                       (s.dims.size() == 1 && !alongColumns && s.dims[0] == rows));
  // The middle code is 0 where there are no zero points.
  const double middle = isSignedInteger(c.type) ? 0 : 1 << (bits - 1);
  WeightRef ref;
  if (zeros && llvm::all_of(zeros->constant->doubles(), [&](double z) { return z == middle; }))
    zeros = nullptr;
  else
    ref.hasZeros = zeros || middle != 0;
  if (!isBlocked && !isPerRow)
    return {};
  // One number for every row, where there is one in all.
  auto spread = [&](const Value *given) {
    if (!given || isBlocked || given->constant->elements() == rows)
      return given;
    Value &all = made.emplace_back();
    all.name = given->name;
    all.type = given->constant->type;
    all.constant = Tensor::ofDoubles(all.type, {rows},
                                     std::vector<double>(size_t(rows), given->constant->number(0)));
    return const_cast<const Value *>(&all);
  };
  ref.value = codes;
  ref.scales = spread(scales);
  ref.zeros = spread(zeros);
  ref.isDequantized = true;
  ref.transposed = transposed;
  ref.group = isBlocked ? block : 0;
  ref.bits = bits;
  ref.rows = ref.allRows = rows;
  ref.columns = columns;
  return ref;
}

std::string WeightRefs::describeDequantized(const WeightRef &ref, llm::PartsAttr &parts,
                                            std::string &why) {
  const Tensor &codes = *ref.value->constant, &scales = *ref.scales->constant;
  StringRef scaleKind = partKind(scales.type);
  const std::string encoding = "int" + std::to_string(ref.bits) +
                               (ref.group ? "_g" + std::to_string(ref.group) : "_row") +
                               (ref.hasZeros ? "_zp" : "") + (scaleKind == "f16" ? "" : "_f32");
  if (!lookupEncoding(encoding) || !isFloat(scales.type) || scaleKind.empty()) {
    why = "weight " + quoted(ref.value->name) + " has blocks of " + std::to_string(ref.group) +
          " codes of " + std::to_string(ref.bits) + " bits with scales of " +
          elementTypeName(scales.type).str() + ", which is not supported";
    return {};
  }
  const int64_t groups = ref.group ? (ref.columns + ref.group - 1) / ref.group : 1;
  // Elements from one row of a tensor to the next.
  auto stride = [&](int64_t count) { return ref.transposed ? ref.allRows : count; };
  auto part = [&](const Value *value) {
    auto [file, offset] = place(*value->constant);
    return llm::PartAttr::get(&context, partKind(value->constant->type), file, offset,
                              stride(groups));
  };
  parts = llm::PartsAttr::get(&context, partKind(codes.type), stride(ref.columns), part(ref.scales),
                              ref.zeros ? part(ref.zeros) : llm::PartAttr(), ref.transposed);
  return encoding;
}
