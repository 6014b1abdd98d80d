//===- RowKernels.cpp - kernels whose tile is a row -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Emitter.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;
using namespace llmc::sched;

void cpu::emitKernel(Emitter &e, EmbedKernelOp op) {
  PackedMatrix table = packedMatrix(op.getEncoding(), op.getVocab(), op.getFeatures());
  int64_t features = op.getFeatures();
  Value weight = e.nextBinding(), out = e.nextBinding(), tokens = e.stepTokens();
  float scale = op.getScale().convertToFloat();
  e.loop(e.tileBegin(), e.tileEnd(), 1, [&](Value row) {
    Value token =
        op.getPositions()
            ? e.add(e.stepPosition(), row)
            : e.toI64(e.load(IntegerType::get(e.context(), 32), e.at(tokens, e.mul(row, 4))));
    Value to = e.at(out, e.mul(row, 4 * features));
    SmallVector<Value> args{weight, token, e.i64(features)};
    for (int32_t field : kernelFormatArgs(*table.encoding))
      args.push_back(e.i32(field));
    args.push_back(to);
    e.call("uk_dequant_row", args);
    if (scale != 1.0f)
      e.call("uk_scale", {to, e.f32(scale), e.i64(features), to});
  });
}

void cpu::emitKernel(Emitter &e, RopeTableKernelOp op) {
  int64_t pairs = op.getInvFreq().size();
  Value out = e.nextBinding();
  // The frequencies go through the worker's scratch: a code object has no data of its own.
  Value freqs = e.reserve(4 * pairs);
  e.branch(e.less(e.tileBegin(), e.tileEnd()), [&] {
    for (auto [i, freq] : llvm::enumerate(op.getInvFreq()))
      e.store(e.f32(freq), e.at(freqs, 4 * i));
  });
  Value position = e.stepPosition();
  e.loop(e.tileBegin(), e.tileEnd(), 1, [&](Value row) {
    e.call("uk_rope_table",
           {e.toI32(e.add(position, row)), freqs, e.i64(pairs),
            e.f32(op.getMscale().convertToFloat()), e.at(out, e.mul(row, 8 * pairs))});
  });
}

void cpu::emitKernel(Emitter &e, PrepareKernelOp op) {
  int64_t features = op.getFeatures();
  ActKind act = e.arithmetic(op.getAct(), op.getPrefill());
  Value source = e.nextBinding(), weight, bias;
  if (NormSpecAttr norm = op.getNormAttr()) {
    weight = e.nextBinding();
    if (norm.getBias())
      bias = e.nextBinding();
  }
  Value out = e.nextBinding(), row = e.reserve(4 * features);
  Value begin = op.getOutRows() ? e.stepOutBegin() : e.i64(0);
  e.loop(e.tileBegin(), e.tileEnd(), 1, [&](Value m) {
    Value x = e.at(source, e.mul(e.add(begin, m), 4 * features));
    if (op.getNormAttr()) {
      e.normalize(op.getNormAttr(), weight, bias, x, features, row);
      x = row;
    }
    e.makeRecord(act, x, features, e.at(out, e.mul(m, recordBytes(act, features))));
  });
}

void cpu::emitKernel(Emitter &e, RowKernelOp op) {
  int64_t features = op.getFeatures(), groups = op.getGroups(), part = features / groups;
  Value n = e.i64(features);
  float factor = op.getFactor().convertToFloat();
  RowFn fn = op.getFn();
  bool binary =
      fn == RowFn::Add || fn == RowFn::Glu || fn == RowFn::NormAdd || fn == RowFn::KvAppend;

  Value x = e.nextBinding();
  Value y = binary ? e.nextBinding() : Value();
  Value weight, bias, rope;
  if (NormSpecAttr norm = op.getNormAttr()) {
    weight = e.nextBinding();
    if (norm.getBias())
      bias = e.nextBinding();
  }
  if (fn == RowFn::Rope)
    rope = e.nextBinding();
  Value out = fn == RowFn::Logits ? e.stepLogits() : e.nextBinding();
  Value maxima = fn == RowFn::Logits ? e.stepLogitMaxima() : Value();
  Value valueCache = fn == RowFn::KvAppend ? e.nextBinding() : Value();
  Value temp = fn == RowFn::NormAdd ? e.reserve(4 * features) : Value();
  Value position = e.stepPosition();
  Value begin = op.getOutRows() ? e.stepOutBegin() : e.i64(0);

  e.loop(e.tileBegin(), e.tileEnd(), 1, [&](Value m) {
    auto row = [&](Value base, Value index) { return e.at(base, e.mul(index, 4 * features)); };
    Value a = row(x, e.add(begin, m)), to = fn == RowFn::KvAppend ? Value() : row(out, m);
    Value b = y ? row(y, m) : Value();
    auto parts = [&](function_ref<void(Value, Value)> body) {
      e.loop(e.i64(0), e.i64(groups), 1, [&](Value group) { body(group, e.mul(group, 4 * part)); });
    };
    switch (fn) {
    case RowFn::Norm:
      parts([&](Value group, Value offset) {
        e.normalize(op.getNormAttr(), weight, bias, e.at(a, offset), part, e.at(to, offset));
      });
      break;
    case RowFn::Add:
      e.call("uk_add", {a, b, e.f32(factor), n, to});
      break;
    case RowFn::NormAdd:
      e.normalize(op.getNormAttr(), weight, bias, b, features, temp);
      e.call("uk_add", {a, temp, e.f32(1), n, to});
      break;
    case RowFn::Act:
      e.call("uk_scale", {a, e.f32(1), n, to});
      e.call("uk_act", {e.i32(int64_t(op.getActivation())), to, n});
      break;
    case RowFn::Glu:
      e.call("uk_glu", {e.i32(int64_t(op.getActivation())), a, b, n, to});
      break;
    case RowFn::Scale:
      e.call("uk_scale", {a, e.f32(factor), n, to});
      break;
    case RowFn::Logits:
      e.call("uk_scale", {a, e.f32(factor), n, to});
      e.call("uk_block_max", {to, n, e.at(maxima, e.mul(m, logitMaximaBytes(features)))});
      break;
    case RowFn::Softcap:
      e.call("uk_scale", {a, e.f32(1), n, to});
      e.call("uk_softcap", {to, e.f32(factor), n});
      break;
    case RowFn::Rope: {
      int64_t pairs = op.getRopePairs();
      e.call("uk_scale", {a, e.f32(1), n, to});
      parts([&](Value, Value offset) {
        e.call("uk_rope", {e.at(to, offset), e.at(rope, e.mul(m, 8 * pairs)), e.i64(2 * pairs),
                           e.i32(op.getRopeKind() == llm::RopeKind::Interleaved)});
      });
      break;
    }
    case RowFn::KvAppend: {
      bool kvF32 = op.getKvEncoding() == "f32";
      int64_t headBytes = int64_t(op.getCapacity()) * part * (kvF32 ? 4 : 2);
      Value slot = e.rem(e.add(position, m), op.getCapacity());
      parts([&](Value head, Value offset) {
        Value at = e.mul(head, headBytes);
        e.call("uk_k_store", {e.at(a, offset), e.i64(part), slot, e.i32(kvF32), e.at(out, at)});
        e.call("uk_v_store",
               {e.at(b, offset), e.i64(part), slot, e.i32(kvF32), e.at(valueCache, at)});
      });
      break;
    }
    }
  });
}
