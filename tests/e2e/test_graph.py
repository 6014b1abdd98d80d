"""Graphs of tensors, from ONNX files: llmc compile, llmc-run --input, the C interface."""

import array
import ctypes
import math
import pathlib
import struct
import unittest

import harness
import onnxwriter as onnx
from harness import LLMC, LLMC_RUN, run, succeed


def write_npy(path, descr, shape, data):
    """An .npy file of format 1.0."""
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, tuple(shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                                   header.encode() + data)
    return path


def floats(values):
    return array.array("f", values).tobytes()


def noise(count, seed):
    """Numbers in [-1, 1) that look random."""
    state, values = seed, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        values.append(state / 2**30 - 1)
    return values


ROWS, FEATURES, CLASSES = 3, 40, 50  # the matrix is larger than a constant inside the code
WEIGHT = [struct.unpack("<f", struct.pack("<f", v))[0] for v in noise(FEATURES * CLASSES, 1)]
X = noise(ROWS * FEATURES, 2)


def classifier(rows=ROWS):
    """y = softmax(x W + 1), m = which is largest."""
    weight = onnx.tensor("w", onnx.FLOAT, [FEATURES, CLASSES], floats(WEIGHT))
    one = onnx.tensor("one", onnx.FLOAT, [], floats([1]))
    nodes = [onnx.node("MatMul", ["x", "w"], ["p"]), onnx.node("Add", ["p", "one"], ["q"]),
             onnx.node("Softmax", ["q"], ["y"], axis=-1),
             onnx.node("ArgMax", ["y"], ["m"], axis=1, keepdims=0)]
    return onnx.model(onnx.graph(nodes, [onnx.value("x", onnx.FLOAT, [rows, FEATURES])],
                                 [onnx.value("y", onnx.FLOAT), onnx.value("m", onnx.INT64)],
                                 [weight, one]))


def expected():
    result = []
    for r in range(ROWS):
        row = [1 + sum(X[r * FEATURES + k] * WEIGHT[k * CLASSES + c] for k in range(FEATURES))
               for c in range(CLASSES)]
        e = [math.exp(v - max(row)) for v in row]
        result.append([v / sum(e) for v in e])
    return result


