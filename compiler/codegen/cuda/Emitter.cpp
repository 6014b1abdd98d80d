//===- Emitter.cpp - writes the MLIR of CUDA kernels ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr unsigned kGlobal = 1, kShared = 3;

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

template <typename IntOp, typename FloatOp> static Val binary(Val a, Val b) {
  assert(a.type() == b.type() && "operands differ");
  ImplicitLocOpBuilder &builder = a.emitter->getBuilder();
  if (isa<FloatType>(a.type()))
    return a.emitter->wrap(FloatOp::create(builder, a.value, b.value));
  return a.emitter->wrap(IntOp::create(builder, a.value, b.value));
}
template <typename IntOp> static Val integer(Val a, Val b) {
  assert(a.type() == b.type() && "operands differ");
  return a.emitter->wrap(IntOp::create(a.emitter->getBuilder(), a.value, b.value));
}
static Val compare(Val a, Val b, arith::CmpIPredicate i, arith::CmpFPredicate f) {
  ImplicitLocOpBuilder &builder = a.emitter->getBuilder();
  if (isa<FloatType>(a.type()))
    return a.emitter->wrap(arith::CmpFOp::create(builder, f, a.value, b.value));
  return a.emitter->wrap(arith::CmpIOp::create(builder, i, a.value, b.value));
}

Val cuda::operator+(Val a, Val b) { return binary<arith::AddIOp, arith::AddFOp>(a, b); }
Val cuda::operator-(Val a, Val b) { return binary<arith::SubIOp, arith::SubFOp>(a, b); }
Val cuda::operator*(Val a, Val b) { return binary<arith::MulIOp, arith::MulFOp>(a, b); }
Val cuda::operator/(Val a, Val b) { return binary<arith::DivUIOp, arith::DivFOp>(a, b); }
Val cuda::operator%(Val a, Val b) { return integer<arith::RemUIOp>(a, b); }
Val cuda::operator&(Val a, Val b) { return integer<arith::AndIOp>(a, b); }
Val cuda::operator|(Val a, Val b) { return integer<arith::OrIOp>(a, b); }
Val cuda::operator^(Val a, Val b) { return integer<arith::XOrIOp>(a, b); }
Val cuda::operator<<(Val a, Val b) { return integer<arith::ShLIOp>(a, b); }
Val cuda::operator>>(Val a, Val b) { return integer<arith::ShRUIOp>(a, b); }
Val cuda::operator<(Val a, Val b) {
  return compare(a, b, arith::CmpIPredicate::slt, arith::CmpFPredicate::OLT);
}
Val cuda::operator>=(Val a, Val b) {
  return compare(a, b, arith::CmpIPredicate::sge, arith::CmpFPredicate::OGE);
}
Val cuda::operator==(Val a, Val b) {
  return compare(a, b, arith::CmpIPredicate::eq, arith::CmpFPredicate::OEQ);
}

Val cuda::operator+(Val a, int64_t b) { return b == 0 ? a : a + a.emitter->constant(a, b); }
Val cuda::operator-(Val a, int64_t b) { return b == 0 ? a : a - a.emitter->constant(a, b); }
Val cuda::operator*(Val a, int64_t b) { return b == 1 ? a : a * a.emitter->constant(a, b); }
Val cuda::operator/(Val a, int64_t b) { return b == 1 ? a : a / a.emitter->constant(a, b); }
Val cuda::operator%(Val a, int64_t b) { return a % a.emitter->constant(a, b); }
Val cuda::operator&(Val a, int64_t b) { return a & a.emitter->constant(a, b); }
Val cuda::operator^(Val a, int64_t b) { return a ^ a.emitter->constant(a, b); }
Val cuda::operator<<(Val a, int64_t b) { return b == 0 ? a : a << a.emitter->constant(a, b); }
Val cuda::operator>>(Val a, int64_t b) { return b == 0 ? a : a >> a.emitter->constant(a, b); }
Val cuda::operator<(Val a, int64_t b) { return a < a.emitter->constant(a, b); }
Val cuda::operator>=(Val a, int64_t b) { return a >= a.emitter->constant(a, b); }
Val cuda::operator==(Val a, int64_t b) { return a == a.emitter->constant(a, b); }

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

