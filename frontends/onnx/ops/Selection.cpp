//===- Selection.cpp - operators that pick and place elements -------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/ops/Indexing.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Gather and its kin
//===----------------------------------------------------------------------===//

static Error inferGather(InferContext &context) {
  const Shape *data = context.shape(0), *indices = context.shape(1);
  std::optional<Shape> result;
  if (data && indices) {
    Expected<int64_t> axis = context.axis(context.node().integer("axis", 0), int64_t(data->size()));
    if (!axis)
      return axis.takeError();
    result.emplace(data->begin(), data->begin() + *axis);
    result->append(indices->begin(), indices->end());
    result->append(data->begin() + *axis + 1, data->end());
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

/// An index, counted from the back where negative.
static Expected<int64_t> place(const FoldContext &context, int64_t index, int64_t size) {
  if (index < -size || index >= size)
    return context.error("picks element " + Twine(index) + " of " + Twine(size));
  return index < 0 ? index + size : index;
}

static FoldResult foldGather(const FoldContext &context) {
  const Tensor &data = context.input(0), &indices = context.input(1);
  Expected<int64_t> axis =
      context.axis(context.node().integer("axis", 0), int64_t(data.dims.size()));
  if (!axis)
    return axis.takeError();
  Dims dims(data.dims.begin(), data.dims.begin() + *axis);
  dims.append(indices.dims.begin(), indices.dims.end());
  dims.append(data.dims.begin() + *axis + 1, data.dims.end());
  if (Error error = checkFoldSize(context, dims))
    return std::move(error);
  llvm::ArrayRef<int64_t> all = data.dims;
  int64_t outer = elementCount(all.take_front(*axis)).value_or(0),
          inner = elementCount(all.drop_front(*axis + 1)).value_or(0), size = all[*axis];
  std::vector<int64_t> source, picks = indices.integers();
  for (int64_t &pick : picks) {
    Expected<int64_t> at = place(context, pick, size);
    if (!at)
      return at.takeError();
    pick = *at;
  }
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t pick : picks)
      for (int64_t i = 0; i < inner; ++i)
        source.push_back((o * size + pick) * inner + i);
  return one(gatherElements(data, dims, source));
}

static Error inferGatherElements(InferContext &context) {
  context.set(0, context.type(0),
              context.shape(1) ? std::optional<Shape>(*context.shape(1)) : std::nullopt);
  return Error::success();
}

/// Where in the data each index of GatherElements and ScatterElements points.
static Expected<std::vector<int64_t>> elementPlaces(const FoldContext &context) {
  const Tensor &data = context.input(0), &indices = context.input(1);
  Expected<int64_t> axis =
      context.axis(context.node().integer("axis", 0), int64_t(data.dims.size()));
  if (!axis)
    return axis.takeError();
  if (indices.dims.size() != data.dims.size())
    return context.error("has indices of another rank than its data");
  for (size_t i = 0; i < data.dims.size(); ++i)
    if (int64_t(i) != *axis && indices.dims[i] > data.dims[i])
      return context.error("has more indices than data along a dimension");
  Dims strides = stridesOf(data.dims), without = strides;
  without[size_t(*axis)] = 0;
  std::vector<int64_t> places, picks = indices.integers();
  size_t n = 0;
  for (Odometer at(indices.dims, {without}); !at.atEnd(); at.next()) {
    Expected<int64_t> pick = place(context, picks[n++], data.dims[size_t(*axis)]);
    if (!pick)
      return pick.takeError();
    places.push_back(at.offset(0) + *pick * strides[size_t(*axis)]);
  }
  return places;
}

static FoldResult foldGatherElements(const FoldContext &context) {
  Expected<std::vector<int64_t>> places = elementPlaces(context);
  if (!places)
    return places.takeError();
  return one(gatherElements(context.input(0), context.input(1).dims, *places));
}

static Error inferGatherND(InferContext &context) {
  const Shape *data = context.shape(0), *indices = context.shape(1);
  std::optional<Shape> result;
  if (data && indices && !indices->empty()) {
    int64_t batch = context.node().integer("batch_dims", 0);
    std::optional<int64_t> depth = indices->back().constant();
    if (depth) {
      if (batch < 0 || *depth < 0 || batch + *depth > int64_t(data->size()) ||
          batch >= int64_t(indices->size()))
        return context.error("has indices of " + Twine(*depth) + " numbers for a tensor of " +
                             Twine(data->size()) + " dimensions");
      result.emplace(indices->begin(), indices->end() - 1);
      result->append(data->begin() + batch + *depth, data->end());
    }
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldGatherND(const FoldContext &context) {
  const Tensor &data = context.input(0), &indices = context.input(1);
  int64_t batch = context.node().integer("batch_dims", 0), rank = int64_t(data.dims.size());
  if (indices.dims.empty())
    return context.error("has indices without dimensions");
  int64_t depth = indices.dims.back();
  if (batch < 0 || depth < 0 || batch + depth > rank || batch >= int64_t(indices.dims.size()))
    return context.error("has more index dimensions than its data");
  llvm::ArrayRef<int64_t> all = data.dims;
  Dims dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.append(all.begin() + batch + depth, all.end());
  if (Error error = checkFoldSize(context, dims))
    return std::move(error);
  int64_t batches = elementCount(all.take_front(batch)).value_or(0);
  int64_t inner = elementCount(all.drop_front(batch + depth)).value_or(0);
  int64_t picks = depth ? indices.elements() / depth : *elementCount(dims);
  int64_t perBatch = batches ? picks / batches : 0;
  Dims strides = stridesOf(all);
  std::vector<int64_t> numbers = indices.integers(), source;
  for (int64_t pick = 0; pick < picks; ++pick) {
    int64_t at = 0, b = perBatch ? pick / perBatch : 0;
    if (batch > 0)
      at = b * strides[size_t(batch - 1)];
    for (int64_t k = 0; k < depth; ++k) {
      Expected<int64_t> i = place(context, numbers[size_t(pick * depth + k)], all[batch + k]);
      if (!i)
        return i.takeError();
      at += *i * strides[size_t(batch + k)];
    }
    for (int64_t i = 0; i < inner; ++i)
      source.push_back(at + i);
  }
  if (elementCount(dims) != int64_t(source.size()))
    return context.error("has indices that do not fit its data");
  return one(gatherElements(data, dims, source));
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

namespace {
/// How an update meets what is there: ONNX's `reduction`.
enum class Meet { Replace, Add, Mul, Max, Min };
} // namespace

static Meet meetOf(const Node &node) {
  llvm::StringRef name = node.text("reduction", "none");
  return name == "add"   ? Meet::Add
         : name == "mul" ? Meet::Mul
         : name == "max" ? Meet::Max
         : name == "min" ? Meet::Min
                         : Meet::Replace;
}

template <typename T> static T meet(Meet how, T a, T b) {
  switch (how) {
  case Meet::Replace:
    return b;
  case Meet::Add:
    return a + b;
  case Meet::Mul:
    return a * b;
  case Meet::Max:
    return std::max(a, b);
  case Meet::Min:
    return std::min(a, b);
  }
  return b;
}

/// `data` with update i put to element `places[i]`.
static FoldResult scatter(const FoldContext &context, const Tensor &data, const Tensor &updates,
                          llvm::ArrayRef<int64_t> places) {
  Meet how = meetOf(context.node());
  if (updates.type != data.type || size_t(updates.elements()) != places.size())
    return context.error("has updates that do not fit its data");
  if (how == Meet::Replace) {
    // By position, whatever the type: first all of data, then the updates.
    std::vector<int64_t> winner(size_t(data.elements()), -1);
    for (auto [i, at] : llvm::enumerate(places))
      winner[size_t(at)] = int64_t(i);
    if (data.type == ElementType::String) {
      std::vector<std::string> values = *data.strings;
      for (size_t i = 0; i < values.size(); ++i)
        if (winner[i] >= 0)
          values[i] = (*updates.strings)[size_t(winner[i])];
      return one(Tensor::ofStrings(data.dims, std::move(values)));
    }
  }
  if (isFloat(data.type)) {
    std::vector<double> values = data.doubles(), news = updates.doubles();
    for (auto [i, at] : llvm::enumerate(places))
      values[size_t(at)] = meet(how, values[size_t(at)], news[i]);
    return one(Tensor::ofDoubles(data.type, data.dims, values));
  }
  std::vector<int64_t> values = data.integers(), news = updates.integers();
  for (auto [i, at] : llvm::enumerate(places))
    values[size_t(at)] = int64_t(meet(how, uint64_t(values[size_t(at)]), uint64_t(news[i])));
  return one(Tensor::ofIntegers(data.type, data.dims, values));
}

static FoldResult foldScatterElements(const FoldContext &context) {
  Expected<std::vector<int64_t>> places = elementPlaces(context);
  if (!places)
    return places.takeError();
  return scatter(context, context.input(0), context.input(2), *places);
}

static FoldResult foldScatterND(const FoldContext &context) {
  const Tensor &data = context.input(0), &indices = context.input(1);
  if (indices.dims.empty() || indices.dims.back() < 0 ||
      size_t(indices.dims.back()) > data.dims.size())
    return context.error("has more index dimensions than its data");
  int64_t depth = indices.dims.back();
  llvm::ArrayRef<int64_t> all = data.dims;
  int64_t inner = elementCount(all.drop_front(depth)).value_or(0);
  int64_t picks = depth ? indices.elements() / depth : 0;
  Dims strides = stridesOf(all);
  std::vector<int64_t> numbers = indices.integers(), places;
  for (int64_t pick = 0; pick < picks; ++pick) {
    int64_t at = 0;
    for (int64_t k = 0; k < depth; ++k) {
      Expected<int64_t> i = place(context, numbers[size_t(pick * depth + k)], all[k]);
      if (!i)
        return i.takeError();
      at += *i * strides[size_t(k)];
    }
    for (int64_t i = 0; i < inner; ++i)
      places.push_back(at + i);
  }
  return scatter(context, data, context.input(2), places);
}

//===----------------------------------------------------------------------===//
// Slice, Split, Pad
//===----------------------------------------------------------------------===//

/// One dimension of a slice, in numbers.
static std::pair<int64_t, int64_t> sliceRange(int64_t begin, int64_t end, int64_t step,
                                              int64_t size) {
  auto clamp = [&](int64_t i, int64_t low, int64_t high) {
    i = i < 0 ? (i < INT64_MIN + size ? INT64_MIN : i + size) : i;
    return std::min(std::max(i, low), high);
  };
  begin = step > 0 ? clamp(begin, 0, size) : clamp(begin, -1, size - 1);
  end = step > 0 ? clamp(end, 0, size) : clamp(end, -1, size - 1);
  int64_t count = step > 0
                      ? (end - begin + (step - 1)) / step
                      : (begin - end + (-(step + 1))) / -(step == INT64_MIN ? -INT64_MAX : step);
  return {begin, std::max<int64_t>(count, 0)};
}

/// Numbers of a Slice: attributes in opset 1, inputs since 10.
struct SliceNumbers {
  std::vector<int64_t> begins, ends, axes, steps;
};

static Expected<SliceNumbers> completeSlice(SliceNumbers s, size_t rank,
                                            llvm::function_ref<Error(const Twine &)> fail) {
  if (s.axes.empty()) {
    s.axes.resize(s.begins.size());
    std::iota(s.axes.begin(), s.axes.end(), 0);
  }
  if (s.steps.empty())
    s.steps.assign(s.begins.size(), 1);
  if (s.ends.size() != s.begins.size() || s.axes.size() != s.begins.size() ||
      s.steps.size() != s.begins.size())
    return fail("has lists of different lengths");
  for (size_t i = 0; i < s.axes.size(); ++i) {
    if (s.axes[i] < 0)
      s.axes[i] += int64_t(rank);
    if (s.axes[i] < 0 || size_t(s.axes[i]) >= rank)
      return fail("has an axis that is not there");
    if (s.steps[i] == 0)
      return fail("has a step of 0");
  }
  return std::move(s);
}

/// A bound of a slice as a distance from the front, for all values of the symbols.
static std::optional<Dim> bound(const Dim &given, const Dim &size) {
  constexpr int64_t kFar = int64_t(1) << 31; // exporters write "to the end" as a huge number
  if (std::optional<int64_t> number = given.constant()) {
    if (*number >= kFar - 1)
      return size;
    if (*number < 0) {
      Dim at = size + given;
      if (*number <= -kFar)
        return Dim(0);
      return at.isNonNegative() ? std::optional<Dim>(at) : std::nullopt;
    }
    if (*number == 0)
      return Dim(0);
  }
  if ((given - size).isNonNegative())
    return size;
  if ((size - given).isNonNegative() && given.isNonNegative())
    return given;
  return std::nullopt;
}

static Error inferSlice(InferContext &context) {
  const Shape *from = context.shape(0);
  const Node &node = context.node();
  std::optional<Shape> result;
  if (from) {
    result = *from;
    auto list = [&](llvm::StringRef attribute, size_t input) -> std::optional<std::vector<Dim>> {
      if (const Attribute *a = node.find(attribute))
        return std::vector<Dim>(a->integers.begin(), a->integers.end());
      if (!context.has(input))
        return std::vector<Dim>();
      if (std::optional<Contents> c = context.contents(input))
        return c->values;
      return std::nullopt;
    };
    auto begins = list("starts", 1), ends = list("ends", 2), axes = list("axes", 3),
         steps = list("steps", 4);
    if (!axes || (axes->empty() && !begins)) { // any dimension may be cut
      for (Dim &dim : *result)
        dim = context.symbols().fresh("slice");
    } else {
      size_t count = axes->empty() ? begins->size() : axes->size();
      for (size_t i = 0; i < count; ++i) {
        int64_t axis = axes->empty() ? int64_t(i) : (*axes)[i].constant().value_or(0);
        Expected<int64_t> at = context.axis(axis, int64_t(from->size()));
        if (!at)
          return at.takeError();
        Dim &dim = (*result)[size_t(*at)];
        std::optional<int64_t> step =
            !steps           ? std::nullopt
            : steps->empty() ? std::optional<int64_t>(1)
                             : (i < steps->size() ? (*steps)[i].constant() : std::nullopt);
        if (step && *step == 0)
          return context.error("has a step of 0");
        bool known = step && begins && ends && i < begins->size() && i < ends->size();
        std::optional<Dim> cut;
        if (known) {
          std::optional<int64_t> b = (*begins)[i].constant(), e = (*ends)[i].constant(),
                                 size = dim.constant();
          if (b && e && size) {
            cut = Dim(sliceRange(*b, *e, *step, *size).second);
          } else if (*step == 1) {
            std::optional<Dim> begin = bound((*begins)[i], dim), end = bound((*ends)[i], dim);
            if (begin && end && (*end - *begin).isNonNegative())
              cut = *end - *begin;
          }
        }
        dim = cut ? *cut : context.symbols().fresh("slice");
      }
    }
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldSlice(const FoldContext &context) {
  const Tensor &input = context.input(0);
  bool isGiven;
  SliceNumbers given{context.integersOf("starts", 1, isGiven),
                     context.integersOf("ends", 2, isGiven), context.integersOf("axes", 3, isGiven),
                     context.integersOf("steps", 4, isGiven)};
  Expected<SliceNumbers> s = completeSlice(std::move(given), input.dims.size(),
                                           [&](const Twine &why) { return context.error(why); });
  if (!s)
    return s.takeError();
  Dims dims = input.dims, strides = stridesOf(input.dims), walk = strides;
  int64_t base = 0;
  for (size_t i = 0; i < s->axes.size(); ++i) {
    size_t axis = size_t(s->axes[i]);
    auto [begin, count] = sliceRange(s->begins[i], s->ends[i], s->steps[i], input.dims[axis]);
    dims[axis] = count;
    base += count ? begin * strides[axis] : 0;
    walk[axis] = count > 1 ? strides[axis] * s->steps[i] : 0;
  }
  std::vector<int64_t> source;
  for (Odometer at(dims, {walk}); !at.atEnd(); at.next())
    source.push_back(base + at.offset(0));
  return one(gatherElements(input, dims, source));
}

/// The sizes of a Split's parts along a dimension of `size`.
static Expected<std::vector<int64_t>> splitSizes(const Node &node, std::vector<int64_t> given,
                                                 std::optional<int64_t> size,
                                                 llvm::function_ref<Error(const Twine &)> fail) {
  size_t parts = node.outputs.size();
  if (given.empty()) {
    if (!size || parts == 0)
      return std::vector<int64_t>();
    int64_t each = (*size + int64_t(parts) - 1) / int64_t(parts);
    for (size_t i = 0; i < parts; ++i)
      given.push_back(std::min(each, std::max<int64_t>(0, *size - each * int64_t(i))));
  }
  if (given.size() != parts)
    return fail("has " + Twine(given.size()) + " parts and " + Twine(parts) + " outputs");
  int64_t sum = 0;
  for (int64_t part : given)
    if (part < 0 || __builtin_add_overflow(sum, part, &sum))
      return fail("has a part of a negative size");
  if (size && sum != *size)
    return fail("splits " + Twine(*size) + " into parts of " + Twine(sum) + " in all");
  return given;
}

static Error inferSplit(InferContext &context) {
  const Shape *from = context.shape(0);
  bool isGiven;
  std::optional<std::vector<int64_t>> given = context.integersOf("split", 1, isGiven);
  if (!from) {
    for (size_t i = 0; i < context.outputCount(); ++i)
      context.set(i, context.type(0), std::nullopt);
    return Error::success();
  }
  Expected<int64_t> axis = context.axis(context.node().integer("axis", 0), int64_t(from->size()));
  if (!axis)
    return axis.takeError();
  const Dim &whole = (*from)[size_t(*axis)];
  std::vector<int64_t> sizes;
  if (given) {
    Expected<std::vector<int64_t>> s =
        splitSizes(context.node(), *given, whole.constant(),
                   [&](const Twine &why) { return context.error(why); });
    if (!s)
      return s.takeError();
    sizes = std::move(*s);
  }
  for (size_t i = 0; i < context.outputCount(); ++i)
    context.set(
        i, context.type(0),
        withDim(*from, *axis, i < sizes.size() ? Dim(sizes[i]) : context.symbols().fresh("part")));
  return Error::success();
}

static FoldResult foldSplit(const FoldContext &context) {
  const Tensor &input = context.input(0);
  Expected<int64_t> axis =
      context.axis(context.node().integer("axis", 0), int64_t(input.dims.size()));
  if (!axis)
    return axis.takeError();
  bool isGiven;
  Expected<std::vector<int64_t>> sizes =
      splitSizes(context.node(), context.integersOf("split", 1, isGiven), input.dims[size_t(*axis)],
                 [&](const Twine &why) { return context.error(why); });
  if (!sizes)
    return sizes.takeError();
  Dims strides = stridesOf(input.dims);
  std::vector<Tensor> results;
  int64_t begin = 0;
  for (int64_t size : *sizes) {
    Dims dims = input.dims;
    dims[size_t(*axis)] = size;
    std::vector<int64_t> source;
    for (Odometer at(dims, {strides}); !at.atEnd(); at.next())
      source.push_back(at.offset(0) + begin * strides[size_t(*axis)]);
    results.push_back(gatherElements(input, dims, source));
    begin += size;
  }
  return results;
}

static Error inferPad(InferContext &context) {
  const Shape *from = context.shape(0);
  bool isGiven;
  std::optional<std::vector<int64_t>> pads = context.integersOf("pads", 1, isGiven);
  std::optional<Shape> result;
  if (from) {
    result = *from;
    std::optional<std::vector<int64_t>> axes =
        context.has(3) ? context.integers(3) : std::vector<int64_t>();
    if (pads && axes) {
      if (axes->empty()) {
        axes->resize(from->size());
        std::iota(axes->begin(), axes->end(), 0);
      }
      if (pads->size() != 2 * axes->size())
        return context.error("has " + Twine(pads->size()) + " pads for " + Twine(axes->size()) +
                             " axes");
      for (size_t i = 0; i < axes->size(); ++i) {
        Expected<int64_t> axis = context.axis((*axes)[i], int64_t(from->size()));
        if (!axis)
          return axis.takeError();
        Dim &dim = (*result)[size_t(*axis)];
        dim = dim + Dim((*pads)[i]) + Dim((*pads)[i + axes->size()]);
      }
    } else {
      for (Dim &dim : *result)
        dim = context.symbols().fresh("padded");
    }
  }
  context.set(0, context.type(0), std::move(result));
  return Error::success();
}

static FoldResult foldPad(const FoldContext &context) {
  const Tensor &input = context.input(0);
  bool isGiven;
  std::vector<int64_t> pads = context.integersOf("pads", 1, isGiven);
  std::vector<int64_t> axes = context.input(3).integers();
  size_t rank = input.dims.size();
  if (!context.has(3)) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (pads.size() != 2 * axes.size())
    return context.error("has pads that do not fit its input");
  Dims before(rank, 0), dims = input.dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    Expected<int64_t> axis = context.axis(axes[i], int64_t(rank));
    if (!axis)
      return axis.takeError();
    constexpr int64_t kMost = int64_t(1) << 32;
    if (std::abs(pads[i]) > kMost || std::abs(pads[i + axes.size()]) > kMost)
      return context.error("pads by too much");
    before[size_t(*axis)] = pads[i];
    dims[size_t(*axis)] += pads[i] + pads[i + axes.size()];
  }
  if (Error error = checkFoldSize(context, dims))
    return std::move(error);
  llvm::StringRef mode = context.node().text("mode", "constant");
  Tensor filler =
      context.has(2) && context.input(2).elements() == 1
          ? context.input(2)
          : Tensor::ofDoubles(input.type, {}, {double(context.node().number("value", 0))});
  Dims strides = stridesOf(input.dims), index(rank, 0);
  std::vector<int64_t> source;
  for (int64_t n = *elementCount(dims); n > 0; --n) {
    int64_t at = 0;
    for (size_t i = 0; i < rank && at >= 0; ++i) {
      int64_t k = index[i] - before[i], size = input.dims[i];
      if (k < 0 || k >= size) {
        if (mode == "constant" || size == 0) {
          at = -1;
          continue;
        }
        if (mode == "edge") {
          k = std::min(std::max<int64_t>(k, 0), size - 1);
        } else if (mode == "wrap") {
          k = ((k % size) + size) % size;
        } else { // reflect
          int64_t period = std::max<int64_t>(2 * (size - 1), 1);
          k = ((k % period) + period) % period;
          k = k < size ? k : period - k;
        }
      }
      at += k * strides[i];
    }
    source.push_back(at);
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < dims[i])
        break;
      index[i] = 0;
    }
  }
  return one(gatherElements(input, dims, source, &filler));
}

//===----------------------------------------------------------------------===//
// Trilu, OneHot, NonZero
//===----------------------------------------------------------------------===//

static FoldResult foldTrilu(const FoldContext &context) {
  const Tensor &input = context.input(0);
  size_t rank = input.dims.size();
  if (rank < 2)
    return context.error("needs a matrix");
  int64_t k = context.has(1) && context.input(1).elements() == 1 ? context.input(1).integer(0) : 0;
  bool upper = context.node().integer("upper", 1) != 0;
  int64_t rows = input.dims[rank - 2], columns = input.dims[rank - 1];
  std::vector<int64_t> source;
  for (int64_t i = 0, e = input.elements(); i < e; ++i) {
    int64_t row = i / columns % rows, column = i % columns;
    // Column - row stays small; k can be anything.
    bool keep = upper ? column - row >= k : column - row <= k;
    source.push_back(keep ? i : -1);
  }
  return one(gatherElements(input, input.dims, source));
}

static Error inferOneHot(InferContext &context) {
  const Shape *indices = context.shape(0);
  std::optional<Shape> result;
  if (indices) {
    Expected<int64_t> axis =
        context.axis(context.node().integer("axis", -1), int64_t(indices->size()) + 1);
    if (!axis)
      return axis.takeError();
    std::optional<Contents> depth = context.contents(1);
    result = *indices;
    result->insert(result->begin() + *axis, depth && depth->values.size() == 1
                                                ? depth->values[0]
                                                : context.symbols().fresh("depth"));
  }
  context.set(0, context.type(2), std::move(result));
  return Error::success();
}

static FoldResult foldOneHot(const FoldContext &context) {
  const Tensor &indices = context.input(0), &values = context.input(2);
  Expected<int64_t> axis =
      context.axis(context.node().integer("axis", -1), int64_t(indices.dims.size()) + 1);
  if (!axis)
    return axis.takeError();
  if (context.input(1).elements() != 1 || values.elements() != 2)
    return context.error("needs one depth and two values");
  int64_t depth = context.input(1).integer(0);
  Dims dims = indices.dims;
  dims.insert(dims.begin() + *axis, depth);
  if (Error error = checkFoldSize(context, dims))
    return std::move(error);
  int64_t inner = elementCount(llvm::ArrayRef<int64_t>(dims).drop_front(*axis + 1)).value_or(0);
  std::vector<int64_t> picks = indices.integers(), source(size_t(*elementCount(dims)), 0);
  for (auto [i, pick] : llvm::enumerate(picks)) {
    pick += pick < 0 ? depth : 0;
    if (pick >= 0 && pick < depth)
      source[size_t((int64_t(i) / inner * depth + pick) * inner + int64_t(i) % inner)] = 1;
  }
  return one(gatherElements(values, dims, source));
}

static Error inferNonZero(InferContext &context) {
  const Shape *from = context.shape(0);
  Dim rank = from ? Dim(int64_t(from->size())) : context.symbols().fresh("rank");
  context.set(0, ElementType::Int64, Shape{rank, context.symbols().fresh("nonzero")});
  return Error::success();
}

static FoldResult foldNonZero(const FoldContext &context) {
  const Tensor &input = context.input(0);
  std::vector<double> values = input.doubles();
  Dims strides = stridesOf(input.dims);
  std::vector<int64_t> found, result;
  for (auto [i, value] : llvm::enumerate(values))
    if (value != 0)
      found.push_back(int64_t(i));
  for (size_t d = 0; d < input.dims.size(); ++d)
    for (int64_t i : found)
      result.push_back(i / strides[d] % input.dims[d]);
  return one(Tensor::ofIntegers(ElementType::Int64,
                                {int64_t(input.dims.size()), int64_t(found.size())}, result));
}

void onnx::addIndexingOps(OpRegistry &r) {
  struct Row {
    llvm::StringLiteral name;
    InferFn infer;
    FoldFn fold;
    bool moves;
  };
  static constexpr Row rows[] = {
      {"Gather", inferGather, foldGather, true},
      {"GatherElements", inferGatherElements, foldGatherElements, true},
      {"GatherND", inferGatherND, foldGatherND, true},
      {"Scatter", inferSame, foldScatterElements, false},
      {"ScatterElements", inferSame, foldScatterElements, false},
      {"ScatterND", inferSame, foldScatterND, false},
      {"Slice", inferSlice, foldSlice, true},
      {"Split", inferSplit, foldSplit, true},
      {"Pad", inferPad, foldPad, false},
      {"Trilu", inferSame, foldTrilu, false},
      {"OneHot", inferOneHot, foldOneHot, false},
      {"NonZero", inferNonZero, foldNonZero, false},
  };
  for (const Row &row : rows) {
    r.infer.add("", row.name, 1, row.infer);
    r.fold.add("", row.name, 1, row.fold);
    if (row.moves)
      r.moves.add("", row.name, 1, true);
  }
}
