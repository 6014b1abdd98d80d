//===- WeightRefs.cpp - constants -> llm.weight ---------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/WeightRefs.h"
#include "compiler/weights/Format.h"
#include "frontends/common/ImportError.h"
#include "frontends/onnx/raise/Probe.h"
#include "llvm/Support/Alignment.h"

using namespace llmc;
using namespace llmc::onnx;
using llvm::StringRef;

/// The encoding of a float type; empty where there is none.
static StringRef floatEncoding(ElementType type) {
  switch (type) {
  case ElementType::Float:
    return "f32";
  case ElementType::Float16:
    return "f16";
  case ElementType::BFloat16:
    return "bf16";
  case ElementType::Float8E4M3FN:
    return "f8_e4m3";
  case ElementType::Float8E5M2:
    return "f8_e5m2";
  default:
    return "";
  }
}

/// How codes of so many bits are kept in a tensor of that type.
static std::optional<StringRef> codeKind(ElementType type, int64_t bits) {
  if (bits == 4 && (type == ElementType::UInt8 || type == ElementType::UInt4))
    return "u4";
  if (bits == 4 && type == ElementType::Int4)
    return "i4";
  if (bits == 8 && type == ElementType::UInt8)
    return "u8";
  if (bits == 8 && type == ElementType::Int8)
    return "i8";
  return std::nullopt;
}

bool onnx::isMatrixTranspose(const Node &node) {
  llvm::ArrayRef<int64_t> perm = node.integers("perm");
  return node.is("Transpose") && node.input(0) && node.input(0)->rank() == 2 &&
         (perm.empty() || (perm.size() == 2 && perm[0] != 0));
}

/// The constant that a value is, transposes and casts between floats passed over; what is computed
/// in any other way is computed here.
const Value *WeightRefs::baseOf(const Value *value, bool &transposed) {
  const Value *base = value;
  bool flipped = transposed;
  // What was folded is followed, too: its source is in a file, and other uses refer to it there.
  while (base->producer && !(base->constant && base->constant->isMapped())) {
    const Node &node = *base->producer;
    const Value *from = node.input(0);
    if (!from)
      break;
    bool isCast = node.is("Cast") && isFloat(base->type) && isFloat(from->type);
    if (node.is("Identity") || isCast)
      base = from;
    else if (isMatrixTranspose(node)) {
      base = from;
      flipped = !flipped;
    } else
      break;
  }
  if (base->constant) {
    transposed = flipped;
    return base;
  }
  return constantOf(value);
}

/// The constant of 8-bit integers behind casts to a float; null where it is anything else.
static const Value *castCodes(const Value *value) {
  while (value && value->producer && !(value->constant && value->constant->isMapped()) &&
         (value->producer->is("Cast") || value->producer->is("Identity")))
    value = value->producer->input(0);
  bool isCodes = value && value->constant && value->constant->dims.size() == 2 &&
                 (value->type == ElementType::Int8 || value->type == ElementType::UInt8);
  return isCodes ? value : nullptr;
}

namespace {
/// (codes - zeros) * scales, a matrix as it lies in the file.
struct ScaledCodes {
  const Value *codes = nullptr, *scales = nullptr, *zeros = nullptr;
};
} // namespace

/// The arithmetic that a DequantizeLinear stands for.
static ScaledCodes scaledProduct(const Node &node) {
  ScaledCodes found;
  if (!node.is("Mul") || node.inputs.size() != 2)
    return found;
  for (size_t i = 0; i < 2 && !found.codes; ++i) {
    const Value *product = node.input(i), *zeros = nullptr;
    if (product && product->producer && product->producer->is("Sub")) {
      zeros = product->producer->input(1);
      product = product->producer->input(0);
    }
    found = {castCodes(product), node.input(1 - i), zeros};
  }
  return found;
}

