//===- LowerResize.cpp - interpolation ------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interpolation goes axis by axis: every output place is a weighted sum of a few
// input places, its taps, which are worked out while compiling.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;

namespace {
struct Axis {
  int64_t axis, input, output;
  double scale;
  double begin = 0, end = 1; ///< the region of interest
};

struct Taps {
  int64_t count = 0; ///< of one output place
  std::vector<int64_t> places;
  std::vector<double> weights;
  std::vector<bool> outside; ///< output places that take the extrapolation value
};

/// What the attributes say.
struct Rules {
  StringRef mode, coordinates, nearest;
  double cubic;
  bool excludeOutside, antialias;
};
} // namespace

/// The place in the input of place x of the output.
static double sourceOf(const Axis &a, const Rules &rules, double x) {
  double wide = a.scale * double(a.input);
  StringRef mode = rules.coordinates;
  if (mode == "align_corners")
    return wide == 1 ? 0 : x * double(a.input - 1) / (wide - 1);
  if (mode == "asymmetric")
    return x / a.scale;
  if (mode == "tf_crop_and_resize") {
    double span = (a.end - a.begin) * double(a.input - 1);
    return a.begin * double(a.input - 1) + (wide == 1 ? span / 2 : x * span / (wide - 1));
  }
  if (mode == "pytorch_half_pixel" && wide == 1)
    return -0.5;
  double half = (x + 0.5) / a.scale - 0.5;
  if (mode == "half_pixel_symmetric")
    half += double(a.input) / 2 * (1 - double(a.output) / wide);
  return half;
}

static double cubicWeight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Weights of neighbours at ratio (0, 1] behind the middle one, the first of them `first` before.
static std::vector<double> weightsOf(const Axis &a, const Rules &rules, double ratio) {
  if (rules.mode == "nearest") {
    bool right = ratio == 1                             ? true
                 : rules.nearest == "round_prefer_ceil" ? ratio >= 0.5
                 : rules.nearest == "floor"             ? false
                 : rules.nearest == "ceil"              ? true
                                                        : ratio > 0.5;
    return {right ? 0.0 : 1.0, right ? 1.0 : 0.0};
  }
  bool cubic = rules.mode == "cubic";
  double scale = rules.antialias ? std::min(a.scale, 1.0) : 1;
  double reach = cubic ? 2 : 1;
  int64_t first = int64_t(std::floor(-reach / scale)) + 1;
  std::vector<double> weights;
  for (int64_t i = first; i < 2 - first; ++i) {
    double x = scale * (double(i) - ratio);
    weights.push_back(cubic ? cubicWeight(x, rules.cubic) : std::max(0.0, 1 - std::fabs(x)));
  }
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (rules.antialias)
    for (double &weight : weights)
      weight /= sum;
  return weights;
}

static Taps tapsOf(const Axis &a, const Rules &rules) {
  Taps taps;
  for (int64_t o = 0; o < a.output; ++o) {
    double x = sourceOf(a, rules, double(o)), floor = std::floor(x);
    double ratio = x == floor ? 1 : x - floor;
    std::vector<double> weights = weightsOf(a, rules, ratio);
    taps.count = int64_t(weights.size());
    int64_t first = int64_t(std::ceil(x)) - taps.count / 2;
    taps.outside.push_back(rules.coordinates == "tf_crop_and_resize" &&
                           (x < 0 || x > double(a.input - 1)));
    double sum = 0;
    for (int64_t i = 0; i < taps.count; ++i) {
      int64_t place = first + i;
      if (rules.excludeOutside && (place < 0 || place >= a.input))
        weights[i] = 0;
      sum += weights[i];
      taps.places.push_back(std::clamp<int64_t>(place, 0, a.input - 1));
    }
    for (double weight : weights)
      taps.weights.push_back(rules.excludeOutside ? weight / sum : weight);
  }
  return taps;
}

