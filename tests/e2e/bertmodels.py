"""Tiny BERT-like sentence encoders as ONNX files; Python's standard library only.

    bertmodels.py OUT.onnx [FORM] [POOLING]

FORM is one of FORMS, POOLING of POOLINGS (what the second output is; by default there is none).
"""

import pathlib
import random
import sys

from onnxwriter import *

VOCABULARY, WIDTH, HEADS, MLP, LAYERS, POSITIONS = 48, 32, 2, 64, 2, 64
FORMS = ("torch", "dynamo", "int8", "dynamic")
POOLINGS = ("mean", "mean-normalized", "cls")


class Builder:
    """`form`: how the graph is written down. torch: masks by arithmetic, as torch's first exporter
    has them; dynamo: masks by Where, the scale split over queries and keys; int8: weights as codes,
    scales and casts; dynamic: onnxruntime's dynamic quantization."""

    def __init__(self, form, pooling):
        self.form, self.pooling = form, pooling
        self.random = random.Random(5)
        self.nodes, self.initializers, self.count = [], [], 0

    def op(self, op, *inputs, domain="", outputs=1, **attributes):
        self.count += 1
        names = ["v%d_%d" % (self.count, i) for i in range(outputs)]
        self.nodes.append(node(op, list(inputs), names, domain=domain, name="n%d" % self.count,
                               **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, type, dims, values):
        self.count += 1
        self.initializers.append(tensor("c%d" % self.count, type, dims, values))
        return "c%d" % self.count

    def number(self, x):
        return self.constant(FLOAT, [], [x])

    def integers(self, *values):
        return self.constant(INT64, [len(values)], list(values))

    def floats(self, *dims, spread=1.0, center=0.0):
        size = 1
        for d in dims:
            size *= d
        return self.constant(FLOAT, list(dims),
                             [self.random.gauss(center, spread) for _ in range(size)])

    def table(self, rows, columns):
        """[rows, columns], a scale per row where weights are codes."""
        if self.form != "int8":
            return self.floats(rows, columns)
        codes = [self.random.randint(-127, 127) for _ in range(rows * columns)]
        scales = [self.random.uniform(0.01, 0.03) for _ in range(rows)]
        cast = self.op("Cast", self.constant(INT8, [rows, columns], codes), to=FLOAT)
        return self.op("Mul", cast, self.constant(FLOAT, [rows, 1], scales))

    def linear(self, x, rows, columns):
        bias = self.floats(columns, spread=0.1)
        if self.form == "dynamic":
            product = self.dynamic_product(x, rows, columns)
        elif self.form == "int8":
            codes = [self.random.randint(-127, 127) for _ in range(rows * columns)]
            scales = [self.random.uniform(0.5, 1) * 2 / 127 / rows ** 0.5 for _ in range(columns)]
            cast = self.op("Cast", self.constant(INT8, [rows, columns], codes), to=FLOAT)
            product = self.op("MatMul", x, self.op("Mul", cast, self.constant(FLOAT, [1, columns],
                                                                              scales)))
        else:
            product = self.op("MatMul", x, self.floats(rows, columns, spread=rows ** -0.5))
        return self.op("Add", bias, product)

    def dynamic_product(self, x, rows, columns):
        codes = [self.random.randint(0, 255) for _ in range(rows * columns)]
        weight = self.constant(UINT8, [rows, columns], codes)
        zero = self.constant(UINT8, [], [self.random.randint(120, 136)])
        scale = self.number(2 / 127 / rows ** 0.5)
        quantized, x_scale, x_zero = self.op("DynamicQuantizeLinear", x, outputs=3)
        product = self.op("MatMulInteger", quantized, weight, x_zero, zero)
        return self.op("Mul", self.op("Cast", product, to=FLOAT), self.op("Mul", x_scale, scale))

    def norm(self, x):
        return self.op("LayerNormalization", x, self.floats(WIDTH, spread=0.1, center=1),
                       self.floats(WIDTH, spread=0.1), axis=-1, epsilon=1e-12)

    def heads(self, x, shape, perm):
        return self.op("Transpose", self.op("Reshape", x, shape), perm=perm)

    def attention(self, x, mask):
        split = self.integers(0, -1, HEADS, WIDTH // HEADS)
        q, k, v = (self.linear(x, WIDTH, WIDTH) for _ in range(3))
        q, v = self.heads(q, split, [0, 2, 1, 3]), self.heads(v, split, [0, 2, 1, 3])
        k = self.heads(k, split, [0, 2, 3, 1])
        scale = (WIDTH / HEADS) ** -0.5
        if self.form == "dynamo":
            q, k = (self.op("Mul", y, self.number(scale ** 0.5)) for y in (q, k))
            scores = self.op("MatMul", q, k)
        else:
            scores = self.op("Div", self.op("MatMul", q, k), self.number(1 / scale))
        p = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        if self.form == "dynamo":
            p = self.op("Where", self.op("IsNaN", p), self.number(0.0), p)
        y = self.op("Transpose", self.op("MatMul", p, v), perm=[0, 2, 1, 3])
        return self.linear(self.op("Reshape", y, self.integers(0, -1, WIDTH)), WIDTH, WIDTH)

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.number(2 ** 0.5)))
        y = self.op("Mul", x, self.op("Add", erf, self.number(1.0)))
        return self.op("Mul", y, self.number(0.5))

    def pooled(self, x):
        if self.pooling == "cls":
            return self.op("Gather", x, self.constant(INT64, [], [0]), axis=1)
        mask = self.op("Cast", self.op("Unsqueeze", "attention_mask", self.integers(-1)), to=FLOAT)
        mask = self.op("Expand", mask, self.op("Shape", x))
        total = self.op("ReduceSum", self.op("Mul", x, mask), self.integers(1), keepdims=0)
        count = self.op("Clip", self.op("ReduceSum", mask, self.integers(1), keepdims=0),
                        self.number(1e-9))
        mean = self.op("Div", total, count)
        if self.pooling == "mean":
            return mean
        length = self.op("ReduceL2", mean, axes=[1], keepdims=1)
        return self.op("Div", mean, self.op("Expand", self.op("Clip", length, self.number(1e-12)),
                                            self.op("Shape", mean)))

    def build(self):
        visible = self.op("Unsqueeze", "attention_mask", self.integers(1, 2))
        if self.form == "dynamo":
            mask = self.op("Where", self.op("Cast", visible, to=BOOL), self.number(0.0),
                           self.number(-3.4e38))
        else:
            hidden = self.op("Sub", self.number(1.0), self.op("Cast", visible, to=FLOAT))
            mask = self.op("Mul", hidden, self.number(-3.4e38))
        words = self.op("Gather", self.table(VOCABULARY, WIDTH), "input_ids")
        types = self.op("Gather", self.floats(2, WIDTH), "token_type_ids")
        places = self.op("Slice", self.constant(INT64, [1, POSITIONS], list(range(POSITIONS))),
                         self.integers(0), self.op("Shape", "input_ids", start=1, end=2),
                         self.integers(1))
        places = self.op("Gather", self.table(POSITIONS, WIDTH), places)
        x = self.norm(self.op("Add", self.op("Add", words, types), places))
        for _ in range(LAYERS):
            x = self.norm(self.op("Add", self.attention(x, mask), x))
            y = self.gelu(self.linear(x, WIDTH, MLP))
            x = self.norm(self.op("Add", self.linear(y, MLP, WIDTH), x))
        outputs = [value(x, FLOAT)]
        if self.pooling:
            outputs.append(value(self.pooled(x), FLOAT))
        inputs = [value(name, INT64, ["batch", "sequence"])
                  for name in ("input_ids", "attention_mask", "token_type_ids")]
        return model(graph(self.nodes, inputs, outputs, self.initializers), opsets={"": 17})


def bert(form="torch", pooling=None):
    """The bytes of the file. Weights are the same in every form that has them as floats."""
    return Builder(form, pooling).build()


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_bytes(bert(*sys.argv[2:]))
