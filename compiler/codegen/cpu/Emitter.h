//===- Emitter.h - writes the MLIR of CPU kernels ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is a `func.func` of the kernel ABI (runtime/include/llmc/kernel_abi.h)
// made of scf loops, arith on i64/i32/f32, llvm pointers, and calls of
// micro-kernels (compiler/codegen/kernels/Uk.h) with constants for everything
// that the compiler knows. After linking and inlining, the constants fold the
// micro-kernels down to the one shape and format.
//
// A worker's scratch is laid out by `reserve`: pieces of a kernel's scratch at
// fixed offsets; the largest kernel decides how much a program asks for.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_CODEGEN_CPU_EMITTER_H
#define LLMC_COMPILER_CODEGEN_CPU_EMITTER_H

#include "compiler/ir/Sched.h"
#include "compiler/weights/Format.h"
#include "llmc/kernel_abi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringMap.h"

namespace llmc::cpu {

/// Bytes of a row of llmc_step_t.logit_maxima.
inline int64_t logitMaximaBytes(int64_t vocabSize) {
  return 4 * int64_t(llvm::divideCeil(uint64_t(vocabSize), uint64_t(LLMC_LOGIT_BLOCK)));
}

/// A packed matrix as kernels see it.
struct PackedMatrix {
  const Encoding *encoding;
  int64_t rows, columns;
  int64_t panelBytes;
};

class Emitter {
public:
  /// Emits into `module`, which becomes one code object. `bf16Tiles`: prefill is computed in
  /// bf16.
  Emitter(mlir::ModuleOp module, bool bf16Tiles);

  /// Starts the kernel `name`; its arguments are at hand until the next one is started.
  void beginKernel(mlir::Location loc, llvm::StringRef name);
  void endKernel();
  /// Bytes of scratch that the kernel needs.
  int64_t scratchBytes() const { return scratchSize; }
  /// The arithmetic of a kernel's products.
  sched::ActKind arithmetic(sched::ActKind act, bool prefill);
  /// Whether some kernel's arithmetic is not the one that the program says.
  bool changedArithmetic() const { return bf16Used; }

  // --- the kernel's arguments ----------------------------------------------

  /// The address of the next binding, in the order of the dispatch.
  mlir::Value nextBinding();
  mlir::Value tileBegin() { return function.getArgument(3); }
  mlir::Value tileEnd() { return function.getArgument(4); }
  mlir::Value stepRows() { return stepField(0); }     // i64
  mlir::Value stepPosition() { return stepField(4); } // i64
  mlir::Value stepOutBegin() { return stepField(8); } // i64
  mlir::Value stepOutRows() { return stepField(12); } // i64
  mlir::Value stepTokens();                           // pointer
  mlir::Value stepLogits();                           // pointer
  mlir::Value stepLogitMaxima();                      // pointer
  /// `bytes` of the worker's scratch, 64-byte aligned.
  mlir::Value reserve(int64_t bytes);

  // --- values ---------------------------------------------------------------

  mlir::Value i64(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value f32(float value);
  mlir::Value toI32(mlir::Value value);
  mlir::Value toI64(mlir::Value value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, i64(b)); }
  mlir::Value mul(mlir::Value a, int64_t b) { return mul(a, i64(b)); }
  mlir::Value div(mlir::Value a, mlir::Value b); // of values that are not negative
  mlir::Value rem(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, int64_t b) { return div(a, i64(b)); }
  mlir::Value rem(mlir::Value a, int64_t b) { return rem(a, i64(b)); }
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value equal(mlir::Value a, mlir::Value b);

  // --- memory ---------------------------------------------------------------

  /// base + bytes.
  mlir::Value at(mlir::Value base, mlir::Value bytes);
  mlir::Value at(mlir::Value base, int64_t bytes) { return at(base, i64(bytes)); }
  mlir::Value load(mlir::Type type, mlir::Value address);
  void store(mlir::Value value, mlir::Value address);

  // --- control --------------------------------------------------------------

