//===- Emitter.cpp - writes the MLIR of CPU kernels -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Emitter.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

Emitter::Emitter(ModuleOp module, bool bf16Tiles)
    : module(module), builder(module.getLoc(), module.getContext()), bf16Tiles(bf16Tiles) {}

sched::ActKind Emitter::arithmetic(sched::ActKind act, bool prefill) {
  if (!bf16Tiles || !prefill)
    return act;
  bf16Used = true;
  return sched::ActKind::BF16;
}

Type Emitter::pointerType() { return LLVM::LLVMPointerType::get(context()); }

void Emitter::beginKernel(Location loc, StringRef name) {
  builder.setLoc(loc);
  builder.setInsertionPointToEnd(module.getBody());
  Type pointer = pointerType(), index = builder.getI64Type();
  function = func::FuncOp::create(
      builder, name,
      builder.getFunctionType({pointer, pointer, pointer, index, index}, TypeRange()));
  entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  bindingCount = 0;
  scratchSize = 0;
}

void Emitter::endKernel() { func::ReturnOp::create(builder); }

Value Emitter::nextBinding() {
  Value slot = at(function.getArgument(0), 8 * bindingCount++);
  return load(pointerType(), slot);
}

Value Emitter::stepField(int64_t offset) {
  return toI64(load(builder.getI32Type(), at(function.getArgument(1), offset)));
}
Value Emitter::stepTokens() { return load(pointerType(), at(function.getArgument(1), 16)); }
Value Emitter::stepLogitMaxima() { return load(pointerType(), at(function.getArgument(1), 32)); }
Value Emitter::stepLogits() { return load(pointerType(), at(function.getArgument(1), 24)); }

Value Emitter::reserve(int64_t bytes) {
  Value address = at(function.getArgument(2), scratchSize);
  scratchSize += llvm::alignTo(bytes, 64);
  return address;
}

Value Emitter::i64(int64_t value) {
  return arith::ConstantOp::create(builder, builder.getI64IntegerAttr(value));
}
Value Emitter::i32(int64_t value) {
  return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
}
Value Emitter::f32(float value) {
  return arith::ConstantOp::create(builder, builder.getF32FloatAttr(value));
}
Value Emitter::toI32(Value value) {
  return arith::TruncIOp::create(builder, builder.getI32Type(), value);
}
Value Emitter::toI64(Value value) {
  return arith::ExtSIOp::create(builder, builder.getI64Type(), value);
}
Value Emitter::add(Value a, Value b) { return arith::AddIOp::create(builder, a, b); }
Value Emitter::sub(Value a, Value b) { return arith::SubIOp::create(builder, a, b); }
Value Emitter::mul(Value a, Value b) { return arith::MulIOp::create(builder, a, b); }
Value Emitter::div(Value a, Value b) { return arith::DivUIOp::create(builder, a, b); }
Value Emitter::rem(Value a, Value b) { return arith::RemUIOp::create(builder, a, b); }
Value Emitter::min(Value a, Value b) { return arith::MinSIOp::create(builder, a, b); }
Value Emitter::max(Value a, Value b) { return arith::MaxSIOp::create(builder, a, b); }
Value Emitter::less(Value a, Value b) {
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, a, b);
}
Value Emitter::equal(Value a, Value b) {
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, a, b);
}

Value Emitter::at(Value base, Value bytes) {
  return LLVM::GEPOp::create(builder, pointerType(), builder.getI8Type(), base, bytes,
                             LLVM::GEPNoWrapFlags::inbounds);
}
Value Emitter::load(Type type, Value address) {
  return LLVM::LoadOp::create(builder, type, address);
}
void Emitter::store(Value value, Value address) { LLVM::StoreOp::create(builder, value, address); }

