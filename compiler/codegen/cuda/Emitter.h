//===- Emitter.h - writes the MLIR of CUDA kernels --------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is an `llvm.func` with `nvvm.kernel` in a `gpu.module`, made of scf
// control flow, arith, and llvm and nvvm ops. Everything that the compiler knows
// (shapes, encodings, strides) is a constant of the code; what a step decides is
// read from the llmc_cuda_step_t (runtime/include/llmc/cuda_abi.h).
//
// `Val` is a value with the operators of C, so that kernels read like kernels:
// integers are unsigned for `/`, `%` and `>>`, signed for comparisons; floats are
// never contracted, `fma` is written where it is meant.
//
// Every block has whole warps. Sums are made in an order that depends on the
// shapes only, so that a row gives the same bits in every program.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CUDA_EMITTER_H
#define LLMC_COMPILER_CODEGEN_CUDA_EMITTER_H

#include "compiler/ir/Sched.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace llmc::cuda {

class Emitter;

/// A value of the kernel that is being written; null if default-constructed.
struct Val {
  mlir::Value value;
  Emitter *emitter = nullptr;
  explicit operator bool() const { return bool(value); }
  mlir::Type type() const { return value.getType(); }
};
using Vals = llvm::SmallVector<Val, 4>;

Val operator+(Val a, Val b);
Val operator-(Val a, Val b);
Val operator*(Val a, Val b);
Val operator/(Val a, Val b);
Val operator%(Val a, Val b);
Val operator&(Val a, Val b);
Val operator|(Val a, Val b);
Val operator^(Val a, Val b);
Val operator<<(Val a, Val b);
Val operator>>(Val a, Val b);
Val operator<(Val a, Val b);
Val operator>=(Val a, Val b);
Val operator==(Val a, Val b);
// With a constant of the other's type.
Val operator+(Val a, int64_t b);
Val operator-(Val a, int64_t b);
Val operator*(Val a, int64_t b);
Val operator/(Val a, int64_t b);
Val operator%(Val a, int64_t b);
Val operator&(Val a, int64_t b);
Val operator^(Val a, int64_t b);
Val operator<<(Val a, int64_t b);
Val operator>>(Val a, int64_t b);
Val operator<(Val a, int64_t b);
Val operator>=(Val a, int64_t b);
Val operator==(Val a, int64_t b);

/// How a kernel is launched, as a function of the most rows of a program.
struct LaunchSpec {
  /// Blocks in x, y and z; where rowsPerBlock is not 0, for each so many rows.
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> rowsPerBlock = {0, 0, 0};
  int64_t block = 256;
  /// Blocks that shall fit a multiprocessor, which bounds registers; 0: the assembler weighs.
  int64_t minBlocks = 0;
  /// Dynamic shared memory, and more of it per row, for at most `sharedRows` of them.
  int64_t sharedBytes = 0, sharedBytesPerRow = 0, sharedRows = 0;
};

/// The threads of a block of most kernels: sums over a row are made by that many.
inline constexpr int64_t kBlockThreads = 256;
inline constexpr int64_t kWarp = 32;

class Emitter {
public:
  /// Emits into `module` for a GPU of `computeCapability` (80, 89, 90).
  Emitter(mlir::gpu::GPUModuleOp module, unsigned computeCapability);

  /// Starts the kernel `name` with `bindings` bindings.
  void beginKernel(mlir::Location loc, llvm::StringRef name, int64_t bindings);
  /// Ends it; `launch` says how many threads a block has.
  void endKernel(const LaunchSpec &launch);
  unsigned computeCapability() const { return capability; }

  // --- the kernel's arguments and place -------------------------------------

  /// The address of the next binding (global memory), in the order of the dispatch.
  Val nextBinding();
  Val thread();            ///< i32, in the block
  Val lane();              ///< i32, in the warp
  Val warp();              ///< i32, in the block; all lanes take part
  Val block(unsigned dim); ///< i32
  // Of the step; only after dependencies(). i32 or addresses.
  Val rows() { return stepField(0); }
  Val position() { return stepField(4); }
  Val outBegin() { return stepField(8); }
  Val outRows() { return stepField(12); }
  Val tokens() { return stepPointer(16); }
  Val logits() { return stepPointer(24); }
  Val logitMaxima() { return stepPointer(32); }
  Val counters() { return stepPointer(40); }
  Val picks() { return stepPointer(48); }

  /// Lets the next kernel start, and waits until the ones before have ended: before it, a kernel
  /// touches weights only.
  void dependencies();

  // --- constants and conversions --------------------------------------------

  Val i32(int64_t value);
  Val i64(int64_t value);
  Val f32(float value);
  Val f64(double value);
  /// The address of constants in global memory.
  Val constants(llvm::ArrayRef<float> values);
  /// A constant of the type of `like`.
  Val constant(Val like, int64_t value);
  Val toI64(Val value); ///< zero-extends
  Val toI32(Val value); ///< truncates
  Val toF32(Val value); ///< from i32 (signed), f16 or bf16
  Val toF64(Val value); ///< from i32 (signed) or f32
  Val f64ToF32(Val value);
  Val toI32Rounded(Val value); ///< from f32, to nearest even
  Val toF16(Val value);        ///< from f32, to nearest even
  Val bitcast(Val value, mlir::Type type);
  Val byte(Val word, unsigned index, bool isSigned); ///< of an i32, as i32

