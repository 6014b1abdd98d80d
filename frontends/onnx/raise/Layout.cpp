//===- Layout.cpp - how rows lie in an ONNX tensor ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Layout.h"
#include <deque>

using namespace llmc;
using namespace llmc::onnx;
using Kind = Factor::Kind;

llvm::SmallVector<Factor, 6> Layout::factors() const {
  llvm::SmallVector<Factor, 6> all;
  for (const auto &axis : axes)
    all.append(axis.begin(), axis.end());
  return all;
}

Layout Layout::normalized() const {
  Layout result;
  for (const auto &axis : axes) {
    auto &joined = result.axes.emplace_back();
    for (const Factor &f : axis) {
      bool sized = f.kind == Kind::Feature || f.kind == Kind::Repeat;
      if (sized && f.size == 1)
        continue;
      if (!joined.empty() && joined.back().kind == f.kind && sized &&
          (f.kind == Kind::Repeat || joined.back().stride == f.stride * f.size)) {
        joined.back().size *= f.size;
        joined.back().stride = f.stride;
        continue;
      }
      joined.push_back(f);
    }
  }
  return result;
}

int64_t Layout::features() const {
  int64_t count = 1;
  for (const Factor &f : factors())
    if (f.kind == Kind::Feature)
      count *= f.size;
  return count;
}

bool Layout::featuresInOrder() const {
  int64_t left = features();
  for (const Factor &f : factors()) {
    if (f.kind == Kind::Repeat)
      return false;
    if (f.kind != Kind::Feature)
      continue;
    left /= f.size;
    if (f.stride != left)
      return false;
  }
  return true;
}

bool Layout::isRowMajor() const {
  if (axes.empty() || !featuresInOrder())
    return false;
  for (size_t i = 0; i < axes.size(); ++i)
    for (const Factor &f : axes[i])
      if ((f.kind == Kind::Feature) != (i + 1 == axes.size()))
        return false;
  return true;
}

Layout onnx::rowMajorLayout(size_t rank, int64_t features) {
  Layout layout;
  layout.axes.resize(rank);
  if (rank >= 2)
    layout.axes[rank - 2].push_back({Kind::Row, 0, 0});
  if (features != 1)
    layout.axes[rank - 1].push_back({Kind::Feature, features, 1});
  return layout;
}

Dim LayoutSizes::of(const Factor &factor) const {
  switch (factor.kind) {
  case Kind::Row:
    return rows;
  case Kind::Time:
    return time;
  case Kind::Feature:
  case Kind::Repeat:
    return Dim(factor.size);
  }
  return Dim(1);
}

std::optional<Layout> onnx::reshaped(const Layout &layout, llvm::ArrayRef<Dim> shape,
                                     const LayoutSizes &sizes) {
  auto list = layout.factors();
  std::deque<Factor> rest(list.begin(), list.end());
  Layout result;
  for (const Dim &want : shape) {
    auto &axis = result.axes.emplace_back();
    Dim have(1);
    while (have != want) {
      if (rest.empty())
        return std::nullopt;
      Factor next = rest.front();
      rest.pop_front();
      Dim whole = have * sizes.of(next);
      if (whole == want || want.dividedBy(whole)) {
        axis.push_back(next);
        have = whole;
        continue;
      }
      std::optional<Dim> left = want.dividedBy(have);
      std::optional<int64_t> outer = left ? left->constant() : std::nullopt;
      bool sized = next.kind == Kind::Feature || next.kind == Kind::Repeat;
      if (!sized || !outer || *outer <= 0 || next.size % *outer)
        return std::nullopt;
      int64_t inner = next.size / *outer;
      axis.push_back({next.kind, *outer, next.stride * inner});
      rest.push_front({next.kind, inner, next.stride});
      have = want;
    }
  }
  if (!rest.empty())
    return std::nullopt;
  return result.normalized();
}

Layout onnx::transposed(const Layout &layout, llvm::ArrayRef<int64_t> perm) {
  Layout result;
  for (int64_t axis : perm)
    result.axes.push_back(layout.axes[size_t(axis)]);
  return result;
}

std::vector<int64_t> onnx::elementPlaces(const Layout &layout, llvm::ArrayRef<int64_t> dims,
                                         int64_t features, int64_t rows) {
  std::vector<int64_t> places(1, 0);
  if (layout.axes.size() != dims.size())
    return {};
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    // Offsets of every index of the axis.
    std::vector<int64_t> offsets(1, 0);
    for (const Factor &f : layout.axes[axis]) {
      bool isRow = f.kind == Kind::Row || f.kind == Kind::Time;
      int64_t size = isRow ? rows : f.size;
      if (int64_t(offsets.size()) * size > dims[axis])
        return {};
      int64_t stride = isRow ? features : f.kind == Kind::Feature ? f.stride : 0;
      std::vector<int64_t> next;
      next.reserve(offsets.size() * size_t(size));
      for (int64_t base : offsets)
        for (int64_t i = 0; i < size; ++i)
          next.push_back(base + i * stride);
      offsets = std::move(next);
    }
    if (int64_t(offsets.size()) != dims[axis])
      return {};
    std::vector<int64_t> all;
    all.reserve(places.size() * offsets.size());
    for (int64_t base : places)
      for (int64_t offset : offsets)
        all.push_back(base + offset);
    places = std::move(all);
  }
  return places;
}