/// One number for every row: of a constant with one in all, or with one per index of `axis` of a
/// matrix, against which it broadcasts; nothing where it is anything else.
static std::optional<std::vector<double>> numbersOfRows(const Value *value, int64_t axis,
                                                        int64_t rows) {
  const Value *constant = value;
  while (constant && !constant->constant && constant->producer && constant->producer->is("Cast"))
    constant = constant->producer->input(0);
  if (!constant || !constant->constant || constant->constant->type == ElementType::String)
    return std::nullopt;
  const Tensor &tensor = *constant->constant;
  if (tensor.elements() == 1)
    return std::vector<double>(size_t(rows), tensor.number(0));
  if (tensor.elements() != rows)
    return std::nullopt;
  int64_t at = int64_t(tensor.dims.size()) - 1;
  while (at >= 0 && tensor.dims[size_t(at)] != rows)
    --at;
  return at + 2 - int64_t(tensor.dims.size()) == axis ? std::optional(tensor.doubles())
                                                      : std::nullopt;
}

/// 8-bit codes with a scale per row of the matrix, taken as they are; none where `value` is none.
WeightRef WeightRefs::scaledRows(const Value *value, bool isTransposed) {
  WeightRef ref;
  bool transposed = !isTransposed;
  while (value && value->producer &&
         (value->producer->is("Identity") || isMatrixTranspose(*value->producer))) {
    transposed ^= !value->producer->is("Identity");
    value = value->producer->input(0);
  }
  if (!value || !value->producer)
    return ref;
  ScaledCodes found = scaledProduct(*value->producer);
  return scaledCodes(found.codes, found.scales, found.zeros, !transposed);
}

WeightRef WeightRefs::scaledCodes(const Value *codesValue, const Value *scalesValue,
                                  const Value *zerosValue, bool isTransposed) {
  WeightRef ref;
  const Value *base = castCodes(codesValue);
  if (!base)
    return ref;
  bool transposed = !isTransposed;
  const Tensor &codes = *base->constant;
  int64_t rows = codes.dims[transposed], columns = codes.dims[!transposed];
  if (rows <= 0 || columns <= 0)
    return ref;
  auto scales = numbersOfRows(scalesValue, transposed, rows);
  auto zeros = zerosValue ? numbersOfRows(zerosValue, transposed, rows)
                          : std::vector<double>(size_t(rows), 0.0);
  if (!scales || !zeros)
    return ref;
  auto keep = [&](ElementType type, llvm::ArrayRef<double> numbers) {
    Value &made = this->made.emplace_back();
    made.name = base->name;
    made.type = type;
    made.constant = Tensor::ofDoubles(type, {rows}, numbers);
    return &made;
  };
  // The middle code is 0 without zero points.
  double middle = codes.type == ElementType::UInt8 ? 128 : 0;
  if (llvm::any_of(*zeros, [&](double zero) { return zero != middle; })) {
    ref.zeros = keep(codes.type, *zeros);
    if (ref.zeros->constant->doubles() != *zeros)
      return WeightRef();
  }
  ref.scales = keep(ElementType::Float, *scales);
  ref.value = base;
  ref.isDequantized = true;
  ref.hasZeros = ref.zeros;
  ref.bits = 8;
  ref.transposed = transposed;
  ref.rows = ref.allRows = rows;
  ref.columns = columns;
  return ref;
}

WeightRef WeightRefs::matrix(const Value *value, bool isTransposed) {
  if (WeightRef codes = dequantized(value, isTransposed))
    return codes;
  if (WeightRef scaled = scaledRows(value, isTransposed))
    return scaled;
  // The matrix of a linear is [N, K]; a MatMul's operand is [K, N].
  WeightRef ref;
  bool transposed = !isTransposed;
  const Value *base = value ? baseOf(value, transposed) : nullptr;
  if (!base)
    return ref;
  Dims dims = base->constant->dims;
  while (dims.size() > 2 && dims.front() == 1)
    dims.erase(dims.begin());
  if (dims.size() != 2 || dims[0] <= 0 || dims[1] <= 0)
    return ref;
  ref.value = base;
  ref.transposed = transposed;
  ref.rows = ref.allRows = transposed ? dims[1] : dims[0];
  ref.columns = transposed ? dims[0] : dims[1];
  return ref;
}

WeightRef WeightRefs::vector(const Value *value) {
  WeightRef ref;
  bool transposed = false;
  const Value *base = value ? baseOf(value, transposed) : nullptr;
  if (!base || base->constant->elements() <= 0)
    return ref;
  ref.value = base;
  ref.isVector = true;
  ref.columns = base->constant->elements();
  return ref;
}