static Array interpolate(LowerContext &c, Array x, const Axis &axis, const Rules &rules) {
  Taps taps = tapsOf(axis, rules);
  Dims dims(x.shape());
  dims[axis.axis] = axis.output;
  auto along = [&](mlir::ValueRange at, mlir::Value place) {
    SmallVector<mlir::Value> source(at);
    source[axis.axis] = place;
    return source;
  };
  if (rules.mode == "nearest") { // of any type
    std::vector<int64_t> places;
    for (int64_t o = 0; o < axis.output; ++o)
      places.push_back(taps.places[size_t(2 * o + (taps.weights[size_t(2 * o)] == 0))]);
    Array table = c.a.constant(Tensor::ofIntegers(ElementType::Int64, {axis.output}, places));
    return c.a.generate(x.type, dims, [&](ScalarBuilder &s, ValueRange at) {
      return s.load(x, along(at, s.toIndex(s.load(table, at[axis.axis]))));
    });
  }
  Dims tableDims{axis.output, taps.count};
  Array places = c.a.constant(Tensor::ofIntegers(ElementType::Int64, tableDims, taps.places));
  Array weights = c.a.constant(Tensor::ofDoubles(ElementType::Float, tableDims, taps.weights));
  Dims spread(dims);
  spread.push_back(taps.count);
  Array terms = c.a.generate(x.type, spread, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<mlir::Value> tap{at[axis.axis], at.back()};
    mlir::Value weight = s.convert(s.load(weights, tap), ElementType::Float, x.type);
    mlir::Value place = s.toIndex(s.load(places, tap));
    return s.mul(s.load(x, along(at.drop_back(), place)), weight);
  });
  return c.a.reduceSum(terms, {int64_t(dims.size())}, false);
}

static Error resize(LowerContext &c, Array x, std::vector<Axis> axes, const Rules &rules) {
  if (rules.mode != "nearest" && rules.mode != "linear" && rules.mode != "cubic")
    return c.error("interpolates in a mode that is not known");
  Dims dims(x.shape());
  constexpr double kMost = 1 << 30;
  // A table of places and weights for each axis.
  constexpr double kMostTaps = 1 << 24;
  for (const Axis &axis : axes) {
    double taps = 4 * (rules.antialias ? std::max(1 / axis.scale, 1.0) : 1) + 2;
    if (!(taps * double(axis.output) < kMostTaps))
      return c.error("has a scale or size that is too large");
    if (!(axis.scale > 0) || axis.output < 0 || double(axis.output) > kMost || axis.input <= 0)
      return c.error("has a scale or size that makes no sense");
    dims[axis.axis] = axis.output;
  }
  if (!elementCount(dims))
    return c.error("makes a shape that is too large");
  ElementType type = x.type;
  ElementType wide = type == ElementType::Double ? type : ElementType::Float;
  Array y = rules.mode == "nearest" ? x : c.a.cast(x, wide);
  bool crops = rules.coordinates == "tf_crop_and_resize";
  for (const Axis &axis : axes)
    if (crops || axis.output != axis.input || axis.scale != 1)
      y = interpolate(c, y, axis, rules);
  if (rules.mode != "nearest" && isInteger(type))
    y = c.a.call<math::RoundEvenOp>(y);
  y = c.a.cast(y, type);
  if (!crops)
    return c.done(y);
  // Places beyond the input have a value of their own.
  Array value = c.a.scalar(type, c.node().number("extrapolation_value", 0));
  for (const Axis &axis : axes) {
    std::vector<int64_t> flags;
    for (bool outside : tapsOf(axis, rules).outside)
      flags.push_back(outside);
    Dims line(dims.size(), 1);
    line[axis.axis] = axis.output;
    Array outside = c.a.constant(Tensor::ofIntegers(ElementType::Bool, line, flags));
    y = c.a.where(outside, value, y);
  }
  return c.done(y);
}

