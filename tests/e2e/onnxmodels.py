"""Small ONNX models with the weights of a GGUF fixture, in the forms that exporters give them.

    from_gguf(fixtures.random_model(), "primitive")     the bytes of an .onnx file

Styles (all of them Llama-shaped):
    fused       as primitive, without rotary embeddings: one past for the keys and values of a layer,
                for one head of them (multi-query)
    primitive   element-wise norms, rotary embedding computed from positions, keys and values
                repeated with Expand, a mask from comparisons, softmax: as torch.onnx.export writes
    tables      tables of cosines and sines, interleaved pairs, an additive mask cut out of a stored
                one, grouped queries by broadcasting, x * rsqrt by Reciprocal and Sqrt
    multihead   as primitive, attention by com.microsoft MultiHeadAttention
    opset23     RMSNormalization, RotaryEmbedding, Attention of ai.onnx 23
    contrib     GroupQueryAttention and SkipSimplifiedLayerNormalization of com.microsoft
"""

import math
import random
import struct

from onnxwriter import *

NAMES = {"optimum": ("past_key_values.%d.key", "past_key_values.%d.value"),
         "numbers": ("past_%d_0", "past_%d_1"),
         "pairs": ("past_key_values_%d.0", "past_key_values_%d.1"),
         "nothing": ("a%d", "b%d")}


