//===- Recognize.cpp - what functions of rows are -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every question is answered by running the function (Probe.h) on a few rows and
// comparing with the candidates.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/raise/Raiser.h"
#include "frontends/onnx/raise/RotaryFit.h"
#include "llvm/ADT/DenseSet.h"
#include <cmath>
#include <numbers>

using namespace llmc;
using namespace llmc::onnx;
using MeaningKind = Meaning::Kind;

Probe &Raiser::probe(int64_t sequence, int64_t past) {
  for (auto &[key, known] : probes)
    if (key == std::pair(sequence, past))
      return *known;
  probes.emplace_back(std::pair(sequence, past),
                      std::make_unique<Probe>(model, roles, sequence, past));
  return *probes.back().second;
}

/// Relative error that is to be expected of arithmetic in the value's type.
double Raiser::tolerance(const Value *value) const {
  switch (value->type) {
  case ElementType::Float16:
    return 1e-2;
  case ElementType::BFloat16:
    return 5e-2;
  default:
    return 2e-5;
  }
}

struct Raiser::Sampled {
  std::vector<double> rows; ///< what the function gives, [rows, features]
};

/// Runs a function of a source on given rows, [probe.rows(), features].
std::optional<Raiser::Sampled> Raiser::sample(Probe &probe, const Value *value, const Meaning &m,
                                              llvm::ArrayRef<double> rows) {
  Source *source = m.source;
  std::optional<Dims> dims = probe.dims(*source->root);
  if (!dims || !m.layout)
    return std::nullopt;
  std::vector<int64_t> places =
      elementPlaces(source->layout, *dims, source->features, probe.rows());
  if (elementCount(*dims) != int64_t(places.size()) || places.size() != rows.size())
    return std::nullopt;
  std::vector<double> values(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    values[i] = rows[size_t(places[i])];
  Tensor input = Tensor::ofDoubles(source->root->type, *dims, values);
  Probe::Given given[] = {{source->root, &input}};
  llvm::Expected<Tensor> output = probe.evaluate(*value, given);
  if (!output) {
    llvm::consumeError(output.takeError());
    return std::nullopt;
  }
  std::vector<int64_t> back =
      elementPlaces(*m.layout, output->dims, source->features, probe.rows());
  // Repeated features are there several times; all must be there.
  if (m.layout->features() != source->features || back.size() < rows.size() ||
      int64_t(back.size()) != output->elements())
    return std::nullopt;
  std::vector<double> results = output->doubles();
  Sampled sampled;
  sampled.rows.resize(rows.size());
  for (size_t i = 0; i < back.size(); ++i)
    sampled.rows[size_t(back[i])] = results[i];
  return sampled;
}

/// Numbers without a pattern, in [-range, range].
static std::vector<double> someNumbers(size_t count, double range) {
  std::vector<double> numbers(count);
  uint64_t state = 0x9e3779b97f4a7c15;
  for (double &x : numbers) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Few bits, so that small float types hold them exactly.
    x = (double(state >> 54) / 512 - 1) * range;
  }
  return numbers;
}

//===----------------------------------------------------------------------===//
// Functions of one element
//===----------------------------------------------------------------------===//

static double activate(llm::Activation activation, double x) {
  switch (activation) {
  case llm::Activation::None:
    return x;
  case llm::Activation::Silu:
    return x / (1 + std::exp(-x));
  case llm::Activation::GeluTanh:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  case llm::Activation::GeluErf:
    return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  case llm::Activation::Relu:
    return std::max(x, 0.0);
  case llm::Activation::ReluSquared:
    return x > 0 ? x * x : 0;
  }
  return x;
}

