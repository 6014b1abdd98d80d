//===- LowerConvolution.cpp - convolutions and pools ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All of them look at windows of the spatial dimensions: windows() gives these as
// an array [batch, channels, kernel..., output...] that fuses into what reads it; a
// convolution is a product of the kernel's matrix with it.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;

namespace {
struct Windows {
  Dims kernel, strides, dilations, before, after, output;
  int64_t rank() const { return int64_t(kernel.size()); }
  int64_t kernelSize() const { return elementCount(kernel).value_or(0); }
  int64_t outputSize() const { return elementCount(output).value_or(0); }
};
} // namespace

static Dims listOf(const Node &node, StringRef name, int64_t count, int64_t otherwise) {
  llvm::ArrayRef<int64_t> given = node.integers(name);
  return given.empty() ? Dims(size_t(count), otherwise) : Dims(given.begin(), given.end());
}

/// The attributes of a convolution or pool over `sizes`.
static Expected<Windows> readWindows(LowerContext &c, llvm::ArrayRef<int64_t> sizes,
                                     llvm::ArrayRef<int64_t> kernel) {
  const Node &node = c.node();
  int64_t rank = int64_t(sizes.size());
  Windows w;
  w.kernel.assign(kernel.begin(), kernel.end());
  w.strides = listOf(node, "strides", rank, 1);
  w.dilations = listOf(node, "dilations", rank, 1);
  Dims pads = listOf(node, "pads", 2 * rank, 0);
  if (int64_t(w.kernel.size()) != rank || int64_t(w.strides.size()) != rank ||
      int64_t(w.dilations.size()) != rank || int64_t(pads.size()) != 2 * rank)
    return c.error("has strides, dilations or pads of another number than spatial dimensions");
  StringRef mode = node.text("auto_pad", "NOTSET");
  bool ceil = node.integer("ceil_mode", 0);
  for (int64_t i = 0; i < rank; ++i) {
    constexpr int64_t kLargest = 1 << 30;
    for (int64_t value : {w.kernel[i], w.strides[i], w.dilations[i]})
      if (value <= 0 || value > kLargest)
        return c.error("has a kernel, stride or dilation that makes no sense");
    for (int64_t value : {pads[i], pads[i + rank]})
      if (value < -kLargest || value > kLargest)
        return c.error("has a pad that makes no sense");
    int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1, before = pads[i],
            after = pads[i + rank], out;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      out = (sizes[i] + w.strides[i] - 1) / w.strides[i];
      int64_t total = std::max<int64_t>((out - 1) * w.strides[i] + extent - sizes[i], 0);
      before = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    } else {
      if (mode == "VALID")
        before = after = 0;
      int64_t room = sizes[i] + before + after - extent;
      out = room < 0 ? 0 : room / w.strides[i] + 1;
      if (ceil && room >= 0) {
        out = (room + w.strides[i] - 1) / w.strides[i] + 1;
        // A window that begins behind the input and its first pad does not count.
        if ((out - 1) * w.strides[i] >= sizes[i] + before)
          --out;
      }
    }
    w.before.push_back(before);
    w.after.push_back(after);
    w.output.push_back(out);
  }
  return w;
}

