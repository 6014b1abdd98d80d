//===- LowerRecurrent.cpp - operators that carry a state ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/lower/Lower.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::onnx;
using llvm::Error;
using llvm::Expected;

static ElementType wideOf(ElementType type) {
  return type == ElementType::Double ? type : ElementType::Float;
}

//===----------------------------------------------------------------------===//
// Linear attention
//===----------------------------------------------------------------------===//

/// [batch, time, heads * size] as [time, batch, heads, size].
static Array byTime(ArrayBuilder &a, Array x, int64_t heads, ElementType wide) {
  int64_t size = x.dim(2) / heads;
  Array split = a.reshape(a.cast(x, wide), {x.dim(0), x.dim(1), heads, size});
  return a.transpose(split, {1, 0, 2, 3});
}

/// The state is a matrix for each head, S[key][value]; a step decays it, writes k v^T to it (less
/// what it holds for k already, by the delta rule) and reads it with the query.
static Error lowerLinearAttention(LowerContext &c) {
  ArrayBuilder &a = c.a;
  const Node &node = c.node();
  Array q = c.input(0), k = c.input(1), v = c.input(2), past = c.input(3), decay = c.input(4),
        beta = c.input(5);
  StringRef rule = node.text("update_rule", "gated_delta");
  bool gated = rule.contains("gated"), delta = rule.contains("delta");
  int64_t heads = node.integer("q_num_heads", 0), kvHeads = node.integer("kv_num_heads", 0);
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    return c.error("has an update rule that is not known");
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || heads <= 0 || kvHeads <= 0 ||
      heads % kvHeads || q.dim(2) % heads || k.dim(2) % kvHeads || v.dim(2) % kvHeads ||
      gated != bool(decay) || delta != bool(beta))
    return c.error("has heads or inputs that do not go together");
  int64_t batch = q.dim(0), time = q.dim(1), keySize = q.dim(2) / heads,
          valueSize = v.dim(2) / kvHeads, group = heads / kvHeads;
  if (k.dim(2) != kvHeads * keySize || k.dim(1) != time || v.dim(1) != time ||
      (decay && decay.dim(2) != kvHeads && decay.dim(2) != kvHeads * keySize) ||
      (beta && beta.dim(2) != kvHeads && beta.dim(2) != 1))
    return c.error("has inputs of shapes that do not go together");
  ElementType type = q.type, wide = wideOf(type);
  double scale = node.number("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(double(keySize));
  Array queries = byTime(a, q, heads, wide), keys = byTime(a, k, kvHeads, wide),
        values = byTime(a, v, kvHeads, wide);
  Array decays = gated ? a.exp(byTime(a, decay, kvHeads, wide)) : Array();
  Array betas = delta ? byTime(a, beta, beta.dim(2), wide) : Array();
  Dims stateDims{batch, kvHeads, keySize, valueSize};
  if (past && past.shape() != llvm::ArrayRef<int64_t>(stateDims))
    return c.error("has a state of a shape that does not go with its inputs");
  Array state = past ? a.cast(past, wide) : a.full(wide, stateDims, 0);
  Array outputs = a.full(wide, {time, batch, kvHeads, group, valueSize}, 0);
  SmallVector<Array> last = a.repeat(
      time, {state, outputs}, [&](ArrayBuilder &b, mlir::Value t, llvm::ArrayRef<Array> carried) {
        Array s = carried[0];
        Array key = b.take(keys, t), value = b.take(values, t); // [batch, heads, size]
        if (gated)
          s = b.mul(s, b.unsqueeze(b.take(decays, t), 3));
        Array row = b.unsqueeze(key, 2);
        if (delta) {
          Array held = b.squeeze(b.matmul(row, s), 2);
          value = b.mul(b.take(betas, t), b.sub(value, held));
        }
        s = b.add(s, b.mul(b.unsqueeze(key, 3), b.unsqueeze(value, 2)));
        Array query = b.reshape(b.take(queries, t), {batch, kvHeads, group, keySize});
        Array read = b.mulScalar(b.matmul(query, s), scale);
        return SmallVector<Array>{s, b.put(carried[1], t, read)};
      });
  if (c.wants(1))
    c.set(1, a.cast(last[0], past ? past.type : type));
  Array y = a.reshape(last[1], {time, batch, heads * valueSize});
  return c.done(a.cast(a.transpose(y, {1, 0, 2}), type));
}