std::optional<Raiser::ElementFunction> Raiser::elementFunction(const Value *value, Source *source) {
  const Meaning m = meanings[value];
  Probe &p = probe(1, 0);
  std::vector<double> x = someNumbers(size_t(source->features), 6);
  std::optional<Sampled> y = sample(p, value, m, x);
  if (!y)
    return std::nullopt;
  double limit = tolerance(value);
  auto matches = [&](auto fn) {
    for (size_t i = 0; i < x.size(); ++i) {
      double want = fn(x[i]);
      if (!(std::fabs(y->rows[i] - want) <= limit * std::max(1.0, std::fabs(want))))
        return false;
    }
    return true;
  };
  ElementFunction f;
  // Enough different numbers to tell functions apart: short rows are refused, not guessed.
  size_t largest = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (std::fabs(x[i]) > std::fabs(x[largest]))
      largest = i;
  double factor = y->rows[largest] / x[largest];
  if (std::isfinite(factor) && matches([&](double v) { return factor * v; })) {
    f.number = std::fabs(factor - 1) <= limit ? 1 : factor;
    return f;
  }
  using A = llm::Activation;
  for (A activation : {A::Silu, A::GeluTanh, A::GeluErf, A::Relu, A::ReluSquared})
    if (matches([&](double v) { return activate(activation, v); })) {
      // The two GELUs differ by 5e-4 only; the nearer one is meant.
      if (activation == A::GeluTanh || activation == A::GeluErf) {
        auto distance = [&](A which) {
          double sum = 0;
          for (size_t i = 0; i < x.size(); ++i)
            sum += std::fabs(y->rows[i] - activate(which, x[i]));
          return sum;
        };
        activation = distance(A::GeluTanh) < distance(A::GeluErf) ? A::GeluTanh : A::GeluErf;
      }
      f.kind = ElementFunction::Kind::Activation;
      f.activation = activation;
      return f;
    }
  std::vector<double> large(x.size(), 30000);
  std::optional<Sampled> top = sample(p, value, m, large);
  double cap = top ? top->rows[0] : 0;
  if (cap > 0 && std::isfinite(cap) &&
      matches([&](double v) { return cap * std::tanh(v / cap); })) {
    f.kind = ElementFunction::Kind::Softcap;
    f.number = cap;
    return f;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// Small positive constants that the function is computed with: one of them is its epsilon.
std::optional<std::vector<double>> Raiser::smallConstants(const Value *value, const Value *root) {
  std::vector<double> found;
  llvm::DenseSet<const Value *> seen = {root};
  std::vector<const Value *> work = {value};
  constexpr size_t kMost = 256;
  while (!work.empty()) {
    const Value *next = work.back();
    work.pop_back();
    if (!seen.insert(next).second)
      continue;
    if (seen.size() > kMost)
      return std::nullopt;
    if (std::optional<double> number = scalar(next)) {
      if (isFloat(next->type) && *number > 0 && *number < 0.1)
        found.push_back(*number);
      continue;
    }
    if (next->producer && isData(next))
      for (const Value *input : next->producer->inputs)
        if (input)
          work.push_back(input);
  }
  found.push_back(0);
  return found;
}

void Raiser::tryNorm(const Value *value) {
  const Meaning m = meanings[value];
  Source *source = m.source;
  if (m.positional)
    return;
  std::optional<std::vector<double>> epsilons = smallConstants(value, source->root);
  if (!epsilons)
    return;
  Layout layout = m.layout->normalized();
  llvm::SmallVector<int64_t, 2> groupings = {1};
  if (!layout.axes.empty() && layout.axes.back().size() == 1 &&
      layout.axes.back()[0].kind == Factor::Kind::Feature && layout.axes.back()[0].stride == 1)
    groupings.push_back(source->features / layout.axes.back()[0].size);
  // Two rows: one where epsilon is nothing, one where it is most.
  size_t n = size_t(source->features);
  std::vector<double> x = someNumbers(n, 4), small = someNumbers(n, 1.0 / 512);
  x.insert(x.end(), small.begin(), small.end());
  std::optional<Sampled> y = sample(probe(2, 0), value, m, x);
  if (!y)
    return;
  double limit = std::max(tolerance(value), 1e-4);
  for (int64_t groups : groupings)
    for (llm::NormKind kind : {llm::NormKind::Rms, llm::NormKind::Layer})
      for (double epsilon : *epsilons) {
        size_t size = n / size_t(groups);
        bool same = true;
        for (size_t begin = 0; begin < 2 * n && same; begin += size) {
          double mean = 0, square = 0;
          for (size_t i = begin; kind == llm::NormKind::Layer && i < begin + size; ++i)
            mean += x[i] / double(size);
          for (size_t i = begin; i < begin + size; ++i)
            square += (x[i] - mean) * (x[i] - mean) / double(size);
          for (size_t i = begin; i < begin + size && same; ++i) {
            double want = (x[i] - mean) / std::sqrt(square + epsilon);
            same = std::fabs(y->rows[i] - want) <= limit * std::max(1.0, std::fabs(want));
          }
        }
        if (same) {
          normOf(value, source, kind, epsilon, groups, *m.layout);
          return;
        }
      }
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

/// cos and sin of every pair of every position, from what rows of ones and halves become.
static std::optional<RotarySamples> rotation(llvm::ArrayRef<double> x, llvm::ArrayRef<double> y,
                                             int64_t features, int64_t headDim, int64_t rotated,
                                             llm::RopeKind kind, llvm::ArrayRef<int64_t> positions,
                                             double limit) {
  RotarySamples samples;
  samples.positions.assign(positions.begin(), positions.end());
  int64_t pairs = rotated / 2;
  for (size_t row = 0; row < positions.size(); ++row)
    for (int64_t pair = 0; pair < pairs; ++pair) {
      double cosine = 0, sine = 0;
      for (int64_t head = 0; head < features / headDim; ++head) {
        size_t base = row * size_t(features) + size_t(head * headDim);
        size_t a = base + size_t(kind == llm::RopeKind::HalfSplit ? pair : 2 * pair);
        size_t b = kind == llm::RopeKind::HalfSplit ? a + size_t(pairs) : a + 1;
        double square = x[a] * x[a] + x[b] * x[b];
        double c = (x[a] * y[a] + x[b] * y[b]) / square, s = (x[a] * y[b] - x[b] * y[a]) / square;
        // It has to be the same rotation for every head.
        if (head > 0 && !(std::fabs(c - cosine) <= limit && std::fabs(s - sine) <= limit))
          return std::nullopt;
        // And no more than a rotation: both results follow from the two numbers.
        if (!(std::fabs(x[a] * c - x[b] * s - y[a]) <= limit * 4 &&
              std::fabs(x[a] * s + x[b] * c - y[b]) <= limit * 4))
          return std::nullopt;
        cosine = c;
        sine = s;
      }
      samples.cosines.push_back(cosine);
      samples.sines.push_back(sine);
    }
  samples.pairs = pairs;
  // What is not rotated passes through.
  for (size_t i = 0; i < x.size(); ++i)
    if (int64_t(i) % headDim >= rotated && !(std::fabs(x[i] - y[i]) <= limit * 4))
      return std::nullopt;
  return samples;
}

std::optional<RopeTable> Raiser::ropeOf(const Value *value, Source *source, const Layout &layout,
                                        int64_t headDim) {
  const Meaning m = meanings[value];
  double limit = std::max(tolerance(value), 1e-4);
  size_t n = size_t(source->features);
  // Numbers well away from 0, so that quotients are exact.
  auto rowsOfNumbers = [&](size_t rows) {
    std::vector<double> x = someNumbers(n * rows, 1);
    for (double &v : x)
      v += v < 0 ? -1 : 1;
    return x;
  };
  constexpr int64_t kRows = 16;
  std::vector<double> x = rowsOfNumbers(kRows);
  std::optional<Sampled> y = sample(probe(kRows, 0), value, m, x);
  if (!y)
    return std::nullopt;
  // The last feature of a head that changes at any position.
  int64_t rotated = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::fabs(x[i] - y->rows[i]) <= 1e-7))
      rotated = std::max(rotated, int64_t(i) % headDim + 1);
  rotated += rotated % 2;
  if (rotated == 0 || rotated > headDim)
    return std::nullopt;
  std::vector<int64_t> firsts;
  for (int64_t i = 0; i < kRows; ++i)
    firsts.push_back(i);
  for (llm::RopeKind kind : {llm::RopeKind::HalfSplit, llm::RopeKind::Interleaved}) {
    std::optional<RotarySamples> samples =
        rotation(x, y->rows, source->features, headDim, rotated, kind, firsts, limit);
    if (!samples)
      continue;
    // Far positions make frequencies exact. A table may end before.
    std::vector<double> row = rowsOfNumbers(1);
    for (int64_t position = 32; position <= kFarthestPosition; position *= 2) {
      std::optional<Sampled> far = sample(probe(1, position), value, m, row);
      std::optional<RotarySamples> more;
      if (far)
        more =
            rotation(row, far->rows, source->features, headDim, rotated, kind, {position}, limit);
      if (!more)
        break;
      samples->append(*more);
    }
    if (std::optional<RopeTable> table = fitRotary(*samples, kind, limit))
      return table;
  }
  return std::nullopt;
}

void Raiser::tryRope(const Value *value) {
  const Meaning m = meanings[value];
  Layout layout = m.layout->normalized();
  if (m.reduces || layout.features() != m.source->features || layout.axes.empty() ||
      layout.axes.back().size() != 1)
    return;
  const Factor &last = layout.axes.back()[0];
  if (last.kind != Factor::Kind::Feature || last.stride != 1)
    return;
  std::optional<RopeTable> table = ropeOf(value, m.source, layout, last.size);
  if (table)
    applyRope(m.source, *table, m.source->features / last.size, value, *m.layout);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// Compares a mask with the causal one, with a window where rows seem to have one; `window` is -1
/// until a row shows it.
bool Raiser::checkMask(Probe &p, const Value *value, bool isCondition, int64_t &window) {
  llvm::Expected<Tensor> mask = p.evaluate(*value);
  if (!mask) {
    llvm::consumeError(mask.takeError());
    return false;
  }
  size_t rank = mask->dims.size();
  int64_t time = p.rows() + (roles.pasts.empty() ? 0 : p.firstPosition());
  if (rank == 0 || mask->dims.back() != time)
    return false;
  int64_t rows = rank > 1 ? mask->dims[rank - 2] : 1;
  if (rows != p.rows() && rows != 1)
    return false;
  std::vector<double> values = mask->doubles();
  constexpr double kHidden = -1e3; // adds up to nothing after a softmax
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t column = int64_t(i) % time, row = int64_t(i) / time % rows;
    int64_t position = (rows == 1 ? p.rows() - 1 : row) + (time - p.rows());
    // One row for several would have to show every row the same.
    if (rows == 1 && p.rows() > 1)
      return false;
    bool visible = isCondition ? values[i] != 0 : values[i] == 0;
    if (!isCondition && !visible && !(values[i] <= kHidden))
      return false;
    if (column > position) {
      if (visible)
        return false;
      continue;
    }
    bool inWindow = window < 0 || position - column < window;
    if (visible == inWindow)
      continue;
    if (visible || window >= 0)
      return false;
    // The nearest hidden position of this row says how wide the window is: columns come in order.
    int64_t next = column + 1;
    while (next <= position && (isCondition ? values[i + size_t(next - column)] == 0
                                            : values[i + size_t(next - column)] != 0))
      ++next;
    window = position - next + 1;
    if (window <= 0)
      return false;
  }
  return true;
}

std::optional<int64_t> Raiser::maskWindow(const Value *value, bool isCondition) {
  auto [it, isNew] = masks.try_emplace(value, std::nullopt);
  if (!isNew)
    return it->second;
  bool hasPast = !roles.pasts.empty();
  int64_t window = -1;
  // Long rows first: they show the window.
  std::vector<std::pair<int64_t, int64_t>> steps = {{1, 40000}, {1, 3000}, {1, 1000},
                                                    {1, 500},   {2, 250},  {1, 120}};
  if (!hasPast)
    steps = {{1100, 0}, {300, 0}};
  for (auto [sequence, past] : steps) {
    Probe &p = probe(sequence, past);
    // A stored mask may end before; that is no contradiction.
    llvm::Expected<Tensor> computed = p.evaluate(*value);
    if (!computed) {
      llvm::consumeError(computed.takeError());
      continue;
    }
    if (computed->dims.empty() || computed->dims.back() != sequence + past)
      continue;
    if (!checkMask(p, value, isCondition, window))
      return std::nullopt;
  }
  steps = hasPast
              ? std::vector<std::pair<int64_t, int64_t>>{{5, 0}, {4, 3}, {1, 0}, {1, 7}, {9, 40}}
              : std::vector<std::pair<int64_t, int64_t>>{{1, 0}, {5, 0}, {40, 0}};
  for (auto [sequence, past] : steps)
    if (!checkMask(probe(sequence, past), value, isCondition, window))
      return std::nullopt;
  return masks[value] = std::max<int64_t>(window, 0);
}

bool Raiser::hidesNothing(const Value *value, bool isCondition) {
  std::vector<std::pair<int64_t, int64_t>> steps = {{1, 0}, {5, 0}, {40, 0}};
  if (!roles.pasts.empty())
    steps = {{1, 7}, {5, 0}, {4, 3}, {9, 40}};
  for (auto [sequence, past] : steps) {
    llvm::Expected<Tensor> mask = probe(sequence, past).evaluate(*value);
    if (!mask) {
      llvm::consumeError(mask.takeError());
      return false;
    }
    int64_t time = sequence + (roles.pasts.empty() ? 0 : past);
    auto is = [&](size_t fromBack, int64_t size) {
      if (mask->dims.size() < fromBack)
        return true;
      int64_t dim = mask->dims[mask->dims.size() - fromBack];
      return dim == 1 || dim == size;
    };
    if (!is(1, time) || !is(2, sequence))
      return false;
    for (double element : mask->doubles())
      if ((element != 0) != isCondition)
        return false;
  }
  return true;
}

bool Raiser::applyMask(Scores &scores, const Value *value, bool isCondition) {
  if (hidesNothing(value, isCondition))
    return true;
  std::optional<int64_t> window = maskWindow(value, isCondition);
  if (!window)
    return false;
  scores.causal = true;
  scores.window = *window;
  return true;
}