Emitter::Emitter(gpu::GPUModuleOp module, unsigned computeCapability)
    : module(module), builder(module.getLoc(), module.getContext()), capability(computeCapability) {
  builder.setInsertionPointToEnd(module.getBody());
  sharedMemory = LLVM::GlobalOp::create(builder, LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
                                        /*isConstant=*/false, LLVM::Linkage::External,
                                        "shared_memory", Attribute(), /*alignment=*/16, kShared);
}

void Emitter::beginKernel(Location loc, StringRef name, int64_t bindings) {
  builder.setLoc(loc);
  builder.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext(), kGlobal);
  SmallVector<Type> types(bindings + 1, pointer);
  function = LLVM::LLVMFuncOp::create(
      builder, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  bindingCount = bindings;
  bindingsUsed = sharedSize = 0;
  Value base = LLVM::AddressOfOp::create(builder, sharedMemory);
  sharedBase = wrap(base);
  blockSums = shared(4 * kBlockThreads / kWarp);
}

void Emitter::endKernel(const LaunchSpec &launch) {
  assert(bindingsUsed == bindingCount && "a kernel takes all of its bindings");
  LLVM::ReturnOp::create(builder, ValueRange());
  function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                    builder.getDenseI32ArrayAttr({int32_t(launch.block)}));
  if (launch.minBlocks)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      builder.getI32IntegerAttr(int32_t(launch.minBlocks)));
}

Val Emitter::nextBinding() {
  assert(bindingsUsed < bindingCount);
  return wrap(function.getArgument(bindingsUsed++));
}

template <typename Op> Val Emitter::special() {
  return wrap(Op::create(builder, builder.getI32Type()));
}
Val Emitter::thread() { return special<NVVM::ThreadIdXOp>(); }
Val Emitter::lane() { return thread() & (kWarp - 1); }
Val Emitter::warp() {
  // The first lane's value: uniform for the code generator, too.
  return shuffleIndex(thread() / kWarp, i32(0));
}
Val Emitter::block(unsigned dim) {
  return dim == 0   ? special<NVVM::BlockIdXOp>()
         : dim == 1 ? special<NVVM::BlockIdYOp>()
                    : special<NVVM::BlockIdZOp>();
}

Val Emitter::stepField(int64_t offset) {
  return load(i32Type(), at(wrap(function.getArguments().back()), offset), true);
}
Val Emitter::stepPointer(int64_t offset) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext(), kGlobal);
  return load(pointer, at(wrap(function.getArguments().back()), offset), true);
}

void Emitter::dependencies() {
  if (capability < 90)
    return;
  NVVM::GriddepcontrolOp::create(builder, NVVM::GridDepActionKind::launch_dependents);
  NVVM::GriddepcontrolOp::create(builder, NVVM::GridDepActionKind::wait);
}

//===----------------------------------------------------------------------===//
// Constants and conversions
//===----------------------------------------------------------------------===//