/// [batch, channels, kernel..., output...] of x [batch, channels, sizes...], `outside` beyond it.
static Array windows(LowerContext &c, Array x, const Windows &w, double outside) {
  Dims dims{x.dim(0), x.dim(1)};
  llvm::append_range(dims, w.kernel);
  llvm::append_range(dims, w.output);
  int64_t rank = w.rank();
  return c.a.generate(x.type, dims, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at.take_front(2));
    mlir::Value inside = s.truth(true);
    for (int64_t i = 0; i < rank; ++i) {
      mlir::Value place = s.add(s.mul(at[2 + rank + i], s.index(w.strides[i])),
                                s.mul(at[2 + i], s.index(w.dilations[i])));
      place = s.sub(place, s.index(w.before[i]));
      inside = s.logicalAnd(inside, s.test(Test::GreaterOrEqual, place, s.index(0)));
      inside = s.logicalAnd(inside, s.less(place, s.index(x.dim(2 + i))));
      source.push_back(place);
    }
    mlir::Value none = s.narrow(s.constant(s.computedType(x.type), outside), x.type);
    return s.select(inside, s.loadClamped(x, source), none);
  });
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// x [batch, channels, sizes...] with kernels [outputs, channels / groups, kernel...].
static Expected<Array> convolve(LowerContext &c, Array x, Array kernels, const Windows &w,
                                int64_t groups, ElementType accumulate) {
  ArrayBuilder &a = c.a;
  int64_t batch = x.dim(0), channels = x.dim(1), outputs = kernels.dim(0);
  if (groups <= 0 || channels % groups || outputs % groups || kernels.dim(1) * groups != channels)
    return c.error("has groups that do not go with its channels");
  int64_t depth = channels / groups * w.kernelSize();
  Array columns = a.reshape(windows(c, x, w, 0), {batch, groups, depth, w.outputSize()});
  Array matrix = a.reshape(kernels, {1, groups, outputs / groups, depth});
  Array y = a.matmul(matrix, columns, accumulate, accumulate);
  Dims dims{batch, outputs};
  llvm::append_range(dims, w.output);
  return a.reshape(y, dims);
}

/// One number for each channel, along dimension 1.
static Array channelBias(ArrayBuilder &a, Array bias, int64_t rank) {
  Dims dims(size_t(rank), 1);
  dims[1] = bias.elements();
  return a.reshape(bias, dims);
}

static ElementType wideOf(ElementType type) {
  return isFloat(type) && type != ElementType::Double ? ElementType::Float : type;
}

static Error lowerConv(LowerContext &c) {
  Array x = c.input(0), kernels = c.input(1), bias = c.input(2);
  if (x.rank() < 3 || kernels.rank() != x.rank())
    return c.error("convolves tensors without spatial dimensions");
  Expected<Windows> w = readWindows(c, x.shape().drop_front(2), kernels.shape().drop_front(2));
  if (!w)
    return w.takeError();
  ElementType wide = wideOf(x.type);
  Expected<Array> y = convolve(c, x, kernels, *w, c.node().integer("group", 1), wide);
  if (!y)
    return y.takeError();
  if (bias && bias.elements() != kernels.dim(0))
    return c.error("has a bias that is not one number for each channel");
  Array result = bias ? c.a.add(*y, channelBias(c.a, c.a.cast(bias, wide), x.rank())) : *y;
  return c.done(c.a.cast(result, x.type));
}