/// A convolution of each channel over the past and the present.
static Error lowerCausalConv(LowerContext &c) {
  ArrayBuilder &a = c.a;
  Array x = c.input(0), weight = c.input(1), bias = c.input(2), past = c.input(3);
  StringRef activation = c.node().text("activation", "none");
  if (x.rank() != 3 || weight.rank() != 3 || weight.dim(0) != x.dim(1) || weight.dim(1) != 1 ||
      weight.dim(2) == 0 || weight.dim(2) > 1024)
    return c.error("has an input and weights of shapes that do not go together");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return c.error("has an activation that is not known");
  int64_t channels = x.dim(1), taps = weight.dim(2), length = x.dim(2);
  ElementType type = x.type, wide = wideOf(type);
  Dims pastDims{x.dim(0), channels, taps - 1};
  if ((past && past.shape() != llvm::ArrayRef<int64_t>(pastDims)) ||
      (bias && bias.elements() != channels))
    return c.error("has a state or bias of a shape that does not go with its input's");
  Array padded = a.concat({past ? past : a.full(type, pastDims, 0), x}, 2);
  Array y;
  for (int64_t i = 0; i < taps; ++i) {
    Array tap = a.cast(a.reshape(a.slice(weight, 2, i, 1), {channels, 1}), wide);
    Array term = a.mul(a.cast(a.slice(padded, 2, i, length), wide), tap);
    y = y ? a.add(y, term) : term;
  }
  if (bias)
    y = a.add(y, a.reshape(a.cast(bias, wide), {channels, 1}));
  if (activation != "none") {
    y = a.cast(a.cast(y, type), wide);
    y = a.mul(y, a.sigmoid(y));
  }
  if (c.wants(1))
    c.set(1, a.slice(padded, 2, length, taps - 1));
  return c.done(a.cast(y, type));
}

//===----------------------------------------------------------------------===//
// RNN, GRU, LSTM
//===----------------------------------------------------------------------===//

namespace {
enum class Cell { Rnn, Gru, Lstm };
} // namespace

static Array activate(ArrayBuilder &a, StringRef name, Array x) {
  if (name == "sigmoid")
    return a.sigmoid(x);
  if (name == "relu")
    return a.unary(
        x, [](ScalarBuilder &s, mlir::Value v) { return s.op(Arith::Max, v, s.like(v, 0)); });
  return a.tanh(x);
}