  // --- arithmetic ------------------------------------------------------------

  Val fma(Val a, Val b, Val c); ///< f32 or f64
  Val maxOf(Val a, Val b);      ///< f32: of a number and NaN the number; i32: signed
  Val minOf(Val a, Val b);
  Val absOf(Val a); ///< f32
  Val select(Val condition, Val a, Val b);
  Val negate(Val a); ///< f32 or f64
  Val sqrtOf(Val a); ///< f32, correctly rounded
  /// e^x, tanh x, and the activation, within some units of the last place.
  Val expOf(Val x);
  Val tanhOf(Val x);
  Val activate(llm::Activation kind, Val x);
  /// c[0] + c[1] x + ... by Horner; of the type of x.
  Val polynomial(Val x, llvm::ArrayRef<double> coefficients);
  Val softcapOf(Val x, float cap);

  /// sum + dot product of the four signed bytes of two i32.
  Val dp4a(Val a, Val b, Val sum);
  /// Bytes of a and b as `selector` says (PTX prmt).
  Val permute(Val a, Val b, Val selector);

  // --- memory ------------------------------------------------------------------

  mlir::Type i32Type() { return builder.getI32Type(); }
  mlir::Type f32Type() { return builder.getF32Type(); }
  mlir::Type f16Type() { return builder.getF16Type(); }
  mlir::Type vectorType(mlir::Type element, int64_t count);

  /// address + bytes (i32, not negative, or i64).
  Val at(Val address, Val bytes);
  Val at(Val address, int64_t bytes);
  /// `readOnly`: nothing writes there while the kernel runs.
  Val load(mlir::Type type, Val address, bool readOnly = false);
  void store(Val value, Val address);
  Vals elements(Val vector);
  /// The elements of a vector that is loaded.
  Vals loadVector(mlir::Type element, int64_t count, Val address, bool readOnly = false);
  void storeVector(llvm::ArrayRef<Val> elements, Val address);
  /// `bytes` of dynamic shared memory, 16-byte aligned. Pieces are laid out in the order of the
  /// calls; what grows with the rows comes last.
  Val shared(int64_t bytes);
  int64_t sharedBytes() const { return sharedSize; }
  /// Brings the 128-byte line of a global address to L2.
  void prefetch(Val address);
  /// 16 bytes from global to shared memory, asynchronously.
  void copyAsync(Val to, Val from);
  void commitCopies();
  /// Waits until at most `pending` of the committed groups are under way.
  void waitCopies(int pending);
  /// Adds to a counter in global memory, with release and acquire at the scope of the GPU; gives
  /// the old value.
  Val atomicAdd(Val address, Val value);

  // --- control -------------------------------------------------------------------

  void barrier();
  void warpBarrier(); ///< of all lanes; orders their accesses
  void fence();       ///< at the scope of the GPU
  void loop(Val from, Val to, int64_t step, llvm::function_ref<void(Val)> body);
  /// A loop that carries values.
  Vals loop(Val from, Val to, int64_t step, llvm::ArrayRef<Val> start,
            llvm::function_ref<Vals(Val, llvm::ArrayRef<Val>)> body);
  void when(Val condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = nullptr);
  Vals choose(Val condition, llvm::function_ref<Vals()> then, llvm::function_ref<Vals()> otherwise);

  // --- between threads --------------------------------------------------------------

  /// The value (i32 or f32) of lane ^ mask; of lane `index`.
  Val shuffleXor(Val value, int64_t mask);
  Val shuffleIndex(Val value, Val index);
  /// Over the lanes of groups of `width` (a power of two), in all of them.
  Val warpSum(Val value, int64_t width = kWarp);
  Val warpMax(Val value, int64_t width = kWarp);
  /// Over the kBlockThreads threads of a block, in all of them; has two barriers.
  Val blockSum(Val value);

  mlir::ImplicitLocOpBuilder &getBuilder() { return builder; }
  Val wrap(mlir::Value value) { return {value, this}; }

private:
  Val stepField(int64_t offset);
  Val stepPointer(int64_t offset);
  template <typename Op> Val special();
  Val call(llvm::StringRef intrinsic, mlir::Type result, llvm::ArrayRef<Val> args);
  void callVoid(llvm::StringRef intrinsic, llvm::ArrayRef<Val> args);

  mlir::gpu::GPUModuleOp module;
  mlir::ImplicitLocOpBuilder builder;
  unsigned capability;
  mlir::LLVM::LLVMFuncOp function;
  mlir::LLVM::GlobalOp sharedMemory;
  int64_t bindingCount = 0, bindingsUsed = 0, sharedSize = 0;
  Val sharedBase, blockSums;
};

} // namespace llmc::cuda

#endif // LLMC_COMPILER_CODEGEN_CUDA_EMITTER_H