WeightRef WeightRefs::grouped(const Value *codes, const Value *scales, const Value *zeros,
                              int64_t rows, int64_t columns, int64_t group, int64_t bits) {
  WeightRef ref;
  // Codes keep their bytes through reshapes.
  while (codes && codes->producer && !(codes->constant && codes->constant->isMapped()) &&
         (codes->producer->is("Reshape") || codes->producer->is("Identity")))
    codes = codes->producer->input(0);
  if (!codes || !codes->constant || !scales || !scales->constant || (zeros && !zeros->constant) ||
      rows <= 0 || columns <= 0 || group <= 0)
    return ref;
  ref.value = codes;
  ref.scales = scales;
  ref.zeros = zeros;
  ref.group = group;
  ref.bits = bits;
  ref.rows = ref.allRows = rows;
  ref.columns = columns;
  return ref;
}

WeightRef WeightRefs::ones(int64_t size) {
  Value &value = made.emplace_back();
  value.name = "ones";
  value.type = ElementType::Float;
  value.constant =
      Tensor::ofDoubles(ElementType::Float, {size}, std::vector<double>(size_t(size), 1.0));
  return vector(&value);
}

WeightRef WeightRefs::computed(StringRef name, int64_t rows, int64_t columns,
                               llvm::ArrayRef<double> values) {
  Value &value = made.emplace_back();
  value.name = model.keep(name.str());
  value.type = ElementType::Float;
  value.constant = Tensor::ofDoubles(ElementType::Float, {rows, columns}, values);
  WeightRef ref;
  ref.value = &value;
  ref.rows = ref.allRows = rows;
  ref.columns = columns;
  return ref;
}

int64_t WeightRefs::remember(llvm::ArrayRef<uint8_t> bytes) {
  auto [it, isNew] = remembered.try_emplace(bytes.data(), 0);
  if (isNew) {
    memory.resize(llvm::alignTo(memory.size(), 64));
    it->second = int64_t(memory.size());
    memory.insert(memory.end(), bytes.begin(), bytes.end());
  }
  return it->second;
}

/// File and offset of a tensor's bytes.
std::pair<int64_t, int64_t> WeightRefs::place(const Tensor &tensor) {
  if (tensor.isMapped())
    return {tensor.file, int64_t(tensor.offset)};
  return {int64_t(model.files.size()), remember(tensor.bytes)};
}

