//===- EmitterMath.cpp - exp, tanh and the activations in CUDA kernels ----===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Polynomials and correctly rounded operations only, as on CPUs
// (compiler/codegen/kernels/Math.h): the approximate instructions differ between
// generations of GPUs.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// 1.5 * 2^23: adding it rounds a float of magnitude below 2^22 to an integer that then stands in
/// the low bits.
static constexpr float kRoundMagic = 12582912.0f;
static constexpr int64_t kRoundMagicBits = 0x4b400000;

static Val literal(Val like, double value) {
  Emitter &e = *like.emitter;
  return e.wrap(
      arith::ConstantOp::create(e.getBuilder(), e.getBuilder().getFloatAttr(like.type(), value)));
}

Val Emitter::polynomial(Val x, ArrayRef<double> coefficients) {
  Val y = literal(x, coefficients.back());
  for (double c : llvm::reverse(coefficients.drop_back()))
    y = fma(y, x, literal(x, c));
  return y;
}

Val Emitter::expOf(Val x) {
  // e^x = 2^n e^r, |r| <= ln 2 / 2, n in [-151, 128], applied as two powers of two.
  x = select(x < f32(-104), f32(-104), x);
  x = select(f32(89) < x, f32(89), x);
  Val shifted = fma(x, f32(1.44269504f), f32(kRoundMagic));
  Val n = shifted - f32(kRoundMagic);
  Val r = fma(n, f32(-0.693145752f), x);
  r = fma(n, f32(-1.42860677e-6f), r);
  Val y = polynomial(
      r, {1.0f, 1.0f, 0.5f, 1.666651815e-1f, 4.166620597e-2f, 8.368954062e-3f, 1.395059982e-3f});
  Val exponent = bitcast(shifted, i32Type()) - kRoundMagicBits;
  Val half = wrap(arith::ShRSIOp::create(builder, exponent.value, i32(1).value));
  auto power = [&](Val of) { return bitcast((of + 127) << 23, f32Type()); };
  return y * power(half) * power(exponent - half);
}

Val Emitter::tanhOf(Val x) {
  Val a = absOf(x), z = x * x;
  Val tail = polynomial(
      z, {-3.333328366e-1f, 1.333149076e-1f, -5.374349654e-2f, 2.065057866e-2f, -5.717036780e-3f});
  Val small = fma(x * z, tail, x);
  Val power = expOf(f32(-2) * a);
  Val large = (f32(1) - power) / (f32(1) + power);
  large = select(x < f32(0), negate(large), large);
  return select(a < f32(0.625f), small, large);
}

/// The normal distribution function, as erf and PyTorch's GELU define it.
static Val normalCdf(Emitter &e, Val x) {
  Val t = e.absOf(x) * e.f32(0.707106781f), z = t * t;
  Val erf = t * e.polynomial(z, {1.128379107f, -3.761262596e-1f, 1.128360033e-1f, -2.685444430e-2f,
                                 5.189535208e-3f, -8.020841051e-4f, 7.889119297e-5f});
  Val q = e.polynomial(t, {3.537089215e-4f, 1.127040029f, 6.382256150e-1f, 1.030374318e-1f,
                           -2.180535160e-2f, 2.939615631e-3f, -1.855748997e-4f});
  Val tail = e.select(t < e.f32(4), e.f32(0.5f) * e.expOf(e.negate(q)), e.f32(0));
  tail = e.select(t < e.f32(1), e.f32(0.5f) - e.f32(0.5f) * erf, tail);
  return e.select(x < e.f32(0), tail, e.f32(1) - tail);
}

Val Emitter::activate(llm::Activation kind, Val x) {
  switch (kind) {
  case llm::Activation::None:
    return x;
  case llm::Activation::Silu:
    return x / (f32(1) + expOf(negate(x)));
  case llm::Activation::GeluTanh: { // 0.5 x (1 + tanh y) = x / (1 + e^-2y)
    Val y = f32(0.797884561f) * x * fma(x * x, f32(0.044715f), f32(1));
    return x / (f32(1) + expOf(f32(-2) * y));
  }
  case llm::Activation::GeluErf:
    return x * normalCdf(*this, x);
  case llm::Activation::Relu:
    return maxOf(x, f32(0));
  case llm::Activation::ReluSquared: {
    Val r = maxOf(x, f32(0));
    return r * r;
  }
  }
  llvm_unreachable("all activations are known");
}

Val Emitter::softcapOf(Val x, float cap) { return f32(cap) * tanhOf(x / f32(cap)); }