  void loop(mlir::Value from, mlir::Value to, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
  void branch(mlir::Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise = nullptr);

  /// Calls a micro-kernel; declares it on first use.
  void call(llvm::StringRef name, llvm::ArrayRef<mlir::Value> args);

  // --- shared pieces --------------------------------------------------------

  /// y[rows][16] = act[rows] * panel^T: an instance of uk_matmul in a function of its own, so that
  /// kernels of the same format and K share it.
  void matmul(const PackedMatrix &matrix, sched::ActKind act, mlir::Value panel,
              mlir::Value records, mlir::Value rows, mlir::Value out, int64_t outStride);
  /// out[16 panels] = one record * panels^T, likewise an instance of uk_gemv.
  void gemv(const PackedMatrix &matrix, sched::ActKind act, mlir::Value panel, mlir::Value panels,
            mlir::Value record, mlir::Value out);
  /// Expands `panels` panels to bf16, and out[rows][outStride] = records * one or two of them^T:
  /// see uk_bf16_matmul.
  void bf16Panels(const PackedMatrix &matrix, mlir::Value panel, mlir::Value panels,
                  mlir::Value expanded);
  void bf16Matmul(int64_t columns, mlir::Value expanded, mlir::Value panels, mlir::Value records,
                  mlir::Value rows, mlir::Value out, int64_t outStride);
  /// Around the products of a dispatch with `rows` rows in all: the instruction set's state for
  /// them. Functions of their own, as the products are.
  void tilesBegin(sched::ActKind act, mlir::Value rows) { tileState("uk_tiles_begin", act, rows); }
  void tilesEnd(sched::ActKind act, mlir::Value rows) { tileState("uk_tiles_end", act, rows); }
  /// Normalizes x[n] into out (may be x).
  void normalize(sched::NormSpecAttr norm, mlir::Value weight, mlir::Value bias, mlir::Value x,
                 int64_t n, mlir::Value out);
  /// Turns x[n] into an activation record.
  void makeRecord(sched::ActKind act, mlir::Value x, int64_t n, mlir::Value record);

  mlir::MLIRContext *context() { return builder.getContext(); }
  mlir::Type pointerType();
  /// Where the kernel's code goes, for what is emitted elsewhere.
  mlir::ImplicitLocOpBuilder &getBuilder() { return builder; }

private:
  void tileState(llvm::StringRef kernel, sched::ActKind act, mlir::Value rows);
  mlir::Value stepField(int64_t offset);
  /// An internal function that calls `callee` with `args` made of its own arguments.
  mlir::LLVM::LLVMFuncOp declare(llvm::StringRef name, mlir::TypeRange types);
  mlir::func::FuncOp instance(llvm::StringRef name, llvm::ArrayRef<mlir::Type> types,
                              llvm::function_ref<void(mlir::Block::BlockArgListType)> body);

  mlir::ModuleOp module;
  mlir::ImplicitLocOpBuilder builder;
  mlir::func::FuncOp function;
  mlir::Block *entry = nullptr;
  int64_t bindingCount = 0;
  int64_t scratchSize = 0;
  bool bf16Tiles, bf16Used = false;
};

/// Bytes from one activation record to the next.
int64_t recordBytes(sched::ActKind act, int64_t columns);
/// The matrix of a segment; null encoding names are a bug of the scheduler.
PackedMatrix packedMatrix(sched::SegmentAttr segment, int64_t columns);
PackedMatrix packedMatrix(llvm::StringRef encoding, int64_t rows, int64_t columns);

// One function per kernel op; each emits the whole kernel between beginKernel and endKernel.
void emitKernel(Emitter &e, sched::EmbedKernelOp op);
void emitKernel(Emitter &e, sched::RopeTableKernelOp op);
void emitKernel(Emitter &e, sched::PrepareKernelOp op);
void emitKernel(Emitter &e, sched::LinearKernelOp op);
void emitKernel(Emitter &e, sched::QkvKernelOp op);
void emitKernel(Emitter &e, sched::AttendKernelOp op);
void emitKernel(Emitter &e, sched::RowKernelOp op);
void emitKernel(Emitter &e, sched::TensorKernelOp op);

// --- shared by LinearKernel.cpp and QkvKernel.cpp ----------------------------

/// The activation records of a linear kernel: where they are and how many.
struct Records {
  mlir::Value base; // pointer
  mlir::Value rows; // i64
  int64_t stride;   // bytes
};

/// What a linear or qkv kernel says of its input.
struct InputSpec {
  int64_t features;
  sched::ActKind act;
  sched::Prologue prologue;
  sched::NormSpecAttr norm;
  bool outRows;
  int64_t maxRows;
  int64_t mergeHeads = 0, mergeWindow = 0, mergeChunks = 0;
  sched::NormSpecAttr addNorm = {}; ///< see sched.linear_kernel
  bool keepSum = false;
};

/// Takes the input's bindings and makes the records where the prologue says so.
Records emitPrologue(Emitter &e, const InputSpec &input);

/// First and one past the last KV chunk that position `position` sees.
std::pair<mlir::Value, mlir::Value> visibleChunks(Emitter &e, mlir::Value position, int64_t window);

/// Bytes of one attention partial: m, l, padding, o[headDim].
int64_t partialBytes(int64_t headDim);
inline constexpr int64_t kPartialOutput = 64; ///< offset of o in a partial

} // namespace llmc::cpu

#endif // LLMC_COMPILER_CODEGEN_CPU_EMITTER_H