class Graph(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.onnx = self.folder / "m.onnx"
        self.artifact = self.folder / "m.llmc"
        self.x = write_npy(self.folder / "x.npy", "<f4", (ROWS, FEATURES), floats(X))

    def compile(self, data, *arguments):
        self.onnx.write_bytes(data)
        succeed(LLMC, "compile", self.onnx, "-o", self.artifact, "-q", *arguments)

    def outputs(self, *arguments):
        out = self.folder / "out"
        succeed(LLMC_RUN, self.artifact, "--input", "x=%s" % self.x, "--output-dir", out,
                *arguments)
        return (out / "y.npy").read_bytes(), (out / "m.npy").read_bytes()

    def check(self, y, m):
        want = expected()
        values = array.array("f", y[-4 * ROWS * CLASSES:])
        for r, row in enumerate(want):
            for c, v in enumerate(row):
                self.assertAlmostEqual(values[r * CLASSES + c], v, delta=1e-5 * v + 1e-7)
        self.assertEqual(list(array.array("q", m[-8 * ROWS:])),
                         [harness.argmax(row) for row in want])

    def test_runs_with_the_same_bits_on_any_number_of_threads(self):
        self.compile(classifier())
        one = self.outputs("--threads", "1")
        self.check(*one)
        self.assertEqual(one, self.outputs("--threads", "2"))
        self.assertEqual(one, self.outputs("--threads", "7"))

    def test_code_that_was_compiled_fast_is_right_too(self):
        self.compile(classifier(), "--quick", "--target", "x86-64-v3")
        self.check(*self.outputs())

    def test_open_sizes_are_given(self):
        self.onnx.write_bytes(classifier(rows="rows"))
        self.assertRefused(run(LLMC, "compile", self.onnx, "-o", self.artifact, "-q"), "'x'",
                           "[rows, 40]", "--shape x=")
        self.compile(classifier(rows="rows"), "--shape", "x=%dx%d" % (ROWS, FEATURES))
        self.check(*self.outputs())
        for wrong in ("x=3x41", "x=3", "z=3x40", "x=ax40"):
            self.assertRefused(run(LLMC, "compile", self.onnx, "-q", "--shape", wrong), "shape")

    def test_an_input_can_be_made_a_constant(self):
        nodes = [onnx.node("ReduceSum", ["x", "axes"], ["t"], keepdims=0),
                 onnx.node("Identity", ["t"], ["y"]), onnx.node("Identity", ["axes"], ["m"])]
        data = onnx.model(onnx.graph(
            nodes, [onnx.value("x", onnx.FLOAT, [ROWS, FEATURES]),
                    onnx.value("axes", onnx.INT64, [1])],
            [onnx.value("y", onnx.FLOAT), onnx.value("m", onnx.INT64)]))
        self.onnx.write_bytes(data)
        self.assertRefused(run(LLMC, "compile", self.onnx, "-q"), "ReduceSum", "--set axes=FILE.pb")
        axes = self.folder / "axes.pb"
        axes.write_bytes(onnx.tensor("any", onnx.INT64, [1], [1]))
        self.compile(data, "--set", "axes=%s" % axes)
        y, m = self.outputs()
        sums = array.array("f", y[-4 * ROWS:])
        for r in range(ROWS):
            self.assertAlmostEqual(sums[r], sum(X[r * FEATURES:(r + 1) * FEATURES]), delta=1e-4)
        self.assertEqual(list(array.array("q", m[-8:])), [1])
        axes.write_bytes(onnx.tensor("any", onnx.INT64, [2], [0, 1]))
        self.assertRefused(run(LLMC, "compile", self.onnx, "-q", "--set", "axes=%s" % axes),
                           "axes.pb", "shape")

    def test_all_operators_without_code_are_named_at_once(self):
        nodes = [onnx.node("GridSample", ["x", "x"], ["a"]), onnx.node("Det", ["x"], ["b"]),
                 onnx.node("Det", ["x"], ["c"]), onnx.node("Relu", ["x"], ["d"])]
        self.onnx.write_bytes(onnx.model(onnx.graph(
            nodes, [onnx.value("x", onnx.FLOAT, [2, 2])],
            [onnx.value(n, onnx.FLOAT) for n in "abcd"])))
        self.assertRefused(run(LLMC, "compile", self.onnx, "-q"), "2 operators", "Det (2 nodes",
                           "GridSample (1 node")

    def test_wrong_inputs_are_refused(self):
        self.compile(classifier())
        out = ("--output-dir", self.folder / "out")
        refuse = lambda arguments, *texts: self.assertRefused(
            run(LLMC_RUN, self.artifact, *arguments), *texts, program="llmc-run: ")
        name = "x=%s" % self.x
        refuse(out, "'x'", "float [3, 40]", "missing")
        refuse(("--input", name), "--output-dir")
        refuse(("--input", "z=%s" % self.x, *out), "no input 'z'", "x: float [3, 40]")
        refuse(("--input", "x", *out), "NAME=FILE")
        refuse(("--input", "x=nowhere.npy", *out), "nowhere.npy")
        write_npy(self.x, "<f4", (FEATURES, ROWS), floats(X))
        refuse(("--input", name, *out), "float [40, 3]", "float [3, 40]")
        write_npy(self.x, "<i4", (ROWS, FEATURES), floats(X))
        refuse(("--input", name, *out), "'<i4'", "'<f4'")
        write_npy(self.x, "<f4", (ROWS, FEATURES), floats(X)[:-1])
        refuse(("--input", name, *out), "truncated")
        write_npy(self.x, "<f4", (2**40, 2**40), b"")
        refuse(("--input", name, *out), "larger than any memory")
        pathlib.Path(self.x).write_bytes(b"PK\x03\x04 something else")
        refuse(("--input", name, *out), "no .npy file")
        refuse(("-p", "Hello"), "tokenizer")
        refuse(("--tokens", "1,2"), "--input")

    def test_inspect_names_the_ports(self):
        self.compile(classifier())
        report = succeed(LLMC, "inspect", "--json", self.artifact).json
        self.assertEqual(report["model"]["kind"], "graph")
        self.assertEqual([(p["port"], p["name"], p["element"], p["shape"])
                          for p in report["ports"]],
                         [("input", "x", "float", [ROWS, FEATURES]),
                          ("output", "y", "float", [ROWS, CLASSES]),
                          ("output", "m", "int64", [ROWS])])

    def test_c_interface(self):
        self.compile(classifier())
        library = harness._library()

        class Info(ctypes.Structure):
            _fields_ = [("name", ctypes.c_char_p), ("element", ctypes.c_char_p),
                        ("shape", ctypes.POINTER(ctypes.c_uint64)), ("rank", ctypes.c_size_t),
                        ("bytes", ctypes.c_size_t), ("data", ctypes.c_void_p)]
        model = self.load(self.artifact)
        self.assertEqual(library.llmc_model_is_graph(model._handle), 1)
        graph = ctypes.c_void_p()
        harness._check(library.llmc_graph_create(model._handle, 2, ctypes.byref(graph)))
        self.addCleanup(library.llmc_graph_free, graph)
        library.llmc_graph_input_count.restype = ctypes.c_size_t
        library.llmc_graph_output_count.restype = ctypes.c_size_t
        self.assertEqual(library.llmc_graph_input_count(graph), 1)
        self.assertEqual(library.llmc_graph_output_count(graph), 2)
        data = floats(X)
        self.assertNotEqual(library.llmc_graph_set_input(graph, b"x", data,
                                                         ctypes.c_size_t(len(data) - 1)), 0)
        self.assertIn(b"float [3, 40]", library.llmc_last_error())
        harness._check(library.llmc_graph_set_input(graph, b"x", data,
                                                    ctypes.c_size_t(len(data))))
        harness._check(library.llmc_graph_run(graph))
        got = []
        for i in range(2):
            info = Info()
            harness._check(library.llmc_graph_output(graph, ctypes.c_size_t(i),
                                                     ctypes.byref(info)))
            got.append(ctypes.string_at(info.data, info.bytes))
        self.check(*got)
        self.assertNotEqual(library.llmc_graph_output(graph, ctypes.c_size_t(2),
                                                      ctypes.byref(Info())), 0)


if __name__ == "__main__":
    unittest.main()
