"""Field reports b3, b4, b12 as graphs of one node, compiled: their results by hand."""

import array
import math
import struct
import unittest

import harness
import onnxwriter as w
from harness import LLMC, LLMC_RUN, succeed
from test_graph import floats, write_npy

CONTRIB = "com.microsoft"


class OneNode(harness.TestCase):
    """A graph of one node whose inputs are given when it runs."""

    def run_node(self, op, inputs, outputs, domain=CONTRIB, constants=(), **attributes):
        """`inputs`: (name, type, shape, values), None where one is left out. The outputs' numbers
        and shapes."""
        given = [i for i in inputs if i is not None]
        names = [i[0] if i else "" for i in inputs]
        model = w.model(
            w.graph([w.node(op, names, outputs, domain, **attributes)],
                    [w.value(n, t, s) for n, t, s, _ in given],
                    [w.value(o, given[0][1]) for o in outputs]),
            opsets={"": 23, CONTRIB: 1})
        source, artifact = self.folder / "m.onnx", self.folder / "m.llmc"
        source.write_bytes(model)
        succeed(LLMC, "compile", source, "-o", artifact, "-q", "--quick")
        arguments = []
        for name, type, shape, values in given:
            descr, pack = {w.FLOAT: ("<f4", "f"), w.FLOAT16: ("<f2", "e"), w.INT32: ("<i4", "i"),
                           w.INT64: ("<i8", "q")}[type]
            path = write_npy(self.folder / (name + ".npy"), descr, shape,
                             struct.pack("<%d%s" % (len(values), pack), *values))
            arguments += ["--input", "%s=%s" % (name, path)]
        out = self.folder / "out"
        succeed(LLMC_RUN, artifact, *arguments, "--output-dir", out)
        results = []
        for name in outputs:
            data = (out / (name + ".npy")).read_bytes()
            length = struct.unpack_from("<H", data, 8)[0]
            header = data[10:10 + length].decode()
            shape = tuple(int(n) for n in header.split("(")[1].split(")")[0].split(",") if n.strip())
            kind = "e" if "<f2" in header else "f"
            body = data[10 + length:]
            results.append((list(struct.unpack("<%d%s" % (len(body) // struct.calcsize(kind), kind),
                                               body)), shape))
        return results


class Norms(OneNode):
    def test_squares_of_halves(self):
        """b3: 64 squares of 20000 are beyond float16."""
        (y, _), = self.run_node("SkipSimplifiedLayerNormalization",
                                [("x", w.FLOAT16, (1, 1, 64), [20000.0] * 64),
                                 ("skip", w.FLOAT16, (1, 1, 64), [0.0] * 64),
                                 ("gamma", w.FLOAT16, (64,), [1.0] * 64)], ["y"], epsilon=1e-6)
        for v in y:
            self.assertAlmostEqual(v, 1, delta=0.001)


class Rotary(OneNode):
    def test_partial_and_interleaved(self):
        """b4: four of eight features, in both orders."""
        for interleaved, want in ((0, [-3, -4, 1, 2, 5, 6, 7, 8]), (1, [-2, 1, -4, 3, 5, 6, 7, 8])):
            inputs = [("x", w.FLOAT, (1, 1, 1, 8), [float(i) for i in range(1, 9)]),
                      ("cos", w.FLOAT, (1, 1, 2), [0.0, 0.0]),
                      ("sin", w.FLOAT, (1, 1, 2), [1.0, 1.0])]
            (y, _), = self.run_node("RotaryEmbedding", inputs, ["y"], domain="",
                                    interleaved=interleaved, rotary_embedding_dim=4)
            self.assertEqual(y, want)


class Attention(OneNode):
    SIZE = 8

    def values(self, numbers):
        """Each number as all features of a position."""
        return [float(n) for n in numbers for _ in range(self.SIZE)]

    def test_keys_and_values_of_another_layer(self):
        """b12: without keys and values the past is all there is: five positions, their mean is 2."""
        past = (1, 1, 5, self.SIZE)
        inputs = [("query", w.FLOAT, (1, 1, self.SIZE), self.values([0])), None, None,
                  ("pk", w.FLOAT, past, self.values([3, 1, 4, 1, 5])),
                  ("pv", w.FLOAT, past, self.values(range(5))),
                  ("last", w.INT32, (1, 1), [4]), ("total", w.INT32, (1,), [5])]
        (y, _), (_, shape) = self.run_node("GroupQueryAttention", inputs, ["y", "k"], num_heads=1,
                                           kv_num_heads=1)
        self.assertEqual(shape, past)
        for v in y:
            self.assertAlmostEqual(v, 2, delta=1e-6)

    def test_packed(self):
        """b12: the query holds keys and values, behind a past of two positions."""
        past = (1, 1, 2, self.SIZE)
        row = lambda value: self.values([0, 0, value])
        inputs = [("query", w.FLOAT, (1, 2, 3 * self.SIZE), row(2) + row(3)), None, None,
                  ("pk", w.FLOAT, past, self.values([7, 7])),
                  ("pv", w.FLOAT, past, self.values([0, 1])),
                  ("last", w.INT32, (1, 1), [3]), ("total", w.INT32, (1,), [4])]
        (y, _), (_, k), (v, _) = self.run_node("GroupQueryAttention", inputs, ["y", "k", "v"],
                                               num_heads=1, kv_num_heads=1)
        self.assertEqual(k, (1, 1, 4, self.SIZE))
        self.assertEqual(v, self.values(range(4)))
        for got, want in zip(y, self.values([1, 1.5])):
            self.assertAlmostEqual(got, want, delta=1e-6)

    def test_windows(self):
        """b5: the window counts the position itself."""
        eight = (1, 8, self.SIZE)
        inputs = [("query", w.FLOAT, eight, self.values([0] * 8)),
                  ("key", w.FLOAT, eight, self.values([0] * 8)),
                  ("value", w.FLOAT, eight, self.values(range(8))), None, None,
                  ("last", w.INT32, (1, 1), [7]), ("total", w.INT32, (1,), [8])]
        (y, _), = self.run_node("GroupQueryAttention", inputs, ["y"], num_heads=1, kv_num_heads=1,
                                local_window_size=4)
        for got, want in zip(y, self.values([0, .5, 1, 1.5, 2.5, 3.5, 4.5, 5.5])):
            self.assertAlmostEqual(got, want, delta=1e-5)

    def test_present_without_past(self):
        """b12: the present is as long as the sequence."""
        four = (1, 1, 4, self.SIZE)
        inputs = [(name, w.FLOAT, four, self.values(numbers))
                  for name, numbers in (("q", [0] * 4), ("k", [0] * 4), ("v", range(4)))]
        (y, _), (_, k), (_, v) = self.run_node("Attention", inputs, ["y", "pk", "pv"], domain="",
                                               is_causal=1)
        self.assertEqual((k, v), (four, four))
        for got, want in zip(y, self.values([0, .5, 1, 1.5])):
            self.assertAlmostEqual(got, want, delta=1e-6)

    def test_multi_head(self):
        """com.microsoft MultiHeadAttention: a bias, a past, a mask of keys."""
        three, past = (1, 1, self.SIZE), (1, 1, 3, self.SIZE)
        inputs = [("q", w.FLOAT, three, self.values([0])), ("k", w.FLOAT, three, self.values([5])),
                  ("v", w.FLOAT, three, self.values([3])),
                  ("bias", w.FLOAT, (3 * self.SIZE,), self.values([0, 1, 2])),
                  ("mask", w.INT32, (1, 4), [1, 0, 1, 1]), None,
                  ("pk", w.FLOAT, past, self.values([0] * 3)),
                  ("pv", w.FLOAT, past, self.values([1, 100, 3]))]
        (y, _), (_, k), _ = self.run_node("MultiHeadAttention", inputs, ["y", "pkey", "pvalue"],
                                            num_heads=1)
        self.assertEqual(k, (1, 1, 4, self.SIZE))
        for v in y:
            self.assertAlmostEqual(v, (1 + 3 + 5) / 3, delta=1e-6)

    def test_sinks_are_refused(self):
        inputs = [w.value("q", w.FLOAT, [1, 1, 24]), w.value("sink", w.FLOAT, [1]),
                  w.value("last", w.INT32, [1, 1]), w.value("total", w.INT32, [1])]
        node = w.node("GroupQueryAttention",
                      ["q", "", "", "", "", "last", "total", "", "", "", "", "sink"], ["y"], CONTRIB,
                      num_heads=1, kv_num_heads=1)
        source = self.folder / "m.onnx"
        source.write_bytes(w.model(w.graph([node], inputs, [w.value("y", w.FLOAT)]),
                                   opsets={"": 23, CONTRIB: 1}))
        self.assertRefused(harness.run(LLMC, "compile", source, "-q"), "sinks", "not supported")


if __name__ == "__main__":
    unittest.main()