mlir::FlatSymbolRefAttr WeightRefs::symbol(const WeightRef &ref, mlir::OpBuilder &symbols,
                                           std::string &why) {
  const Tensor *tensor = &*ref.value->constant;
  std::string name = quoted(ref.value->name);
  std::string encoding;
  llvm::SmallVector<mlir::Attribute> recipe;
  llvm::SmallVector<int64_t> shape;
  llm::PartsAttr parts;
  if (ref.isDequantized) {
    encoding = describeDequantized(ref, parts, why);
    if (encoding.empty())
      return {};
    shape = {ref.allRows, ref.columns};
  } else if (ref.group) {
    std::optional<StringRef> codes = codeKind(tensor->type, ref.bits);
    StringRef scales = floatEncoding(ref.scales->constant->type);
    if (!codes || (scales != "f32" && scales != "f16")) {
      why = "weight " + name + " has codes of " + std::to_string(ref.bits) + " bits in " +
            elementTypeName(tensor->type).str() + " and scales of " +
            elementTypeName(ref.scales->constant->type).str() + ", which is not supported";
      return {};
    }
    encoding = "int" + std::to_string(ref.bits) + "_g" + std::to_string(ref.group) +
               (ref.zeros ? "_zp" : "") + (scales == "f16" ? "" : "_f32");
    if (!lookupEncoding(encoding)) {
      why = "weight " + name + " has blocks of " + std::to_string(ref.group) + " codes of " +
            std::to_string(ref.bits) + " bits, which is not supported";
      return {};
    }
    int64_t groups = (ref.columns + ref.group - 1) / ref.group, stride = groups * ref.group;
    int64_t perByte = 8 / ref.bits, zeroStride = groups;
    uint64_t rows = uint64_t(ref.allRows);
    bool fits = tensor->bytes.size() == rows * uint64_t(stride / perByte) &&
                ref.scales->constant->elements() == ref.allRows * groups;
    llm::PartAttr zeroPart;
    if (ref.zeros) {
      const Tensor &zeros = *ref.zeros->constant;
      StringRef kind = isFloat(zeros.type) ? floatEncoding(zeros.type) : *codes;
      if (!isFloat(zeros.type)) // rows of zero points are whole bytes
        zeroStride = (groups + perByte - 1) / perByte * perByte;
      fits &= zeros.bytes.size() == (isFloat(zeros.type)
                                         ? rows * uint64_t(groups) * elementBits(zeros.type) / 8
                                         : rows * uint64_t(zeroStride / perByte));
      auto [zeroFile, zeroOffset] = place(zeros);
      zeroPart = llm::PartAttr::get(&context, kind, zeroFile, zeroOffset, zeroStride);
    }
    if (!fits) {
      why = "weight " + name + " has codes, scales or zero points of another size than its " +
            std::to_string(ref.allRows) + " rows of " + std::to_string(ref.columns) + " need";
      return {};
    }
    auto [scaleFile, scaleOffset] = place(*ref.scales->constant);
    parts = llm::PartsAttr::get(
        &context, *codes, stride,
        llm::PartAttr::get(&context, scales, scaleFile, scaleOffset, groups), zeroPart,
        /*transposed=*/false);
    shape = {ref.allRows, ref.columns};
  } else {
    Tensor converted;
    encoding = floatEncoding(tensor->type).str();
    if (encoding.empty()) {
      if (!isFloat(tensor->type) && !isInteger(tensor->type)) {
        why = "weight " + name + " has the type " + elementTypeName(tensor->type).str();
        return {};
      }
      Value &value = made.emplace_back();
      value.name = ref.value->name;
      value.constant = Tensor::ofDoubles(ElementType::Float, tensor->dims, tensor->doubles());
      tensor = &*value.constant;
      encoding = "f32";
    }
    if (ref.isVector)
      shape = {tensor->elements()};
    else if (ref.transposed)
      shape = {ref.columns, ref.allRows};
    else
      shape = {ref.allRows, ref.columns};
    if (ref.transposed && !ref.isVector)
      recipe.push_back(llm::TransposeAttr::get(&context));
  }
  int64_t count = ref.isVector ? ref.columns : ref.rows;
  int64_t all = ref.isVector ? shape[0] : ref.allRows;
  if (ref.begin != 0 || count != all)
    recipe.push_back(llm::SliceRowsAttr::get(&context, ref.begin, count));
  if (ref.isVector && encoding != "f32")
    recipe.push_back(llm::CastAttr::get(&context, "f32"));
  auto [file, offset] = place(*tensor);
  mlir::ArrayAttr steps = symbols.getArrayAttr(recipe);
  std::string key;
  llvm::raw_string_ostream(key) << file << ':' << offset << ':' << encoding << ':' << shape.size()
                                << ':' << shape[0] << ':' << steps;
  if (parts)
    llvm::raw_string_ostream(key) << ':' << parts;
  auto [it, isNew] = known.try_emplace(key);
  if (isNew) {
    std::string text = "w." + std::to_string(known.size());
    std::string original;
    for (char c : ref.value->name.take_front(200))
      original += c >= 32 && c < 127 ? c : '_';
    llm::WeightOp::create(symbols, mlir::NameLoc::get(symbols.getStringAttr(original)), text, shape,
                          encoding, file, offset, steps, parts);
    it->second = mlir::FlatSymbolRefAttr::get(&context, text);
  }
  return it->second;
}

std::vector<SourceFile> WeightRefs::takeFiles() {
  std::vector<SourceFile> files;
  if (!memory.empty())
    files.push_back({model.path().str() + " (constants)",
                     llvm::MemoryBuffer::getMemBufferCopy(
                         StringRef(reinterpret_cast<const char *>(memory.data()), memory.size()))});
  return files;
}