def floats(data):
    return list(struct.unpack("<%df" % (len(data) // 4), data))


def quantize_block(values, zeros):
    """(scale, zero point, codes) of 4 bits; a power of two as scale, so that it is exact."""
    low, high = min(values + [0.0]), max(values + [0.0])
    span = max(high, -low) / 7 if not zeros else (high - low) / 15
    scale = 2.0 ** math.ceil(math.log2(span or 1.0))
    zero = 8 if not zeros else min(15, max(0, round(-low / scale)))
    return scale, zero, [min(15, max(0, round(v / scale) + zero)) for v in values]


def quantized(gguf, block, zeros=False):
    """The same fixture, its linears (not the embedding) rounded to 4-bit blocks."""
    for t in gguf.tensors:
        if len(t["shape"]) != 2 or t["name"] == "token_embd.weight":
            continue
        values, k = floats(t["data"]), t["shape"][1]
        out = []
        for row in range(0, len(values), k):
            for at in range(row, row + k, block):
                part = values[at:min(at + block, row + k)]
                scale, zero, codes = quantize_block(part, zeros)
                out += [(c - zero) * scale for c in codes]
        t["data"] = struct.pack("<%df" % len(out), *out)
    return gguf


def quantize_rows(rows, type, kind, zeros):
    """Codes, scales and zero points of each row; scales are powers of two, so nothing is rounded that
    round_rows() has rounded."""
    bits = 4 if type in (INT4, UINT4) else 8
    low = -(1 << bits - 1) if type in (INT4, INT8) else 0
    high = low + (1 << bits) - 1
    length = len(rows[0]) if kind in ("row", "tensor") else kind

    def grid(values):
        top = max([abs(v) for v in values] + [2.0 ** -20])
        scale = 2.0 ** math.ceil(math.log2(top / ((1 << bits - 1) - 1)))
        # Without zero points 0 is code 0; unsigned codes then have no negative numbers.
        zero = (low + high + 1) // 2 - (kind != "tensor") if zeros else 0
        return scale, zero

    whole = grid([v for r in rows for v in r]) if kind == "tensor" else None
    codes, scales, points = [], [], []
    for row in rows:
        groups = [row[at:at + length] for at in range(0, len(row), length)]
        grids = [whole or grid(g) for g in groups]
        codes.append([min(high, max(low, round(v / s) + z))
                      for g, (s, z) in zip(groups, grids) for v in g])
        scales.append([s for s, _ in grids])
        points.append([z for _, z in grids])
    return codes, scales, points


def round_rows(gguf, type, kind, zeros=False):
    """The same fixture, its linears (not the embedding) rounded to such codes."""
    for t in gguf.tensors:
        if len(t["shape"]) != 2 or t["name"] == "token_embd.weight":
            continue
        n, k = t["shape"]
        values = floats(t["data"])
        rows = [values[i * k:(i + 1) * k] for i in range(n)]
        codes, scales, points = quantize_rows(rows, type, kind, zeros)
        length = k if kind in ("row", "tensor") else kind
        out = [(c - p[i // length]) * s[i // length] for row, s, p in zip(codes, scales, points)
               for i, c in enumerate(row)]
        t["data"] = struct.pack("<%df" % len(out), *out)
    return gguf


class Builder:
    """Nodes and constants of a graph in the making; every method gives the name of a value."""

    def __init__(self, dtype=FLOAT):
        self.nodes, self.initializers, self.dtype, self.count = [], [], dtype, 0

    def op(self, op, *inputs, outputs=1, domain="", **attributes):
        names = ["/m/v::%d.%d" % (self.count, i) for i in range(outputs)]
        self.count += 1
        self.nodes.append(node(op, inputs, names, domain, name="/m/%s_%d" % (op, self.count),
                               **attributes))
        return names[0] if outputs == 1 else names

    def ints(self, *values):
        return self.op("Constant", value=tensor("", INT64, [len(values)], list(values)))

    def int(self, value):
        return self.op("Constant", value=tensor("", INT64, [], [value]))

    def number(self, value):
        return self.op("Constant", value=tensor("", self.dtype, [], [value]))

    def weight(self, name, dims, values):
        name = "onnx::%s_%d" % (name, self.count)
        self.count += 1
        self.initializers.append(tensor(name, self.dtype, dims, values))
        return name

    def size(self, x, axis):
        return self.op("Gather", self.op("Shape", x), self.int(axis), axis=0)

    def list(self, *sizes):
        """A shape from numbers and scalars."""
        parts = [self.ints(s) if isinstance(s, int) else
                 self.op("Unsqueeze", s, self.ints(0)) for s in sizes]
        return self.op("Concat", *parts, axis=0)


class Exporter:
    def __init__(self, gguf, style, names="optimum", dtype=FLOAT, window=0, softcap=0.0,
                 packed=False, shuffle=None, past=True, symbols=("batch", "seq", "past"),
                 block=0, zeros=False, lost=None, qdq=None):
        self.gguf, self.style, self.names, self.window = gguf, style, NAMES[names], window
        self.softcap, self.packed, self.shuffle, self.past = softcap, packed, shuffle, past
        self.symbols, self.block, self.zeros, self.lost = symbols, block, zeros, lost
        self.qdq = qdq  # (type of the codes, scales per "row", "tensor" or block of so many)
        get = gguf.get
        self.layers, self.heads = get("llama.block_count"), get("llama.attention.head_count")
        self.kv_heads = get("llama.attention.head_count_kv")
        self.width = gguf.tensor("token_embd.weight")["shape"][1]
        self.dim = self.width // self.heads
        self.base = get("llama.rope.freq_base")
        self.eps = get("llama.attention.layer_norm_rms_epsilon")
        self.context = get("llama.context_length")
        self.b = Builder(dtype)
        self.inputs, self.outputs = [], []
        self.interleaved = style == "tables"

    # Weights.

    def rows(self, name):
        t = self.gguf.tensor(name)
        n, k = t["shape"]
        v = floats(t["data"])
        rows = [v[i * k:(i + 1) * k] for i in range(n)]
        part = name.split(".")[-2]
        if part in ("attn_q", "attn_k") and not self.interleaved:
            d = self.dim # GGUF files of llama have pairs side by side
            rows = [rows[h * d + 2 * (i % (d // 2)) + i // (d // 2)] for h in range(n // d)
                    for i in range(d)]
        return rows

    def linear(self, x, *names):
        rows = [r for n in names for r in self.rows(n)]
        n, k = len(rows), len(rows[0])
        if self.block:
            return self.blocks(x, rows, n, k)
        if self.qdq:
            return self.dequantized(x, rows, n, k)
        if self.style == "tables":  # a Gemm over flattened rows, its matrix as it is
            w = self.b.weight("w", [n, k], [v for r in rows for v in r])
            flat = self.b.op("Reshape", x, self.b.ints(-1, k))
            y = self.b.op("Gemm", flat, w, transB=1)
            return self.b.op("Reshape", y, self.b.list(1, -1, n))
        w = self.b.weight("w", [k, n], [rows[j][i] for i in range(k) for j in range(n)])
        return self.b.op("MatMul", x, w)

    def blocks(self, x, rows, n, k):
        """MatMulNBits of 4 bits; rows that quantized() made lose nothing."""
        b, codes, scales, zeros = self.b, bytearray(), [], bytearray()
        for row in rows:
            offsets = []
            for at in range(0, k, self.block):
                scale, zero, values = quantize_block(row[at:at + self.block], self.zeros)
                scales.append(scale)
                offsets.append(zero)
                values += [15] * (self.block - len(values))  # padding is no weight
                codes += bytes(u | v << 4 for u, v in zip(values[::2], values[1::2]))
            offsets += [0] * (len(offsets) % 2)
            zeros += bytes(u | v << 4 for u, v in zip(offsets[::2], offsets[1::2]))
        groups = -(-k // self.block)
        name = "q%d." % b.count
        b.count += 1
        b.initializers += [tensor(name + "w", UINT8, [n, groups, self.block // 2], bytes(codes)),
                           tensor(name + "s", b.dtype, [n * groups], scales)]
        inputs = [x, name + "w", name + "s"]
        if self.zeros:
            b.initializers.append(tensor(name + "z", UINT8, [len(zeros)], bytes(zeros)))
            inputs.append(name + "z")
        return b.op("MatMulNBits", *inputs, domain="com.microsoft", K=k, N=n, bits=4,
                    block_size=self.block)

    def dequantized(self, x, rows, n, k):
        """DequantizeLinear in front of a MatMul, as [K, N]; of a Gemm, or behind a Transpose, as
        [N, K]."""
        b, (type, kind) = self.b, self.qdq
        codes, scales, zeros = quantize_rows(rows, type, kind, self.zeros)
        by_column = b.count % 2 == 0
        name = "dq%d." % b.count
        b.count += 1
        groups = len(scales[0])
        flip = lambda m: [list(c) for c in zip(*m)] if by_column else m
        flat = lambda m: [v for r in m for v in r]
        attributes, shape = {}, []
        if kind == "row":
            attributes, shape = {"axis": 1 if by_column else 0}, [n]
        elif kind != "tensor":
            attributes = {"axis": 0 if by_column else 1, "block_size": kind}
            shape = [groups, n] if by_column else [n, groups]
        once = lambda m: m[0] if kind == "tensor" else flat(flip(m))
        b.initializers += [tensor(name + "q", type, [k, n] if by_column else [n, k],
                                  flat(flip(codes))),
                           tensor(name + "s", b.dtype, shape, once(scales))]
        inputs = [name + "q", name + "s"]
        if self.zeros:
            b.initializers.append(tensor(name + "z", type, shape, once(zeros)))
            inputs.append(name + "z")
        w = b.op("DequantizeLinear", *inputs, **attributes)
        return b.op("MatMul", x, w if by_column else b.op("Transpose", w, perm=[1, 0]))

    def vector(self, name):
        t = self.gguf.tensor(name)
        return self.b.weight("v", list(t["shape"]), floats(t["data"]))

    # Parts.

    def norm(self, x, name):
        b, w = self.b, self.vector(name)
        if self.style == "opset23":
            return b.op("RMSNormalization", x, w, axis=-1, epsilon=self.eps)
        if self.style == "contrib":
            return b.op("SimplifiedLayerNormalization", x, w, axis=-1, epsilon=self.eps)
        if self.style == "tables":
            mean = b.op("ReduceMean", b.op("Mul", x, x), b.ints(-1))
            root = b.op("Reciprocal", b.op("Sqrt", b.op("Add", mean, b.number(self.eps))))
            return b.op("Mul", b.op("Mul", x, root), w)
        mean = b.op("ReduceMean", b.op("Pow", x, b.number(2.0)), b.ints(-1))
        root = b.op("Sqrt", b.op("Add", mean, b.number(self.eps)))
        return b.op("Mul", w, b.op("Mul", x, b.op("Div", b.number(1.0), root)))

    def frequencies(self):
        return [self.base ** (-2.0 * i / self.dim) for i in range(self.dim // 2)]

    def positions(self, table):
        """What rotary embeddings of all layers share."""
        b, half = self.b, self.dim // 2
        if self.style == "contrib":
            return self.tables()
        if self.style == "tables":
            cos, sin = self.tables()
            cos, sin = (b.op("Gather", t, "position_ids", axis=0) for t in (cos, sin))
            return tuple(b.op("Unsqueeze", t, b.ints(1)) for t in (cos, sin))
        name = b.weight("f", [1, half, 1], self.frequencies())
        p = b.op("Cast", b.op("Unsqueeze", "position_ids", b.ints(1)), to=b.dtype)
        angles = b.op("Transpose", b.op("MatMul", name, p), perm=[0, 2, 1])
        if self.style == "opset23":
            return b.op("Cos", angles), b.op("Sin", angles)
        twice = b.op("Concat", angles, angles, axis=-1)
        return tuple(b.op("Unsqueeze", b.op(f, twice), b.ints(1)) for f in ("Cos", "Sin"))

    def tables(self):
        half, b = self.dim // 2, self.b
        angles = [p * f for p in range(self.context) for f in self.frequencies()]
        return tuple(b.weight("t", [self.context, half], [f(a) for a in angles])
                     for f in (math.cos, math.sin))

    def rope(self, x, tables, heads):
        """x: [1, heads, S, dim]."""
        b, (cos, sin), half = self.b, tables, self.dim // 2
        if self.style == "opset23":
            return b.op("RotaryEmbedding", x, cos, sin, num_heads=heads)
        if self.interleaved:
            s = b.size(x, 2)
            pairs = b.op("Reshape", x, b.list(1, heads, s, half, 2))
            even = b.op("Gather", pairs, b.int(0), axis=-1)
            odd = b.op("Gather", pairs, b.int(1), axis=-1)
            first = b.op("Sub", b.op("Mul", even, cos), b.op("Mul", odd, sin))
            second = b.op("Add", b.op("Mul", even, sin), b.op("Mul", odd, cos))
            both = b.op("Concat", *(b.op("Unsqueeze", v, b.ints(-1)) for v in (first, second)),
                        axis=-1)
            return b.op("Reshape", both, b.list(1, heads, s, self.dim))
        low = b.op("Slice", x, b.ints(0), b.ints(half), b.ints(3), b.ints(1))
        high = b.op("Slice", x, b.ints(half), b.ints((1 << 63) - 1), b.ints(3), b.ints(1))
        turned = b.op("Concat", b.op("Neg", high), low, axis=-1)
        return b.op("Add", b.op("Mul", x, cos), b.op("Mul", turned, sin))

    def mask(self):
        """What is visible: [1, 1, S, P + S], as a condition or to be added."""
        b = self.b
        s = b.size("input_ids", 1)
        name, axis = ("past.0.key_value", 1) if self.style == "fused" else (self.past_name(0, 0), 2)
        p = b.size(name, axis) if self.past else b.int(0)
        total = b.op("Add", p, s)
        if self.style == "tables":
            n = self.context
            stored = [0.0 if j <= i and (not self.window or i - j < self.window) else -1e30
                      for i in range(n) for j in range(n)]
            stored = b.weight("mask", [1, 1, n, n], stored)
            rows = b.op("Slice", stored, b.op("Unsqueeze", p, b.ints(0)),
                        b.op("Unsqueeze", total, b.ints(0)), b.ints(2))
            return b.op("Slice", rows, b.ints(0), b.op("Unsqueeze", total, b.ints(0)), b.ints(3))
        q = b.op("Unsqueeze", b.op("Range", p, total, b.int(1)), b.ints(1))
        k = b.op("Unsqueeze", b.op("Range", b.int(0), total, b.int(1)), b.ints(0))
        seen = b.op("LessOrEqual", k, q)
        if self.window:
            near = b.op("Greater", k, b.op("Sub", q, b.int(self.window)))
            seen = b.op("And", seen, near)
        real = b.op("Cast", b.op("Unsqueeze", "attention_mask", b.ints(1, 2)), to=BOOL)
        return b.op("And", b.op("Unsqueeze", seen, b.ints(0, 1)), real)

    def past_name(self, layer, part):
        return self.names[part] % layer

    def present(self, layer, part):
        return "present.%d.%s" % (layer, "kv"[part])

    def append(self, x, layer, part):
        """[1, heads, S, dim] -> [1, heads, P + S, dim], which is an output."""
        if not self.past:
            return x
        name = self.present(layer, part)
        self.b.nodes.append(node("Concat", [self.past_name(layer, part), x], [name], axis=-2))
        return name

    def repeat(self, x):
        """Grouped queries: [1, kv heads, T, dim] -> [1, heads, T, dim]."""
        b, group = self.b, self.heads // self.kv_heads
        if group == 1:
            return x
        if self.style == "tables":
            return b.op("Unsqueeze", x, b.ints(2))
        t = b.size(x, 2)
        wide = b.op("Expand", b.op("Unsqueeze", x, b.ints(2)),
                    b.list(1, self.kv_heads, group, t, self.dim))
        return b.op("Reshape", wide, b.list(1, self.heads, t, self.dim))

    def attention(self, x, layer, tables, mask):
        b, blk = self.b, "blk.%d." % layer
        if self.style == "contrib":
            names = [blk + n + ".weight" for n in ("attn_q", "attn_k", "attn_v")]
            qkv = [self.linear(x, *names), "", ""] if self.packed else \
                  [self.linear(x, n) for n in names]
            past = [self.past_name(layer, i) if self.past else "" for i in (0, 1)]
            out = "attn.%d" % layer
            self.b.nodes.append(node(
                "GroupQueryAttention", [*qkv, *past, "seqlens", "total", *tables],
                [out, self.present(layer, 0), self.present(layer, 1)], "com.microsoft",
                num_heads=self.heads, kv_num_heads=self.kv_heads, do_rotary=1,
                local_window_size=self.window or -1, softcap=float(self.softcap)))
            return self.linear(out, blk + "attn_output.weight")
        s = b.size(x, 1)
        if self.style == "fused":
            return self.fused_attention(x, s, layer, mask)
        if self.style == "multihead":
            return self.multi_head(x, s, layer, tables, mask)
        parts = []
        for name, heads in (("attn_q", self.heads), ("attn_k", self.kv_heads),
                            ("attn_v", self.kv_heads)):
            y = self.linear(x, blk + name + ".weight")
            y = b.op("Reshape", y, b.list(1, s, heads, self.dim))
            parts.append(b.op("Transpose", y, perm=[0, 2, 1, 3]))
        q, k, v = parts
        q, k = self.rope(q, tables, self.heads), self.rope(k, tables, self.kv_heads)
        k, v = self.append(k, layer, 0), self.append(v, layer, 1)
        k, v = self.repeat(k), self.repeat(v)
        scale = self.dim ** -0.5
        if self.style == "opset23":
            y = b.op("Attention", q, k, v, mask, scale=scale, softcap=float(self.softcap))
        else:
            grouped = self.style == "tables" and self.heads != self.kv_heads
            if grouped:
                q = b.op("Reshape", q, b.list(1, self.kv_heads, self.heads // self.kv_heads, s,
                                              self.dim))
            axes = [0, 1, 2, 4, 3] if grouped else [0, 1, 3, 2]
            k = b.op("Transpose", k, perm=axes)
            if self.style == "primitive":
                q, k = (b.op("Mul", v_, b.number(scale ** 0.5)) for v_ in (q, k))
                scores = b.op("MatMul", q, k)
            else:
                scores = b.op("Div", b.op("MatMul", q, k), b.number(1 / scale))
            if self.softcap:
                scores = b.op("Div", scores, b.number(self.softcap))
                scores = b.op("Mul", b.op("Tanh", scores), b.number(self.softcap))
            if self.style == "primitive":
                scores = b.op("Where", mask, scores, b.number(-math.inf))
            else:
                scores = b.op("Add", scores, mask)
            y = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
            if grouped:
                y = b.op("Reshape", y, b.list(1, self.heads, s, self.dim))
        y = b.op("Transpose", y, perm=[0, 2, 1, 3])
        y = b.op("Reshape", y, b.list(1, s, -1))
        return self.linear(y, blk + "attn_output.weight")

    def fused_attention(self, x, s, layer, mask):
        """One past holds keys and values side by side: [1, P, 2 dim]."""
        b, blk = self.b, "blk.%d." % layer
        q = self.linear(x, blk + "attn_q.weight")
        q = b.op("Transpose", b.op("Reshape", q, b.list(1, s, self.heads, self.dim)),
                 perm=[0, 2, 1, 3])
        kv = self.linear(x, blk + "attn_k.weight", blk + "attn_v.weight")
        name = self.present(layer, 0)
        b.nodes.append(node("Concat", ["past.%d.key_value" % layer, kv], [name], axis=1))
        k, v = b.op("Split", name, b.ints(self.dim, self.dim), outputs=2, axis=2)
        k, v = (b.op("Unsqueeze", t, b.ints(1)) for t in (k, v))
        scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = b.op("Where", mask, b.op("Mul", scores, b.number(self.dim ** -0.5)),
                      b.number(-math.inf))
        y = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
        y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.list(1, s, -1))
        return self.linear(y, blk + "attn_output.weight")

    def multi_head(self, x, s, layer, tables, mask):
        """MultiHeadAttention has no groups: there must be as many key heads as query heads."""
        b, blk = self.b, "blk.%d." % layer
        assert self.heads == self.kv_heads
        split = lambda t: b.op("Transpose", b.op("Reshape", t, b.list(1, s, self.heads, self.dim)),
                               perm=[0, 2, 1, 3])
        join = lambda t: b.op("Reshape", b.op("Transpose", t, perm=[0, 2, 1, 3]), b.list(1, s, -1))
        q, k, v = (self.linear(x, blk + n + ".weight") for n in ("attn_q", "attn_k", "attn_v"))
        q, k = (join(self.rope(split(t), tables, self.heads)) for t in (q, k))
        hidden = b.op("Where", mask, b.number(0.0), b.number(-1e30))
        out = "attn.%d" % layer
        b.nodes.append(node("MultiHeadAttention", [q, k, v, "", "", hidden,
                                                   *(self.past_name(layer, i) for i in (0, 1))],
                            [out, self.present(layer, 0), self.present(layer, 1)], "com.microsoft",
                            num_heads=self.heads))
        return self.linear(out, blk + "attn_output.weight")

    def mlp(self, x, layer):
        b, blk = self.b, "blk.%d." % layer
        gate = self.linear(x, blk + "ffn_gate.weight")
        up = self.linear(x, blk + "ffn_up.weight")
        if self.style == "tables":  # x / (1 + exp(-x))
            gate = b.op("Div", gate, b.op("Add", b.number(1.0), b.op("Exp", b.op("Neg", gate))))
        else:
            gate = b.op("Mul", gate, b.op("Sigmoid", gate))
        return self.linear(b.op("Mul", gate, up), blk + "ffn_down.weight")

    def run(self):
        opset = {"opset23": 23, "contrib": 20}.get(self.style, 18)
        return model(graph(*self.parts(), name=""), opsets={"": opset, "com.microsoft": 1})

    def parts(self):
        """Nodes, inputs, outputs, initializers."""
        b, (batch, seq, past) = self.b, self.symbols
        total = "%s + %s" % (past, seq) if self.past else seq
        self.inputs.append(value("input_ids", INT64, [batch, seq]))
        self.inputs.append(value("attention_mask", INT64, [batch, total]))
        if self.style != "contrib":
            self.inputs.append(value("position_ids", INT64, [batch, seq]))
        if self.past and self.style == "fused":
            self.inputs += [value("past.%d.key_value" % i, b.dtype, [batch, past, 2 * self.dim])
                            for i in range(self.layers)]
        elif self.past:
            for i in range(self.layers):
                for part in (0, 1):
                    self.inputs.append(value(self.past_name(i, part), b.dtype,
                                             [batch, self.kv_heads, past, self.dim]))
        embedding = self.gguf.tensor("token_embd.weight")
        table = b.weight("e", list(embedding["shape"]), floats(embedding["data"]))
        x = b.op("Gather", table, "input_ids")
        tables = self.positions(table)
        mask = None
        if self.style == "contrib":
            sums = b.op("ReduceSum", "attention_mask", b.ints(1), keepdims=0)
            self.b.nodes.append(node("Cast", [b.op("Sub", sums, b.ints(1))], ["seqlens"], to=INT32))
            self.b.nodes.append(node("Cast", [b.size("attention_mask", 1)], ["total"], to=INT32))
        else:
            mask = self.mask()
        skip = None
        for i in range(self.layers):
            for half, name in ((self.attention, "attn_norm"), (self.mlp, "ffn_norm")):
                w = "blk.%d.%s.weight" % (i, name)
                if self.style == "contrib" and skip:
                    h, _, _, x = b.op("SkipSimplifiedLayerNormalization", x, skip, self.vector(w),
                                      outputs=4, domain="com.microsoft", epsilon=self.eps)
                else:
                    h = self.norm(x, w)
                y = half(h, i, tables, mask) if name == "attn_norm" else half(h, i)
                if self.style == "contrib":
                    skip = y
                else:
                    x = b.op("Add", *((x, y) if self.style == "primitive" else (y, x)))
        if skip:
            x = b.op("SkipSimplifiedLayerNormalization", x, skip,
                     self.vector("output_norm.weight"), domain="com.microsoft", epsilon=self.eps)
        else:
            x = self.norm(x, "output_norm.weight")
        if any(t["name"] == "output.weight" for t in self.gguf.tensors):
            logits = self.linear(x, "output.weight")
        else:
            logits = b.op("MatMul", x, b.op("Transpose", table, perm=[1, 0]))
        self.outputs.append(value(logits, b.dtype))
        if self.past:
            parts = (0,) if self.style == "fused" else (0, 1)
            for i in range(self.layers):
                self.outputs += [value(self.present(i, part), b.dtype) for part in parts
                                 if (i, part) != self.lost]
        if self.shuffle is not None:
            order = random.Random(self.shuffle)
            order.shuffle(self.inputs)
            order.shuffle(self.outputs)
        return b.nodes, self.inputs, self.outputs, b.initializers


def merged(gguf, style, swapped=False):
    """A decoder with a past and one without behind an If, as optimum merges them; `swapped`: the one
    with the past is the else branch."""
    cached, prompt = Exporter(gguf, style), Exporter(gguf, style, past=False)
    nodes, inputs, outputs, initializers = cached.parts()
    branches = [graph(nodes, (), outputs), None]
    other_nodes, _, logits, other_initializers = prompt.parts()
    other_nodes.append(node("Identity", ["empty"], ["nothing"]))
    presents = [value("nothing", FLOAT)] * (len(outputs) - 1)
    branches[1] = graph(other_nodes, (), [*logits, *presents], other_initializers)
    names = ["logits"] + ["out.%d" % i for i in range(1, len(outputs))]
    choice = node("If", ["use_cache_branch"], names, then_branch=branches[swapped],
                  else_branch=branches[not swapped])
    empty = tensor("empty", FLOAT, [1, cached.kv_heads, 0, cached.dim], [])
    return model(graph([choice], [value("use_cache_branch", BOOL, [1]), *inputs],
                       [value(n, FLOAT) for n in names], [*initializers, empty], name=""),
                 opsets={"": 18})


def from_gguf(gguf, style, **options):
    """An ONNX file with the weights (float32) of a fixture of architecture llama."""
    return Exporter(gguf, style, **options).run()