Val Emitter::i32(int64_t value) {
  return wrap(arith::ConstantOp::create(builder, builder.getI32IntegerAttr(int32_t(value))));
}
Val Emitter::i64(int64_t value) {
  return wrap(arith::ConstantOp::create(builder, builder.getI64IntegerAttr(value)));
}
Val Emitter::f32(float value) {
  return wrap(arith::ConstantOp::create(builder, builder.getF32FloatAttr(value)));
}
Val Emitter::f64(double value) {
  return wrap(arith::ConstantOp::create(builder, builder.getF64FloatAttr(value)));
}
Val Emitter::constants(ArrayRef<float> values) {
  auto tensor = RankedTensorType::get({int64_t(values.size())}, f32Type());
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(function);
    global = LLVM::GlobalOp::create(
        builder, LLVM::LLVMArrayType::get(f32Type(), values.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal, (function.getName() + "_constants").str(),
        DenseElementsAttr::get(tensor, values), /*alignment=*/16, kGlobal);
  }
  Value address = LLVM::AddressOfOp::create(builder, global);
  return wrap(address);
}
Val Emitter::constant(Val like, int64_t value) {
  Type type = like.type();
  if (isa<FloatType>(type))
    return wrap(arith::ConstantOp::create(builder, builder.getFloatAttr(type, double(value))));
  APInt bits(type.getIntOrFloatBitWidth(), uint64_t(value), /*isSigned=*/true,
             /*implicitTrunc=*/true);
  return wrap(arith::ConstantOp::create(builder, builder.getIntegerAttr(type, bits)));
}
Val Emitter::toI64(Val value) {
  if (value.type().isInteger(64))
    return value;
  return wrap(arith::ExtUIOp::create(builder, builder.getI64Type(), value.value));
}
Val Emitter::toI32(Val value) {
  if (value.type().isInteger(32))
    return value;
  return wrap(arith::TruncIOp::create(builder, i32Type(), value.value));
}
Val Emitter::toF32(Val value) {
  if (value.type().isF32())
    return value;
  if (isa<FloatType>(value.type()))
    return wrap(arith::ExtFOp::create(builder, f32Type(), value.value));
  return wrap(arith::SIToFPOp::create(builder, f32Type(), value.value));
}
Val Emitter::toF64(Val value) {
  if (isa<FloatType>(value.type()))
    return wrap(arith::ExtFOp::create(builder, builder.getF64Type(), value.value));
  return wrap(arith::SIToFPOp::create(builder, builder.getF64Type(), value.value));
}
Val Emitter::f64ToF32(Val value) {
  return wrap(arith::TruncFOp::create(builder, f32Type(), value.value));
}
Val Emitter::toI32Rounded(Val value) {
  Value rounded = LLVM::RintOp::create(builder, value.value);
  return wrap(arith::FPToSIOp::create(builder, i32Type(), rounded));
}
Val Emitter::toF16(Val value) {
  return wrap(arith::TruncFOp::create(builder, f16Type(), value.value));
}
Val Emitter::bitcast(Val value, Type type) {
  return wrap(LLVM::BitcastOp::create(builder, type, value.value));
}
Val Emitter::byte(Val word, unsigned index, bool isSigned) {
  // Shift to the top, then down with the sign wanted: what bfe does.
  Val top = word << int64_t(24 - 8 * index);
  if (!isSigned)
    return top >> 24;
  return wrap(arith::ShRSIOp::create(builder, top.value, i32(24).value));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Val Emitter::call(StringRef intrinsic, Type result, ArrayRef<Val> args) {
  SmallVector<Value> values;
  for (Val arg : args)
    values.push_back(arg.value);
  return wrap(
      LLVM::CallIntrinsicOp::create(builder, result, builder.getStringAttr(intrinsic), values)
          .getResult(0));
}
void Emitter::callVoid(StringRef intrinsic, ArrayRef<Val> args) {
  SmallVector<Value> values;
  for (Val arg : args)
    values.push_back(arg.value);
  LLVM::CallIntrinsicOp::create(builder, builder.getStringAttr(intrinsic), values);
}

Val Emitter::fma(Val a, Val b, Val c) {
  return wrap(LLVM::FMAOp::create(builder, a.value, b.value, c.value));
}
Val Emitter::maxOf(Val a, Val b) { return binary<arith::MaxSIOp, arith::MaxNumFOp>(a, b); }
Val Emitter::minOf(Val a, Val b) { return binary<arith::MinSIOp, arith::MinNumFOp>(a, b); }
Val Emitter::absOf(Val a) { return wrap(LLVM::FAbsOp::create(builder, a.value)); }
Val Emitter::select(Val condition, Val a, Val b) {
  return wrap(arith::SelectOp::create(builder, condition.value, a.value, b.value));
}
Val Emitter::negate(Val a) { return wrap(arith::NegFOp::create(builder, a.value)); }
Val Emitter::sqrtOf(Val a) { return wrap(LLVM::SqrtOp::create(builder, a.value)); }

Val Emitter::dp4a(Val a, Val b, Val sum) {
  return call("llvm.nvvm.idp4a.s.s", i32Type(), {a, b, sum});
}
Val Emitter::permute(Val a, Val b, Val selector) {
  return call("llvm.nvvm.prmt", i32Type(), {a, b, selector});
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Type Emitter::vectorType(Type element, int64_t count) { return VectorType::get({count}, element); }

Val Emitter::at(Val address, Val bytes) {
  unsigned space = cast<LLVM::LLVMPointerType>(address.type()).getAddressSpace();
  Value offset = space == kShared ? bytes.value : toI64(bytes).value;
  return wrap(LLVM::GEPOp::create(builder, address.type(), builder.getI8Type(), address.value,
                                  ValueRange{offset}, LLVM::GEPNoWrapFlags::inbounds));
}
Val Emitter::at(Val address, int64_t bytes) {
  if (bytes == 0)
    return address;
  unsigned space = cast<LLVM::LLVMPointerType>(address.type()).getAddressSpace();
  return at(address, space == kShared ? i32(bytes) : i64(bytes));
}

static unsigned naturalAlignment(Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return 8;
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * vector.getElementTypeBitWidth() / 8;
  return type.getIntOrFloatBitWidth() / 8;
}

Val Emitter::load(Type type, Val address, bool readOnly) {
  auto op = LLVM::LoadOp::create(builder, type, address.value, naturalAlignment(type),
                                 /*isVolatile=*/false, /*isNonTemporal=*/false,
                                 /*isInvariant=*/readOnly);
  return wrap(op);
}
void Emitter::store(Val value, Val address) {
  LLVM::StoreOp::create(builder, value.value, address.value, naturalAlignment(value.type()));
}
Vals Emitter::elements(Val vector) {
  Vals elements;
  for (int64_t i = 0, count = cast<VectorType>(vector.type()).getNumElements(); i < count; ++i)
    elements.push_back(wrap(LLVM::ExtractElementOp::create(builder, vector.value, i32(i).value)));
  return elements;
}
Vals Emitter::loadVector(Type element, int64_t count, Val address, bool readOnly) {
  return elements(load(vectorType(element, count), address, readOnly));
}
void Emitter::storeVector(ArrayRef<Val> elements, Val address) {
  Value vector =
      LLVM::UndefOp::create(builder, vectorType(elements[0].type(), int64_t(elements.size())));
  for (auto [i, element] : llvm::enumerate(elements))
    vector = LLVM::InsertElementOp::create(builder, vector, element.value, i32(i).value);
  store(wrap(vector), address);
}
Val Emitter::shared(int64_t bytes) {
  int64_t offset = sharedSize;
  sharedSize += llvm::alignTo(bytes, 16);
  return at(sharedBase, offset);
}
void Emitter::prefetch(Val address) {
  // LLVM's intrinsic asks for a later PTX than the instruction does.
  LLVM::InlineAsmOp::create(builder, TypeRange(), ValueRange{address.value},
                            "prefetch.global.L2 [$0];", "l", /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}
void Emitter::copyAsync(Val to, Val from) {
  NVVM::CpAsyncOp::create(builder, to.value, from.value, 16, NVVM::LoadCacheModifierKind::CG,
                          Value());
}
void Emitter::commitCopies() { NVVM::CpAsyncCommitGroupOp::create(builder); }
void Emitter::waitCopies(int pending) { NVVM::CpAsyncWaitGroupOp::create(builder, pending); }
Val Emitter::atomicAdd(Val address, Val value) {
  return wrap(LLVM::AtomicRMWOp::create(builder, LLVM::AtomicBinOp::add, address.value, value.value,
                                        LLVM::AtomicOrdering::acq_rel, "device"));
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Emitter::barrier() { callVoid("llvm.nvvm.barrier.cta.sync.aligned.all", {i32(0)}); }
void Emitter::warpBarrier() { callVoid("llvm.nvvm.bar.warp.sync", {i32(-1)}); }
void Emitter::fence() { LLVM::FenceOp::create(builder, LLVM::AtomicOrdering::acq_rel, "device"); }

void Emitter::loop(Val from, Val to, int64_t step, function_ref<void(Val)> body) {
  loop(from, to, step, {}, [&](Val i, ArrayRef<Val>) -> Vals {
    body(i);
    return {};
  });
}

Vals Emitter::loop(Val from, Val to, int64_t step, ArrayRef<Val> start,
                   function_ref<Vals(Val, ArrayRef<Val>)> body) {
  SmallVector<Value> init;
  for (Val value : start)
    init.push_back(value.value);
  auto op = scf::ForOp::create(
      builder, from.value, to.value, constant(from, step).value, init,
      [&](OpBuilder &inner, Location loc, Value index, ValueRange carried) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
        Vals values;
        for (Value value : carried)
          values.push_back(wrap(value));
        SmallVector<Value> results;
        for (Val value : body(wrap(index), values))
          results.push_back(value.value);
        scf::YieldOp::create(builder, results);
      });
  Vals results;
  for (Value value : op.getResults())
    results.push_back(wrap(value));
  return results;
}

void Emitter::when(Val condition, function_ref<void()> then, function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(builder, condition.value, bool(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(op.thenBlock());
  then();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(op.elseBlock());
  otherwise();
}

Vals Emitter::choose(Val condition, function_ref<Vals()> then, function_ref<Vals()> otherwise) {
  // The types are known when the first branch is written.
  auto write = [&](function_ref<Vals()> branch, Block *block) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(block);
    SmallVector<Value> values;
    for (Val value : branch())
      values.push_back(value.value);
    scf::YieldOp::create(builder, values);
    return values;
  };
  Block *block = new Block;
  SmallVector<Value> values = write(then, block);
  auto op = scf::IfOp::create(builder, TypeRange(ValueRange(values)), condition.value, true);
  op.getThenRegion().takeBody(*std::make_unique<Region>());
  op.getThenRegion().push_back(block);
  if (op.getElseRegion().empty())
    op.getElseRegion().emplaceBlock();
  write(otherwise, &op.getElseRegion().front());
  Vals results;
  for (Value value : op.getResults())
    results.push_back(wrap(value));
  return results;
}

//===----------------------------------------------------------------------===//
// Between threads
//===----------------------------------------------------------------------===//

Val Emitter::shuffleXor(Val value, int64_t mask) {
  return wrap(NVVM::ShflOp::create(builder, value.type(), i32(-1).value, value.value,
                                   i32(mask).value, i32(31).value, NVVM::ShflKind::bfly,
                                   UnitAttr()));
}
Val Emitter::shuffleIndex(Val value, Val index) {
  return wrap(NVVM::ShflOp::create(builder, value.type(), i32(-1).value, value.value, index.value,
                                   i32(31).value, NVVM::ShflKind::idx, UnitAttr()));
}
Val Emitter::warpSum(Val value, int64_t width) {
  for (int64_t mask = width / 2; mask > 0; mask /= 2)
    value = value + shuffleXor(value, mask);
  return value;
}
Val Emitter::warpMax(Val value, int64_t width) {
  for (int64_t mask = width / 2; mask > 0; mask /= 2)
    value = maxOf(value, shuffleXor(value, mask));
  return value;
}

Val Emitter::blockSum(Val value) {
  constexpr int64_t warps = kBlockThreads / kWarp;
  value = warpSum(value);
  Val place = at(blockSums, warp() * 4); // all lanes take part in warp()
  when(lane() == 0, [&] { store(value, place); });
  barrier();
  Val sum = f32(0);
  for (int64_t i = 0; i < warps; i += 4)
    for (Val part : loadVector(f32Type(), 4, at(blockSums, 4 * i)))
      sum = sum + part;
  barrier(); // the places are free again
  return sum;
}