/// Zeros between the elements, and an ordinary convolution with the kernel turned around.
static Error lowerConvTranspose(LowerContext &c) {
  ArrayBuilder &a = c.a;
  const Node &node = c.node();
  Array x = c.input(0), kernels = c.input(1), bias = c.input(2);
  if (x.rank() < 3 || kernels.rank() != x.rank() || kernels.dim(0) != x.dim(1))
    return c.error("convolves tensors of shapes that do not go together");
  int64_t rank = x.rank() - 2, groups = node.integer("group", 1);
  Expected<Windows> given = readWindows(c, x.shape().drop_front(2), kernels.shape().drop_front(2));
  if (!given)
    return given.takeError();
  Dims extra = listOf(node, "output_padding", rank, 0), pads = listOf(node, "pads", 2 * rank, 0);
  llvm::ArrayRef<int64_t> wanted = node.integers("output_shape");
  if (int64_t(extra.size()) != rank || (!wanted.empty() && int64_t(wanted.size()) != rank) ||
      groups <= 0 || x.dim(1) % groups)
    return c.error("has attributes that do not go with its input");
  StringRef mode = node.text("auto_pad", "NOTSET");
  Windows w = *given;
  w.strides.assign(size_t(rank), 1);
  Dims stuffed(x.shape());
  for (int64_t i = 0; i < rank; ++i) {
    int64_t stride = given->strides[i], size = x.dim(2 + i);
    int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1;
    int64_t full = (size - 1) * stride + extent + extra[i];
    int64_t before = pads[i], after = pads[i + rank];
    bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (same || !wanted.empty()) {
      // Where more is wanted than there is, zeros follow.
      int64_t total = std::max<int64_t>(full - (wanted.empty() ? size * stride : wanted[i]), 0);
      bool upper = mode == "SAME_UPPER";
      before = upper ? total / 2 : total - total / 2;
      after = total - before;
    } else if (mode == "VALID") {
      before = after = 0;
    }
    w.output[i] = wanted.empty() ? full - before - after : wanted[i];
    if (w.output[i] < 0)
      return c.error("has pads that leave nothing of its output");
    w.before[i] = extent - 1 - before;
    stuffed[2 + i] = size ? (size - 1) * stride + 1 : 0;
  }
  Array spread = a.generate(x.type, stuffed, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> source(at.take_front(2));
    mlir::Value is = s.truth(true);
    for (int64_t i = 0; i < rank; ++i) {
      mlir::Value rest = s.remainder(at[2 + i], given->strides[i]);
      is = s.logicalAnd(is, s.test(Test::Equal, rest, s.index(0)));
      source.push_back(s.quotient(at[2 + i], given->strides[i]));
    }
    mlir::Value zero = s.narrow(s.constant(s.computedType(x.type), 0), x.type);
    return s.select(is, s.load(x, source), zero);
  });
  // [channels, outputs / groups, kernel...] to [outputs, channels / groups, kernel...], mirrored.
  int64_t perGroup = kernels.dim(1), channels = x.dim(1) / groups;
  Dims turned{groups * perGroup, channels};
  llvm::append_range(turned, w.kernel);
  Array mirrored = a.generate(kernels.type, turned, [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value group = s.quotient(at[0], perGroup);
    SmallVector<mlir::Value> source{s.add(s.mul(group, s.index(channels)), at[1]),
                                    s.remainder(at[0], perGroup)};
    for (int64_t i = 0; i < rank; ++i)
      source.push_back(s.sub(s.index(w.kernel[i] - 1), at[2 + i]));
    return s.load(kernels, source);
  });
  ElementType wide = wideOf(x.type);
  Expected<Array> y = convolve(c, spread, mirrored, w, groups, wide);
  if (!y)
    return y.takeError();
  Array result = bias ? a.add(*y, channelBias(a, a.cast(bias, wide), x.rank())) : *y;
  return c.done(a.cast(result, x.type));
}

/// Less its zero point: a number, or one for each output of the kernels.
static Array centred(LowerContext &c, Array x, Array zero) {
  x = c.a.cast(x, ElementType::Int32);
  if (!zero)
    return x;
  Dims dims(size_t(x.rank()), 1);
  if (zero.elements() != 1)
    dims[0] = zero.elements();
  return c.a.sub(x, c.a.reshape(c.a.cast(zero, ElementType::Int32), dims));
}

static Expected<Array> convolveIntegers(LowerContext &c, size_t x, size_t xZero, size_t kernels,
                                        size_t kernelZero) {
  Array data = c.input(x), filters = c.input(kernels);
  if (data.rank() < 3 || filters.rank() != data.rank())
    return c.error("convolves tensors without spatial dimensions");
  for (size_t zero : {xZero, kernelZero})
    if (c.has(zero) && c.input(zero).elements() != 1 &&
        (zero == xZero || c.input(zero).elements() != filters.dim(0)))
      return c.error("has a zero point of a shape that makes no sense");
  Expected<Windows> w = readWindows(c, data.shape().drop_front(2), filters.shape().drop_front(2));
  if (!w)
    return w.takeError();
  return convolve(c, centred(c, data, c.input(xZero)), centred(c, filters, c.input(kernelZero)), *w,
                  c.node().integer("group", 1), ElementType::Int32);
}

static Error lowerConvInteger(LowerContext &c) {
  Expected<Array> y = convolveIntegers(c, 0, 2, 1, 3);
  return y ? c.done(*y) : y.takeError();
}