void Emitter::loop(Value from, Value to, int64_t step, function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(builder, from, to, i64(step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void Emitter::branch(Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(builder, condition, bool(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.thenBlock());
  then();
  if (otherwise) {
    builder.setInsertionPointToStart(op.elseBlock());
    otherwise();
  }
}

LLVM::LLVMFuncOp Emitter::declare(StringRef name, TypeRange types) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context()),
                                          SmallVector<Type>(types.begin(), types.end()));
  return LLVM::LLVMFuncOp::create(builder, name, type);
}

void Emitter::call(StringRef name, ArrayRef<Value> args) {
  LLVM::LLVMFuncOp callee = declare(name, TypeRange(ValueRange(args)));
  LLVM::CallOp::create(builder, callee, args);
}

func::FuncOp Emitter::instance(StringRef name, ArrayRef<Type> types,
                               function_ref<void(Block::BlockArgListType)> body) {
  if (auto known = module.lookupSymbol<func::FuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto func = func::FuncOp::create(builder, name, builder.getFunctionType(types, TypeRange()));
  func.setPrivate();
  builder.setInsertionPointToStart(func.addEntryBlock());
  body(func.getArguments());
  func::ReturnOp::create(builder);
  return func;
}

static std::string instanceName(StringRef kernel, const PackedMatrix &matrix, sched::ActKind act,
                                int64_t outStride) {
  return (kernel + "_" + matrix.encoding->name + "_k" + Twine(matrix.columns) + "_" +
          sched::stringifyActKind(act) + (outStride ? "_o" + Twine(outStride) : Twine()))
      .str();
}

static int64_t ukAct(sched::ActKind act) {
  switch (act) {
  case sched::ActKind::Int8:
    return ukActInt8;
  case sched::ActKind::F32:
    return ukActF32;
  case sched::ActKind::BF16:
    return ukActBf16;
  }
  llvm_unreachable("all kinds are handled");
}

void Emitter::matmul(const PackedMatrix &matrix, sched::ActKind act, Value panel, Value records,
                     Value rows, Value out, int64_t outStride) {
  Type pointer = pointerType();
  func::FuncOp callee = instance(instanceName("matmul", matrix, act, outStride),
                                 {pointer, pointer, builder.getI32Type(), pointer}, [&](auto args) {
                                   SmallVector<Value> values{args[0],
                                                             args[1],
                                                             i64(recordBytes(act, matrix.columns)),
                                                             args[2],
                                                             i64(matrix.columns),
                                                             i32(ukAct(act))};
                                   for (int32_t field : kernelFormatArgs(*matrix.encoding))
                                     values.push_back(i32(field));
                                   values.append({args[3], i64(outStride)});
                                   call("uk_matmul", values);
                                 });
  func::CallOp::create(builder, callee, ValueRange{panel, records, toI32(rows), out});
}

void Emitter::gemv(const PackedMatrix &matrix, sched::ActKind act, Value panel, Value panels,
                   Value record, Value out) {
  Type pointer = pointerType();
  func::FuncOp callee = instance(instanceName("gemv", matrix, act, 0),
                                 {pointer, builder.getI32Type(), pointer, pointer}, [&](auto args) {
                                   SmallVector<Value> values{args[0], args[1], args[2],
                                                             i64(matrix.columns), i32(ukAct(act))};
                                   for (int32_t field : kernelFormatArgs(*matrix.encoding))
                                     values.push_back(i32(field));
                                   values.push_back(args[3]);
                                   call("uk_gemv", values);
                                 });
  func::CallOp::create(builder, callee, ValueRange{panel, toI32(panels), record, out});
}

void Emitter::bf16Panels(const PackedMatrix &matrix, Value panel, Value panels, Value expanded) {
  Type pointer = pointerType();
  std::string name =
      (Twine("bf16_panels_") + matrix.encoding->name + "_k" + Twine(matrix.columns)).str();
  func::FuncOp callee = instance(name, {pointer, builder.getI32Type(), pointer}, [&](auto args) {
    SmallVector<Value> values{args[0], args[1], i64(matrix.columns)};
    for (int32_t field : kernelFormatArgs(*matrix.encoding))
      values.push_back(i32(field));
    values.push_back(args[2]);
    call("uk_bf16_panels", values);
  });
  func::CallOp::create(builder, callee, ValueRange{panel, toI32(panels), expanded});
}

void Emitter::bf16Matmul(int64_t columns, Value expanded, Value panels, Value records, Value rows,
                         Value out, int64_t outStride) {
  Type pointer = pointerType(), i32Type = builder.getI32Type();
  std::string name = ("bf16_matmul_k" + Twine(columns) + "_o" + Twine(outStride)).str();
  func::FuncOp callee =
      instance(name, {pointer, i32Type, pointer, i32Type, pointer}, [&](auto args) {
        call("uk_bf16_matmul",
             {args[0], args[1], args[2], i64(recordBytes(sched::ActKind::BF16, columns)), args[3],
              i64(columns), args[4], i64(outStride)});
      });
  func::CallOp::create(builder, callee,
                       ValueRange{expanded, toI32(panels), records, toI32(rows), out});
}

void Emitter::tileState(StringRef kernel, sched::ActKind act, Value rows) {
  StringRef name = kernel.drop_front(StringRef("uk_").size());
  func::FuncOp callee =
      instance((name + "_" + sched::stringifyActKind(act)).str(), {builder.getI32Type()},
               [&](auto args) { call(kernel, {args[0], i32(ukAct(act))}); });
  func::CallOp::create(builder, callee, ValueRange{toI32(rows)});
}

void Emitter::normalize(sched::NormSpecAttr norm, Value weight, Value bias, Value x, int64_t n,
                        Value out) {
  Value eps = f32(norm.getEps().getValueAsDouble());
  if (norm.getKind() == llm::NormKind::Rms) {
    call("uk_rms_norm", {x, weight, i64(n), eps, out});
    return;
  }
  if (!bias)
    bias = LLVM::ZeroOp::create(builder, pointerType());
  call("uk_layer_norm", {x, weight, bias, i64(n), eps, out});
}

void Emitter::makeRecord(sched::ActKind act, Value x, int64_t n, Value record) {
  constexpr StringRef kernels[] = {"uk_quantize_act", "uk_copy_act_f32", "uk_bf16_act"};
  call(kernels[ukAct(act)], {x, i64(n), record});
}

int64_t cpu::recordBytes(sched::ActKind act, int64_t columns) {
  return ukActStride(ukAct(act), columns);
}

PackedMatrix cpu::packedMatrix(StringRef name, int64_t rows, int64_t columns) {
  const Encoding *encoding = lookupEncoding(name);
  assert(encoding && "the scheduler passes known encodings only");
  return {encoding, rows, columns, int64_t(packedLayout(*encoding, rows, columns).panelBytes)};
}

PackedMatrix cpu::packedMatrix(sched::SegmentAttr segment, int64_t columns) {
  return packedMatrix(segment.getEncoding(), segment.getRows(), columns);
}

int64_t cpu::partialBytes(int64_t headDim) { return kPartialOutput + 4 * headDim; }