template <Cell cell> static Error lowerRecurrent(LowerContext &c) {
  ArrayBuilder &a = c.a;
  const Node &node = c.node();
  Array x = c.input(0), w = c.input(1), r = c.input(2), bias = c.input(3), lengths = c.input(4),
        firstH = c.input(5), firstC = cell == Cell::Lstm ? c.input(6) : Array(),
        peepholes = cell == Cell::Lstm ? c.input(7) : Array();
  bool batchFirst = node.integer("layout", 0);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3)
    return c.error("has inputs that are no sequences or weights");
  if (batchFirst)
    x = a.transpose(x, {1, 0, 2});
  constexpr int64_t gates = cell == Cell::Rnn ? 1 : cell == Cell::Gru ? 3 : 4;
  int64_t time = x.dim(0), batch = x.dim(1), directions = w.dim(0), hidden = r.dim(2);
  StringRef direction = node.text("direction", "forward");
  if (directions != (direction == "bidirectional" ? 2 : 1) || w.dim(1) != gates * hidden ||
      r.dim(1) != gates * hidden || w.dim(2) != x.dim(2) || r.dim(0) != directions ||
      (bias && bias.elements() != directions * 2 * gates * hidden) ||
      (peepholes && peepholes.elements() != directions * 3 * hidden))
    return c.error("has weights of shapes that do not go with its input's");
  // The default activations, or those given for each direction.
  SmallVector<std::string> names;
  if (const onnx::Attribute *given = node.find("activations"))
    for (StringRef name : given->texts)
      names.push_back(name.lower());
  size_t perDirection = cell == Cell::Rnn ? 1 : cell == Cell::Gru ? 2 : 3;
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d)
      for (size_t i = 0; i < perDirection; ++i)
        names.push_back(cell != Cell::Rnn && i == 0 ? "sigmoid" : "tanh");
  for (StringRef name : names)
    if (name != "sigmoid" && name != "tanh" && name != "relu")
      return c.error("has the activation '" + name + "'");
  if (names.size() != perDirection * size_t(directions))
    return c.error("has another number of activations than gates");
  double clip = node.number("clip", 0);
  bool resetAfter = node.integer("linear_before_reset", 0);
  bool coupled = node.integer("input_forget", 0);
  Dims stateDims{directions, batch, hidden};
  auto initial = [&](Array given) {
    if (!given)
      return a.full(x.type, stateDims, 0);
    return a.reshape(batchFirst ? a.transpose(given, {1, 0, 2}) : given, stateDims);
  };
  for (const Array &given : {firstH, firstC})
    if (given && given.elements() != directions * batch * hidden)
      return c.error("has a state of a shape that does not go with its weights");
  Array startH = initial(firstH), startC = initial(firstC);

  SmallVector<Array> allY, allH, allC;
  for (int64_t d = 0; d < directions; ++d) {
    auto part = [&](Array all) { return a.squeeze(a.slice(all, 0, d, 1), 0); };
    // x W^T for all steps at once.
    Array wt = a.transpose(part(w), {1, 0}), rt = a.transpose(part(r), {1, 0});
    Array inputs = a.matmul(x, wt);
    Array rBias;
    if (bias) {
      Array both = a.reshape(bias, {directions, 2, gates * hidden});
      both = a.squeeze(a.slice(both, 0, d, 1), 0);
      inputs = a.add(inputs, a.squeeze(a.slice(both, 0, 0, 1), 0));
      rBias = a.squeeze(a.slice(both, 0, 1, 1), 0);
    }
    Array p = peepholes ? part(a.reshape(peepholes, {directions, 3 * hidden})) : Array();
    bool reverse = direction == "reverse" || d == 1;
    auto name = [&](size_t i) { return StringRef(names[size_t(d) * perDirection + i]); };
    SmallVector<Array> init{part(startH), part(startC), a.full(x.type, {time, batch, hidden}, 0)};
    SmallVector<Array> last =
        a.repeat(time, init, [&](ArrayBuilder &b, mlir::Value step, llvm::ArrayRef<Array> carried) {
          ScalarBuilder s(b.builder(), b.builder().getLoc());
          mlir::Value t = reverse ? s.sub(s.index(time - 1), step) : step;
          Array h = carried[0], cell_ = carried[1], in = b.take(inputs, t);
          auto limited = [&](Array v) {
            if (clip <= 0)
              return v;
            return b.unary(v, [&](ScalarBuilder &e, mlir::Value m) {
              return e.clamp(m, e.like(m, -clip), e.like(m, clip));
            });
          };
          auto gate = [&](Array v, int64_t i) {
            return b.slice(v, v.rank() - 1, i * hidden, hidden);
          };
          auto recur = [&](Array state) {
            Array sum = b.matmul(state, rt);
            return rBias ? b.add(sum, rBias) : sum;
          };
          Array nextH, nextC = cell_;
          if (cell == Cell::Rnn) {
            nextH = activate(b, name(0), limited(b.add(in, recur(h))));
          } else if (cell == Cell::Gru) { // z, r, h
            Array hr = recur(h);
            auto act = [&](int64_t i) {
              return activate(b, name(0), limited(b.add(gate(in, i), gate(hr, i))));
            };
            Array z = act(0), reset = act(1), candidate;
            if (resetAfter) {
              candidate = b.add(gate(in, 2), b.mul(reset, gate(hr, 2)));
            } else {
              candidate = b.add(gate(in, 2), gate(recur(b.mul(reset, h)), 2));
            }
            candidate = activate(b, name(1), limited(candidate));
            Array one = b.scalar(x.type, 1);
            nextH = b.add(b.mul(b.sub(one, z), candidate), b.mul(z, h));
          } else { // i, o, f, c
            Array sums = b.add(in, recur(h));
            auto peep = [&](Array v, int64_t i, Array state) {
              return p ? b.add(v, b.mul(gate(p, i), state)) : v;
            };
            Array i = activate(b, name(0), limited(peep(gate(sums, 0), 0, cell_)));
            Array f = coupled ? b.sub(b.scalar(x.type, 1), i)
                              : activate(b, name(0), limited(peep(gate(sums, 2), 2, cell_)));
            Array candidate = activate(b, name(1), limited(gate(sums, 3)));
            nextC = b.add(b.mul(f, cell_), b.mul(i, candidate));
            Array o = activate(b, name(0), limited(peep(gate(sums, 1), 1, nextC)));
            nextH = b.mul(o, activate(b, name(2), nextC));
          }
          Array out = nextH;
          if (lengths) {
            // Behind the end of a sequence its state stays and its output is zero.
            auto keep = [&](Array fresh, Array old, bool zero) {
              return b.generate(x.type, {batch, hidden}, [&](ScalarBuilder &e, ValueRange at) {
                mlir::Value end = e.toIndex(e.loadClamped(lengths, at[0]));
                mlir::Value none = e.narrow(e.constant(e.computedType(x.type), 0), x.type);
                return e.select(e.less(t, end), e.load(fresh, at), zero ? none : e.load(old, at));
              });
            };
            out = keep(nextH, h, true);
            nextH = keep(nextH, h, false);
            nextC = keep(nextC, cell_, false);
          }
          return SmallVector<Array>{nextH, nextC, b.put(carried[2], t, out)};
        });
    allH.push_back(a.unsqueeze(last[0], 0));
    allC.push_back(a.unsqueeze(last[1], 0));
    allY.push_back(a.unsqueeze(last[2], 1));
  }
  auto joined = [&](llvm::ArrayRef<Array> parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : a.concat(parts, axis);
  };
  Array y = joined(allY, 1), h = joined(allH, 0), lastC = joined(allC, 0);
  if (batchFirst) {
    y = a.transpose(y, {2, 0, 1, 3});
    h = a.transpose(h, {1, 0, 2});
    lastC = a.transpose(lastC, {1, 0, 2});
  }
  if (c.wants(1))
    c.set(1, h);
  if (cell == Cell::Lstm && c.wants(2))
    c.set(2, lastC);
  return c.done(y);
}

void onnx::addRecurrentLowerings(OpTable<LowerFn> &table) {
  table.add("", "CausalConvWithState", 1, lowerCausalConv);
  table.add("", "GRU", 7, lowerRecurrent<Cell::Gru>);
  table.add("", "LSTM", 7, lowerRecurrent<Cell::Lstm>);
  table.add("", "LinearAttention", 1, lowerLinearAttention);
  table.add("", "RNN", 7, lowerRecurrent<Cell::Rnn>);
}
