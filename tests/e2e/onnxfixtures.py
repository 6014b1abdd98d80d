"""Small ONNX files, for unit tests; Python's standard library only.

    onnxfixtures.py FOLDER

writes graphs/*.onnx, refused/*.onnx with refused.json (what the message of each must say), and
folded/*.onnx: graphs of constants, whose output `y` must equal their initializer `want`; and
models/*.onnx beside models/rand.gguf, which has the same weights.
"""

import json
import math
import pathlib
import sys

import fixtures
from onnxmodels import from_gguf
from onnxwriter import *


def chain_of_shapes():
    """Shape arithmetic as exporters write it: the target of a Reshape from pieces of a shape."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Constant", [], ["zero"], value=tensor("", INT64, [], [0])),
        node("Constant", [], ["one"], value=tensor("", INT64, [], [1])),
        node("Gather", ["s", "zero"], ["b"], axis=0),
        node("Gather", ["s", "one"], ["n"], axis=0),
        node("Shape", ["past"], ["ps"]),
        node("Constant", [], ["two"], value=tensor("", INT64, [], [2])),
        node("Gather", ["ps", "two"], ["p"], axis=0),
        node("Add", ["p", "n"], ["total"]),
        node("Constant", [], ["axes"], value=tensor("", INT64, [1], [0])),
        node("Unsqueeze", ["b", "axes"], ["b1"]),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Constant", [], ["rest"], value=tensor("", INT64, [2], [-1, 4])),
        node("Concat", ["b1", "n1", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
        # Expand as torch writes it: -1 means "as it is".
        node("Shape", ["target"], ["ts"]),
        node("ConstantOfShape", ["ts"], ["ones"], value=tensor("", INT64, [1], [1])),
        node("Constant", [], ["minus"], value=tensor("", INT64, [], [-1])),
        node("Mul", ["ones", "minus"], ["minuses"]),
        node("Equal", ["target", "minuses"], ["open"]),
        node("Where", ["open", "ones", "target"], ["where"]),
        node("Expand", ["y", "where"], ["z"]),
        node("Unsqueeze", ["total", "axes"], ["t1"]),
        node("ConstantOfShape", ["t1"], ["row"]),
    ]
    return model(graph(nodes, [value("x", FLOAT, ["batch", "seq", 12]),
                               value("past", FLOAT, ["batch", 2, "past", 4])],
                       [value("z", FLOAT), value("row", FLOAT)]))


def with_function():
    """A function that is called twice, with a default, and that calls another."""
    inner = function("Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"], name="add")])
    outer = function(
        "Shift", ["a", "unused"], ["c"],
        [node("Twice", ["a"], ["t"], domain="local", name="twice"),
         node("Constant", [], ["k"], value_float=Reference("by", 1)),
         node("Add", ["t", "k"], ["c"], name="shift")], defaults={"by": 10.0},
        opsets={"": 18, "local": 1})
    nodes = [node("Shift", ["x"], ["u"], domain="local", name="first"),
             node("Shift", ["u"], ["y"], domain="local", name="second", by=100.0)]
    return model(graph(nodes, [], [value("y", FLOAT)],
                       [tensor("x", FLOAT, [2], [1.0, 2.0]),
                        tensor("want", FLOAT, [2], [124.0, 128.0])]),
                 opsets={"": 18, "local": 1}, functions=[inner, outer])


def graphs():
    x = value("x", FLOAT, ["n", 4])
    y = value("y", FLOAT)
    plain = graph([node("Relu", ["x"], ["y"], name="/a::b/Relu")], [x], [y], name="")
    return {
        "shapes": chain_of_shapes(),
        "plain": model(plain),
        "versions": model(graph(
            [node("Squeeze", ["x"], ["y"], axes=[1])], [value("x", FLOAT, ["n", 1, 3])], [y]),
            opsets={"ai.onnx": 11}),
        "initializer-is-input": model(graph(
            [node("Add", ["x", "w"], ["y"])], [x, value("w", FLOAT, [4])], [y],
            [tensor("w", FLOAT, [4], [1.0, 2.0, 3.0, 4.0])])),
        "subgraph": model(graph(
            [node("If", ["c"], ["y"], then_branch=graph([node("Relu", ["x"], ["t"])], [],
                                                        [value("t", FLOAT)]),
                  else_branch=graph([node("Neg", ["x"], ["e"])], [], [value("e", FLOAT)]))],
            [x, value("c", BOOL, [])], [y])),
        "unsupported": model(graph(
            [node("Foo", ["x"], ["a"], name="n/1"), node("Foo", ["a"], ["b"], name="n/2"),
             node("Bar", ["b"], ["c"], domain="my.domain", name="n::3"),
             node("Relu", ["c"], ["d"]), node("Baz", ["d"], ["y"])], [x], [y])),
    }


def refused():
    """name: (bytes, texts that the message must have)."""
    x, y = value("x", FLOAT, [4]), value("y", FLOAT)
    good = model(graph([node("Relu", ["x"], ["y"])], [x], [y],
                       [tensor("w", FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0])]))

    def with_tensor(t):
        return model(graph([node("Relu", ["x"], ["y"])], [x], [y], [t]))

    def external(location, **more):
        return with_tensor(tensor("w", FLOAT, [2], external={"location": location, **more}))

    def with_nodes(*nodes, **more):
        return model(graph(list(nodes), [x], [y]), **more)

    recursive = function("F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="local")])
    files = {
        "cut": (good[:-7], ["damaged"]),
        "cut-in-graph": (good[:40], ["damaged"]),
        "no-graph": (field(1, 8) + field(2, "me"), ["no graph"]),
        "text": (b"this is no model at all", ["no ONNX file"]),
        "empty": (b"", ["no graph"]),
        "negative-dim": (with_tensor(tensor("w", FLOAT, [-2, 2], [1.0])), ["'w'", "negative"]),
        "huge-dims": (with_tensor(tensor("w", FLOAT, [1 << 40, 1 << 40], [1.0])),
                      ["'w'", "more elements"]),
        "zero-and-huge": (with_tensor(tensor("w", FLOAT, [0, 1 << 40, 1 << 40], b"")),
                          ["'w'", "more elements"]),
        "short-data": (with_tensor(tensor("w", FLOAT, [3], [1.0])), ["'w'", "4 bytes", "12"]),
        "type-99": (with_tensor(tensor("w", 99, [1], b"1234")), ["'w'", "99"]),
        "wrong-numbers": (with_tensor(field(1, 1) + field(2, FLOAT) + field(8, "w") + field(7, 1)),
                          ["'w'", "other numbers"]),
        "parent-path": (external("../../etc/hostname"), ["leaves"]),
        "hidden-parent-path": (external("sub/../../hostname"), ["leaves"]),
        "absolute-path": (external("/etc/hostname"), ["absolute"]),
        "no-location": (with_tensor(tensor("w", FLOAT, [2], external={"offset": 0})),
                        ["location"]),
        "missing-data": (external("no-such.data"), ["no-such.data"]),
        "folder-as-data": (external("."), ["external data '.'"]),
        "past-the-end": (external("eight.data", offset=4), ["'w'", "8"]),
        "offset-is-text": (external("eight.data", offset="x"), ["'w'", "no number"]),
        "offset-overflow": (external("eight.data", offset=(1 << 64) - 4), ["'w'"]),
        "wrong-length": (external("eight.data", length=4), ["'w'", "4", "8"]),
        "unknown-input": (with_nodes(node("Relu", ["nothing"], ["y"], name="r")),
                          ["'r'", "'nothing'"]),
        "used-before-computed": (with_nodes(node("Relu", ["z"], ["y"]), node("Neg", ["x"], ["z"])),
                                 ["'z'"]),
        "computed-twice": (with_nodes(node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])),
                           ["'y'", "twice"]),
        "no-output": (with_nodes(node("Relu", ["x"], ["z"])), ["'y'"]),
        "recursive-function": (with_nodes(node("F", ["x"], ["y"], domain="local"),
                                          functions=[recursive]), ["deep"]),
        "bad-axis": (with_nodes(node("Concat", ["x", "x"], ["y"], axis=3, name="c")),
                     ["'c'", "axis 3"]),
        "bad-shapes": (model(graph([node("Add", ["x", "w"], ["y"], name="a")], [x], [y],
                                   [tensor("w", FLOAT, [3], [1.0] * 3)])), ["'a'", "[4]", "[3]"]),
    }
    deep = graph([node("Relu", ["x"], ["y"])], [], [y])
    for _ in range(40):
        deep = graph([node("If", ["x"], ["y"], then_branch=deep)], [], [y])
    files["deep-graphs"] = (model(graph([node("If", ["x"], ["y"], then_branch=deep)], [x], [y])),
                            ["deep"])
    return files


def folded():
    """Graphs whose output `y` must equal `want`."""

    def case(nodes, inputs, want, opset=18, domain=None):
        opsets = {"": opset}
        if domain:
            opsets[domain] = 1
        return model(graph(nodes, [], [value("y", FLOAT)], inputs + [want]), opsets=opsets)

    def unary(op, type, values, want, want_type=None, opset=18, **attributes):
        return case([node(op, ["x"], ["y"], **attributes)],
                    [tensor("x", type, [len(values)], values)],
                    tensor("want", want_type or type, [len(want)], want), opset)

    def binary(op, type, a, b, want, want_type=None, **attributes):
        return case([node(op, ["a", "b"], ["y"], **attributes)],
                    [tensor("a", type, [len(a)], a), tensor("b", type, [len(b)], b)],
                    tensor("want", want_type or type, [len(want)], want))

    f6 = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    m23 = tensor("x", FLOAT, [2, 3], f6)

    def moved(op, want_dims, want, extra=(), opset=18, **attributes):
        names = ["x"] + ["i%d" % i for i in range(len(extra))]
        inputs = [tensor(n, INT64, [len(v)], v) for n, v in zip(names[1:], extra)]
        return case([node(op, names, ["y"], **attributes)], [m23] + inputs,
                    tensor("want", FLOAT, want_dims, want), opset)

    rope_x = [float(i) for i in range(1, 9)]

    def rope(interleaved):
        want = [-2.0, 1.0, -4.0, 3.0] if interleaved else [-3.0, -4.0, 1.0, 2.0]
        return case([node("RotaryEmbedding", ["x", "p", "cos", "sin"], ["y"],
                          domain="com.microsoft", interleaved=interleaved, num_heads=1,
                          rotary_embedding_dim=4)],
                    [tensor("x", FLOAT, [1, 1, 8], rope_x), tensor("p", INT64, [1, 1], [0]),
                     tensor("cos", FLOAT, [1, 2], [0.0, 0.0]),
                     tensor("sin", FLOAT, [1, 2], [1.0, 1.0])],
                    tensor("want", FLOAT, [1, 1, 8], want + rope_x[4:]), domain="com.microsoft")

    e = math.exp
    soft = [e(i) / (e(1) + e(2) + e(3)) for i in (1, 2, 3)]
    flat = [e(i) / sum(e(k) for k in range(1, 7)) for i in range(1, 7)]
    return {
        "add-broadcast": case(
            [node("Add", ["a", "b"], ["y"])],
            [tensor("a", FLOAT, [2, 1], [1.0, 2.0]), tensor("b", FLOAT, [3], [10.0, 20.0, 30.0])],
            tensor("want", FLOAT, [2, 3], [11.0, 21.0, 31.0, 12.0, 22.0, 32.0])),
        "div-truncates": binary("Div", INT64, [7, -7, 7], [2, 2, -2], [3, -3, -3]),
        "div-uint64": binary("Div", UINT64, [(1 << 64) - 2], [2], [(1 << 63) - 1]),
        "mod-floors": binary("Mod", INT64, [-7, 7], [3, -3], [2, -2]),
        "fmod": binary("Mod", FLOAT, [-7.0, 7.0], [3.0, -3.0], [-1.0, 1.0], fmod=1),
        "int8-wraps": binary("Add", INT8, [127], [1], [-128]),
        "less": binary("Less", FLOAT, [1.0, 3.0], [2.0, 2.0], [True, False], BOOL),
        "round-to-even": unary("Round", FLOAT, [0.5, 1.5, -2.5], [0.0, 2.0, -2.0]),
        "erf": unary("Erf", FLOAT, [1.0], [math.erf(1)]),
        "int-abs": unary("Abs", INT64, [-(1 << 62) - 1], [(1 << 62) + 1]),
        "cast-float16": unary("Cast", FLOAT, [1.00048828125, 65520.0], [1.0, math.inf], FLOAT16,
                              to=FLOAT16),
        "cast-bfloat16": case([node("Cast", ["x"], ["y"], to=FLOAT)],
                              [tensor("x", BFLOAT16, [2], [1.5, -3.0])],
                              tensor("want", FLOAT, [2], [1.5, -3.0])),
        "cast-float8": case([node("Cast", ["x"], ["y"], to=FLOAT)],
                            [tensor("x", FLOAT8E4M3FN, [4], [0x38, 0xB8, 0x7E, 0x01])],
                            tensor("want", FLOAT, [4], [1.0, -1.0, 448.0, 2.0 ** -9])),
        "cast-to-float8": case([node("Cast", ["x"], ["y"], to=FLOAT8E4M3FN)],
                               [tensor("x", FLOAT, [4], [1.0, 1000.0, 0.0009765625, 17.0])],
                               tensor("want", FLOAT8E4M3FN, [4], [0x38, 0x7E, 0, 0x58])),
        "cast-float8e5m2": case([node("Cast", ["x"], ["y"], to=FLOAT)],
                                [tensor("x", FLOAT8E5M2, [3], [0x3C, 0x7B, 0x7C])],
                                tensor("want", FLOAT, [3], [1.0, 57344.0, math.inf])),
        "int4": case([node("Cast", ["x"], ["y"], to=INT32)],
                     [tensor("x", INT4, [3], [-8, 7, -1])],
                     tensor("want", INT32, [3], [-8, 7, -1])),
        "uint4": case([node("Cast", ["x"], ["y"], to=INT32)],
                      [tensor("x", UINT4, [3], [0, 15, 9])],
                      tensor("want", INT32, [3], [0, 15, 9])),
        "int4-int32-data": case(
            [node("Cast", ["x"], ["y"], to=INT32)],
            [field(1, 3) + field(2, INT4) + field(8, "x") + field(5, varint(0x78) + varint(0x0f))],
            tensor("want", INT32, [3], [-8, 7, -1])),
        "float16-int32-data": case(
            [node("Cast", ["x"], ["y"], to=FLOAT)],
            [field(1, 2) + field(2, FLOAT16) + field(8, "x") + field(5, 0x3c00) +
             field(5, 0xc000)],
            tensor("want", FLOAT, [2], [1.0, -2.0])),
        "float-data-scattered": case(
            [node("Neg", ["x"], ["y"])],
            [field(1, 3) + field(2, FLOAT) + field(8, "x") + field(4, struct.pack("<ff", 1, 2)) +
             field(4, 3.0)], tensor("want", FLOAT, [3], [-1.0, -2.0, -3.0])),
        "external": case([node("Neg", ["x"], ["y"])],
                         [tensor("x", FLOAT, [1], external={"location": "eight.data", "offset": 4,
                                                            "length": 4})],
                         tensor("want", FLOAT, [1], [-2.0])),
        "transpose": moved("Transpose", [3, 2], [1.0, 4.0, 2.0, 5.0, 3.0, 6.0], perm=[1, 0]),
        "slice-back": moved("Slice", [2, 2], [3.0, 1.0, 6.0, 4.0], ([-1], [-100], [1], [-2])),
        "slice-1": moved("Slice", [1, 3], [4.0, 5.0, 6.0], opset=9, starts=[1], ends=[2],
                         axes=[0]),
        "reshape-0": moved("Reshape", [2, 3, 1], f6, ([0, -1, 1],)),
        "flatten": moved("Flatten", [6, 1], f6, axis=2),
        "tile": moved("Tile", [2, 6], [1.0, 2.0, 3.0] * 2 + [4.0, 5.0, 6.0] * 2, ([1, 2],)),
        "gather-back": moved("Gather", [2, 2], [3.0, 1.0, 6.0, 4.0], ([-1, 0],), axis=1),
        "pad": moved("Pad", [2, 5], [0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 4.0, 5.0, 6.0, 0.0],
                     ([0, 1, 0, 1],)),
        "trilu": moved("Trilu", [2, 3], [1.0, 2.0, 3.0, 0.0, 5.0, 6.0]),
        "reduce-mean": moved("ReduceMean", [2, 1], [2.0, 5.0], ([-1],)),
        "reduce-attr": moved("ReduceMean", [3], [2.5, 3.5, 4.5], opset=13, axes=[0], keepdims=0),
        "softmax": moved("Softmax", [2, 3], soft + soft, opset=13),
        "softmax-flat": moved("Softmax", [2, 3], flat, opset=11, axis=0),
        "rope-half": rope(0),
        "rope-interleaved": rope(1),
        "gather-nd": case([node("GatherND", ["x", "i"], ["y"])],
                          [m23, tensor("i", INT64, [2, 2], [0, 2, 1, 0])],
                          tensor("want", FLOAT, [2], [3.0, 4.0])),
        "matmul": case([node("MatMul", ["x", "w"], ["y"])],
                       [m23, tensor("w", FLOAT, [3], [1.0, 0.0, 2.0])],
                       tensor("want", FLOAT, [2], [7.0, 16.0])),
        "gemm": case([node("Gemm", ["x", "x", "c"], ["y"], transB=1, alpha=2.0, beta=0.5)],
                     [m23, tensor("c", FLOAT, [2], [2.0, 4.0])],
                     tensor("want", FLOAT, [2, 2], [29.0, 66.0, 65.0, 156.0])),
        "skip-rms-norm": case(
            [node("SkipSimplifiedLayerNormalization", ["x", "z", "g"], ["y"],
                  domain="com.microsoft", epsilon=1e-6)],
            [tensor("x", FLOAT16, [1, 64], [20000.0] * 64),
             tensor("z", FLOAT16, [1, 64], [0.0] * 64), tensor("g", FLOAT16, [64], [1.0] * 64)],
            tensor("want", FLOAT16, [1, 64], [1.0] * 64), domain="com.microsoft"),
        "dequantize-blocks": case(
            [node("DequantizeLinear", ["x", "s"], ["y"], axis=1, block_size=2)],
            [tensor("x", INT8, [1, 4], [1, 2, 3, 4]), tensor("s", FLOAT, [1, 2], [1.0, 10.0])],
            tensor("want", FLOAT, [1, 4], [1.0, 2.0, 30.0, 40.0])),
        "function": with_function(),
    }


def models():
    """One model in many forms; the values are arguments of from_gguf()."""
    rand = fixtures.random_model()
    forms = {style: dict(style=style) for style in ("primitive", "tables", "opset23", "contrib")}
    forms["packed"] = dict(style="contrib", packed=True)
    for style in ("primitive", "tables", "opset23", "contrib"):
        forms[style + "-window"] = dict(style=style, window=4)
        forms[style + "-softcap"] = dict(style=style, softcap=2.0)
    for style in ("primitive", "opset23"):
        forms[style + "-no-past"] = dict(style=style, past=False)
    for i, names in enumerate(("numbers", "pairs", "nothing")):
        forms["names-" + names] = dict(style="primitive", names=names, shuffle=i)
    return rand, {name: from_gguf(rand, **form) for name, form in forms.items()}


def write_all(folder):
    folder = pathlib.Path(folder)
    rand, forms = models()
    (folder / "models").mkdir(parents=True, exist_ok=True)
    rand.write(folder / "models/rand.gguf")
    for name, data in forms.items():
        (folder / "models" / (name + ".onnx")).write_bytes(data)
    for name, files in (("graphs", graphs()), ("folded", folded()),
                        ("refused", {n: data for n, (data, _) in refused().items()})):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file, data in files.items():
            (folder / name / (file + ".onnx")).write_bytes(data)
        (folder / name / "eight.data").write_bytes(struct.pack("<ff", 1, 2))
    (folder / "refused.json").write_text(
        json.dumps({name: texts for name, (_, texts) in refused().items()}, indent=1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_all(sys.argv[1])