static Error lowerQLinearConv(LowerContext &c) {
  Expected<Array> y = convolveIntegers(c, 0, 2, 3, 5);
  if (!y)
    return y.takeError();
  Array sums = c.has(8) ? c.a.add(*y, channelBias(c.a, c.input(8), y->rank())) : *y;
  auto scale = [&](size_t input) {
    Array s = c.input(input);
    return s.elements() == 1 ? c.a.reshape(s, {}) : channelBias(c.a, s, sums.rank());
  };
  Array factor = c.a.div(c.a.mul(scale(1), scale(4)), scale(6));
  return c.done(requantize(c.a, sums, factor, c.a.reshape(c.input(7), {})));
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

static Expected<Windows> readPool(LowerContext &c) {
  Array x = c.input(0);
  if (x.rank() < 3)
    return c.error("pools a tensor without spatial dimensions");
  return readWindows(c, x.shape().drop_front(2), c.node().integers("kernel_shape"));
}

static Dims kernelAxes(const Windows &w) {
  Dims axes;
  for (int64_t i = 0; i < w.rank(); ++i)
    axes.push_back(2 + i);
  return axes;
}

static double leastOf(ElementType type) {
  if (isFloat(type))
    return -INFINITY;
  return isUnsignedType(type) ? 0 : -std::ldexp(1, int(elementBits(type)) - 1);
}

static Error lowerMaxPool(LowerContext &c) {
  ArrayBuilder &a = c.a;
  Array x = c.input(0);
  Expected<Windows> w = readPool(c);
  if (!w)
    return w.takeError();
  Array all = windows(c, x, *w, leastOf(x.type)), best = a.reduceMax(all, kernelAxes(*w), false);
  if (c.wants(1)) {
    // The first place, in the order of memory, that holds the largest.
    int64_t rank = w->rank();
    bool columns = c.node().integer("storage_order", 0);
    Array places =
        a.generate(ElementType::Int64, all.shape(), [&](ScalarBuilder &s, ValueRange at) {
          mlir::Value place = s.add(s.mul(at[0], s.index(x.dim(1))), at[1]);
          mlir::Value inside = s.truth(true);
          SmallVector<mlir::Value> source(at.take_front(2)), line(at.take_front(2));
          for (int64_t i = 0; i < rank; ++i) {
            mlir::Value p = s.add(s.mul(at[2 + rank + i], s.index(w->strides[i])),
                                  s.mul(at[2 + i], s.index(w->dilations[i])));
            p = s.sub(p, s.index(w->before[i]));
            inside = s.logicalAnd(inside, s.test(Test::GreaterOrEqual, p, s.index(0)));
            inside = s.logicalAnd(inside, s.less(p, s.index(x.dim(2 + i))));
            source.push_back(p);
            line.push_back(at[2 + rank + i]);
          }
          mlir::Value flat = place;
          for (int64_t i = 0; i < rank; ++i)
            flat = s.mul(flat, s.index(x.dim(2 + i)));
          mlir::Value within = s.index(0);
          for (int64_t j = 0; j < rank; ++j) {
            int64_t i = columns ? rank - 1 - j : j;
            within = s.add(s.mul(within, s.index(x.dim(2 + i))), source[2 + i]);
          }
          flat = s.add(flat, within);
          mlir::Value v = s.widen(s.loadClamped(x, source), x.type);
          mlir::Value same = s.test(Test::Equal, v, s.loadWide(best, line));
          mlir::Value here = s.fromIndex(flat, ElementType::Int64);
          return s.select(s.logicalAnd(inside, same), here, s.like(here, 0x1p62));
        });
    c.set(1, a.reduceMin(places, kernelAxes(*w), false));
  }
  return c.done(best);
}

static Error lowerAveragePool(LowerContext &c) {
  ArrayBuilder &a = c.a;
  Array x = c.input(0);
  Expected<Windows> w = readPool(c);
  if (!w)
    return w.takeError();
  ElementType wide = wideOf(x.type);
  Array sum = a.reduceSum(windows(c, a.cast(x, wide), *w, 0), kernelAxes(*w), false);
  bool pads = c.node().integer("count_include_pad", 0);
  int64_t rank = w->rank();
  // How many places of a window count; the last windows may reach beyond the pads, too.
  Array count = a.generate(wide, w->output, [&](ScalarBuilder &s, ValueRange at) {
    mlir::Value total = s.constant(s.computedType(wide), 1);
    for (int64_t i = 0; i < rank; ++i) {
      int64_t size = x.dim(2 + i), d = w->dilations[i];
      int64_t low = pads ? -w->before[i] : 0, high = size + (pads ? w->after[i] : 0);
      mlir::Value begin = s.sub(s.mul(at[i], s.index(w->strides[i])), s.index(w->before[i]));
      // Steps of the kernel before `low`, and before `high`.
      auto stepsBelow = [&](int64_t bound) {
        mlir::Value distance = s.sub(s.index(bound + d - 1), begin);
        distance = s.op(Arith::Max, distance, s.index(0));
        return s.op(Arith::Min, s.quotient(distance, d), s.index(w->kernel[i]));
      };
      mlir::Value steps = s.sub(stepsBelow(high), stepsBelow(low));
      total =
          s.mul(total, s.convert(s.fromIndex(steps, ElementType::Int64), ElementType::Int64, wide));
    }
    return total;
  });
  return c.done(a.cast(a.div(sum, count), x.type));
}

static Array lpNorm(ArrayBuilder &a, Array x, llvm::ArrayRef<int64_t> axes, int64_t p,
                    bool keepDims) {
  Array powers = a.unary(x, [&](ScalarBuilder &s, mlir::Value v) {
    return s.op(Arith::Pow, s.call<math::AbsFOp>(v), s.like(v, double(p)));
  });
  return a.unary(a.reduceSum(powers, axes, keepDims), [&](ScalarBuilder &s, mlir::Value v) {
    return s.op(Arith::Pow, v, s.like(v, 1.0 / double(p)));
  });
}

static Error lowerLpPool(LowerContext &c) {
  Array x = c.input(0);
  Expected<Windows> w = readPool(c);
  if (!w)
    return w.takeError();
  Array all = windows(c, c.a.cast(x, wideOf(x.type)), *w, 0);
  return c.done(
      c.a.cast(lpNorm(c.a, all, kernelAxes(*w), c.node().integer("p", 2), false), x.type));
}

namespace {
enum class Global { Average, Max, Lp };
} // namespace

template <Global kind> static Error lowerGlobal(LowerContext &c) {
  Array x = c.input(0);
  if (x.rank() < 3)
    return c.error("pools a tensor without spatial dimensions");
  Dims axes = allAxes(x.rank());
  axes.erase(axes.begin(), axes.begin() + 2);
  if (kind == Global::Average)
    return c.done(c.a.reduceMean(x, axes, true));
  if (kind == Global::Max)
    return c.done(c.a.reduceMax(x, axes, true));
  return c.done(lpNorm(c.a, x, axes, c.node().integer("p", 2), true));
}

void onnx::addConvolutionLowerings(OpTable<LowerFn> &table) {
  table.add("", "AveragePool", 1, lowerAveragePool);
  table.add("", "Conv", 1, lowerConv);
  table.add("", "ConvInteger", 10, lowerConvInteger);
  table.add("", "ConvTranspose", 1, lowerConvTranspose);
  table.add("", "GlobalAveragePool", 1, lowerGlobal<Global::Average>);
  table.add("", "GlobalLpPool", 1, lowerGlobal<Global::Lp>);
  table.add("", "GlobalMaxPool", 1, lowerGlobal<Global::Max>);
  table.add("", "LpPool", 1, lowerLpPool);
  table.add("", "MaxPool", 1, lowerMaxPool);
  table.add("", "QLinearConv", 10, lowerQLinearConv);
}