static Error lowerResize(LowerContext &c) {
  Array x = c.input(0);
  const Node &node = c.node();
  bool old = node.version < 11;
  Dims which = allAxes(x.rank());
  if (node.find("axes")) {
    auto checked = c.axes(node.integers("axes"), x.rank());
    if (!checked)
      return checked.takeError();
    which = *checked;
  }
  Rules rules{node.text("mode", "nearest"),
              node.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
              node.text("nearest_mode", old ? "floor" : "round_prefer_floor"),
              node.number("cubic_coeff_a", -0.75f),
              node.integer("exclude_outside", 0) != 0,
              node.integer("antialias", 0) != 0};
  size_t scalesAt = old ? 1 : 2;
  auto listAt = [&](size_t input) -> Expected<std::vector<double>> {
    if (!c.has(input))
      return std::vector<double>();
    const Tensor *tensor = c.constant(input);
    if (!tensor && c.input(input).elements() == 0)
      return std::vector<double>();
    if (!tensor)
      return c.needsConstant(input);
    return tensor->doubles();
  };
  Expected<std::vector<double>> scales = listAt(scalesAt);
  if (!scales)
    return scales.takeError();
  Expected<std::vector<double>> sizes = listAt(3);
  if (!sizes)
    return sizes.takeError();
  std::vector<double> roi;
  if (!old && rules.coordinates == "tf_crop_and_resize") {
    Expected<std::vector<double>> given = listAt(1);
    if (!given)
      return given.takeError();
    roi = *given;
    if (roi.size() != 2 * which.size())
      return c.error("has no region of interest");
  }
  const std::vector<double> &list = sizes->empty() ? *scales : *sizes;
  if (list.size() != which.size())
    return c.error("has another number of scales or sizes than axes");
  StringRef policy = node.text("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  if (!sizes->empty() && policy != "stretch")
    for (auto [i, axis] : llvm::enumerate(which)) {
      double scale = list[i] / double(x.dim(axis));
      common = i == 0                   ? scale
               : policy == "not_larger" ? std::min(common, scale)
                                        : std::max(common, scale);
    }
  std::vector<Axis> axes;
  for (auto [i, axis] : llvm::enumerate(which)) {
    Axis a{axis, x.dim(axis), 0, list[i]};
    double size = sizes->empty() ? std::floor(list[i] * double(a.input)) : list[i];
    if (!sizes->empty())
      a.scale = common > 0 ? common : list[i] / double(a.input);
    if (common > 0)
      size = std::floor(common * double(a.input) + 0.5);
    a.output = size >= 0 && size < 0x1p40 ? int64_t(size) : -1;
    if (!roi.empty()) {
      a.begin = roi[i];
      a.end = roi[i + which.size()];
    }
    axes.push_back(a);
  }
  return resize(c, x, axes, rules);
}

static Error lowerUpsample(LowerContext &c) {
  Array x = c.input(0);
  std::vector<double> scales;
  if (const onnx::Attribute *given = c.node().find("scales")) {
    scales.assign(given->numbers.begin(), given->numbers.end());
  } else {
    const Tensor *tensor = c.constant(1);
    if (!tensor)
      return c.needsConstant(1);
    scales = tensor->doubles();
  }
  if (int64_t(scales.size()) != x.rank())
    return c.error("has another number of scales than its input has dimensions");
  std::vector<Axis> axes;
  for (int64_t i = 0; i < x.rank(); ++i) {
    double size = std::floor(scales[i] * double(x.dim(i)));
    axes.push_back({i, x.dim(i), size >= 0 && size < 0x1p40 ? int64_t(size) : -1, scales[i]});
  }
  return resize(c, x, axes,
                {c.node().text("mode", "nearest"), "asymmetric", "floor", -0.75, false, false});
}

void onnx::addResizeLowerings(OpTable<LowerFn> &table) {
  table.add("", "Resize", 10, lowerResize);
  table.add("", "Upsample", 7, lowerUpsample);
}
