//===- RaisePooling.cpp - the rows of a text made one ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sentence encoder may end with one row for a text: the mean of its rows (masks
// multiplied in), the first or the last of them, of length 1 or not. Which it is,
// is found by running that part of the graph on a few rows.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Raiser.h"
#include <cmath>

using namespace llmc;
using namespace llmc::onnx;
using MeaningKind = Meaning::Kind;

/// One row made of `count` rows.
static std::vector<double> pooled(llvm::ArrayRef<double> rows, size_t count, const Pooling &how) {
  size_t n = rows.size() / count;
  std::vector<double> result(n);
  if (how.kind == "mean")
    for (size_t i = 0; i < rows.size(); ++i)
      result[i % n] += rows[i] / double(count);
  else
    llvm::copy(rows.slice(how.kind == "cls" ? 0 : (count - 1) * n, n), result.begin());
  double square = 0;
  for (double x : result)
    square += x * x;
  if (how.normalize)
    for (double &x : result)
      x /= std::sqrt(square);
  return result;
}

std::optional<Pooling> Raiser::poolingOf(const Value *value) {
  const Meaning m = meanings[value];
  Source *source = m.source;
  bool isCandidate = m.kind == MeaningKind::Function ||
                     (m.kind == MeaningKind::Rows && m.layout && value->rank() == 2);
  if (!isCandidate || !source || !source->layout.isRowMajor() || !value->shape ||
      value->shape->empty() || value->shape->back() != Dim(source->features))
    return std::nullopt;
  std::vector<Pooling> candidates;
  for (llvm::StringRef kind : {"mean", "cls", "last"})
    for (bool normalize : {false, true})
      candidates.push_back({kind, normalize});
  double limit = std::max(tolerance(value), 1e-4);
  for (int64_t count : {3, 8}) {
    Probe &p = probe(count, 0);
    std::vector<double> rows(size_t(count * source->features));
    // Numbers around 1: no sum of them is near 0.
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = 1 + std::sin(double(i * i % 1009));
    std::optional<Dims> dims = p.dims(*source->root);
    if (!dims || elementCount(*dims) != int64_t(rows.size()))
      return std::nullopt;
    Tensor input = Tensor::ofDoubles(source->root->type, *dims, rows);
    Probe::Given given[] = {{source->root, &input}};
    llvm::Expected<Tensor> output = p.evaluate(*value, given);
    if (!output) {
      llvm::consumeError(output.takeError());
      return std::nullopt;
    }
    std::vector<double> got = output->doubles(), seen = input.doubles();
    llvm::erase_if(candidates, [&](const Pooling &how) {
      std::vector<double> want = pooled(seen, size_t(count), how);
      if (got.size() != want.size())
        return true;
      for (size_t i = 0; i < want.size(); ++i)
        if (!(std::fabs(got[i] - want[i]) <= limit * std::max(1.0, std::fabs(want[i]))))
          return true;
      return false;
    });
  }
  return candidates.size() == 1 ? std::optional(candidates[0]) : std::nullopt;
}
