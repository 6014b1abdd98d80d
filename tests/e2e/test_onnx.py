"""ONNX files as real exporters wrote them, and in forms that field reports b1 to b12 are about."""

import functools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

import fixtures
import harness
import onnxwriter as w
from harness import (LLMC, LLMC_RUN, TestCase, compiled, compiled_fixture, generate, model,
                     prompt_logits, reference, run, succeed)
from onnxmodels import from_gguf, merged, quantized, round_rows

GRAPHS = ("optimum-fp32", "dynamo-fp32", "genai-int4")
STYLES = ("primitive", "tables", "opset23", "contrib")
TOP_LOGITS = 0.002  # absolute, as for the GGUF file
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]


def site(*packages):
    """A folder with packages from PyPI; skips the test where they cannot be had."""
    folder = pathlib.Path.home() / ".cache/llmc-onnx" / "-".join(packages)
    if not folder.exists():
        part = folder.with_name(folder.name + ".part%d" % os.getpid())
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", part,
                               *packages], capture_output=True)
        if done.returncode:
            shutil.rmtree(part, ignore_errors=True)
            raise unittest.SkipTest("pip cannot install %s" % ", ".join(packages))
        if folder.exists():
            shutil.rmtree(part)
        else:
            part.rename(folder)
    return folder


@functools.lru_cache(maxsize=None)
def materialized(name):
    """A graph of SmolLM2 with its weights, made from the GGUF file once."""
    graph, source = harness.shared("onnx/" + name), model("smollm2-135m")
    folder = harness.MODELS / ("smollm2-135m-" + name)
    if not (folder / "model.onnx").exists():
        part = folder.with_name(folder.name + ".part%d" % os.getpid())
        succeed(sys.executable, harness.shared("onnx/materialize.py"), graph, source, part,
                env={"PYTHONPATH": str(site("onnx", "gguf", "numpy"))})
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return folder / "model.onnx"


# Logits of the last position by onnxruntime, its products in float32: MODEL.onnx, ids as JSON.
RUN_ORT = """
import json, os, sys, numpy, onnx, onnxruntime
model = onnx.load(sys.argv[1], load_external_data=False)
for node in model.graph.node:
    for a in node.attribute:
        if a.name == "accuracy_level":
            a.i = 1
os.chdir(os.path.dirname(sys.argv[1]))
session = onnxruntime.InferenceSession(model.SerializeToString())
for ids in json.loads(sys.argv[2]):
    feed = {"input_ids": numpy.array([ids]), "attention_mask": numpy.ones((1, len(ids)), "int64")}
    for i in session.get_inputs():
        if i.name not in feed:
            feed[i.name] = numpy.zeros((1, 3, 0, 64), "float32")
    print(json.dumps(session.run(["logits"], feed)[0][0, -1].tolist()))
"""


def function_of(source):
    """The text of @forward after the import phase, and the rope tables."""
    text = succeed(LLMC, "compile", source, "--compile-to=import").text
    ropes = re.findall(r"llm\.rope_table .*?inv_freq = array<f32: ([^>]*)>", text)
    return text[text.index("func.func"):], [[float(f) for f in r.split(",")] for r in ropes]


class RealGraphs(TestCase):
    def test_same_function_as_the_gguf_file(self):
        """Nothing of the exporter is left: ops, order, layers, names, numbers."""
        expected, ropes = function_of(model("smollm2-135m"))
        for name in GRAPHS:
            with self.subTest(graph=name):
                text, tables = function_of(materialized(name))
                self.assertEqual(text, expected)
                self.assertEqual(len(tables), len(ropes))
                for a, b in zip(tables[0], ropes[0]):
                    self.assertAlmostEqual(a, b, delta=1e-6 * b)

    def test_same_programs_as_the_gguf_file(self):
        """Kernels, dispatches, barriers and buffers are those of a GGUF file of the same format, so the
        speed is, too."""
        def programs(source, *arguments):
            text = succeed(LLMC, "compile", source, "--context", "512", "--compile-to=schedule",
                           *arguments).text
            lines = [line for line in text.splitlines() if "sched." in line]
            text = re.sub(r"inv_freq = array<f32: [^>]*>", "", "\n".join(lines))
            for own, ggml in (("int4_g32_min", "q4_1"), ("int8_g32", "q8_0")):  # the same grids
                text = text.replace('"%s"' % own, '"%s"' % ggml)
            return re.sub("interleaved|half_split", "", text)

        expected = programs(model("smollm2-135m"))
        self.assertGreater(expected.count("sched.dispatch"), 3 * 30 * 5)
        for name in ("optimum-fp32", "dynamo-fp32"):
            with self.subTest(graph=name):
                got = programs(materialized(name), "--quant", "int4")
                self.assertEqual(got.splitlines(), expected.splitlines())

    def test_import_is_fast_and_small(self):
        result = harness.measured(LLMC, "compile", materialized("optimum-fp32"),
                                  "--compile-to=import")
        idle = harness.measured(LLMC, "--version")
        self.assertEqual(result.code, 0, result.error)
        self.assertLess(result.peak_kb - idle.peak_kb, 300 * 1024)
        self.assertLess(result.seconds, 15)  # 3 s on a machine that does nothing else

    def test_reference_logits(self):
        for name in ("optimum-fp32", "dynamo-fp32"):
            artifact = compiled(materialized(name), "--activations", "f32")
            for prompt in reference("smollm2-135m")["prompts"]:
                with self.subTest(graph=name, prompt=prompt["ids"]):
                    row = prompt_logits(artifact, prompt["ids"])[-1]
                    top = sorted(range(len(row)), key=row.__getitem__, reverse=True)[:20]
                    self.assertEqual(top, prompt["top20_ids"])
                    for token, logit in zip(top, prompt["top20_logits"]):
                        self.assertAlmostEqual(row[token], logit, delta=TOP_LOGITS)

    def test_greedy_tokens(self):
        for name in ("optimum-fp32", "dynamo-fp32"):
            artifact = compiled(materialized(name), "--activations", "f32")
            for prompt in reference("smollm2-135m")["prompts"]:
                result = generate(artifact, prompt["ids"], 64, "--ignore-end")
                self.assertEqual(result["tokens"], prompt["greedy64"])

    def test_four_bits_in_int8(self):
        """What int8 activations cost the GenAI file, against float32 with the same codes."""
        source, gguf = materialized("genai-int4"), model("smollm2-135m")
        artifact, exact = (compiled(source, "--tokenizer", gguf, *more)
                           for more in ((), ("--activations", "f32")))
        result = succeed(LLMC, "eval", artifact, "--text", harness.shared("data/eval.txt"),
                         "--window", "128", "--windows", "24", "--against", exact, "--json",
                         timeout=900).json
        self.assertEqual(result["tokens"], 24 * 64)
        self.assertLessEqual(result["mean_kld"], 0.005)

    def test_four_bits_against_onnxruntime(self):
        """The GenAI file in float32: onnxruntime's logits, the codes taken as they are."""
        packages = site("onnx", "onnxruntime", "numpy")
        prompts = [p["ids"] for p in reference("smollm2-135m")["prompts"]][:3]
        source = materialized("genai-int4")
        lines = succeed(sys.executable, "-c", RUN_ORT, source, json.dumps(prompts),
                        env={"PYTHONPATH": str(packages)}).text.splitlines()
        artifact = compiled(source, "--activations", "f32")
        for ids, line in zip(prompts, lines):
            row = prompt_logits(artifact, ids)[-1]
            for got, want in zip(row, json.loads(line)):
                self.assertAlmostEqual(got, want, delta=1e-3)


def write(folder, data, name="model.onnx"):
    path = pathlib.Path(folder) / name
    path.write_bytes(data)
    return path


class Forms(TestCase):
    """Tiny models: every form gives the logits of the GGUF file with the same weights."""

    def setUp(self):
        super().setUp()
        self.rand = fixtures.random_model()

    def logits(self, data, *arguments, name="model.onnx", prompt=PROMPT):
        source = write(self.folder, data, name)
        artifact = self.folder / "model.llmc"
        succeed(LLMC, "compile", source, "-o", artifact, "--activations", "f32", *arguments)
        return prompt_logits(artifact, prompt)

    def expected(self):
        return prompt_logits(compiled_fixture(self.rand, "--activations", "f32"), PROMPT)

    def assertNear(self, a, b, delta=1e-3):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertLess(max(abs(u - v) for u, v in zip(x, y)), delta)

    def test_styles_without_value_info(self):
        """b8: symbolic sizes, contrib operators, no annotated shapes; b9: an empty graph name, "/" and
        "::" in names."""
        expected = self.expected()
        for style in STYLES:
            with self.subTest(style=style):
                self.assertNear(self.logits(from_gguf(self.rand, style)), expected)

    def test_unsupported_operators_are_listed(self):
        """b9: one run names them all."""
        x, y = w.value("x", w.FLOAT, ["n", 4]), w.value("y", w.FLOAT)
        nodes = [w.node("Foo", ["x"], ["a"], name="n/1"), w.node("Foo", ["a"], ["b"], name="n/2"),
                 w.node("Bar", ["b"], ["c"], domain="my.domain", name="n::3"),
                 w.node("Baz", ["c"], ["y"], name="n/4")]
        source = write(self.folder, w.model(w.graph(nodes, [x], [y], name="")))
        result = run(LLMC, "compile", source)
        self.assertRefused(result, "3 operators", "Foo (2 nodes", "my.domain.Bar (1 node", "n/4")

    def test_kv_names_and_order(self):
        """b10: pasts are paired with presents by what flows where."""
        chain = fixtures.chain_model([(t + 1) % 64 for t in range(64)])
        for i, names in enumerate(("optimum", "numbers", "pairs", "nothing")):
            with self.subTest(names=names):
                data = from_gguf(chain, "primitive", names=names, shuffle=i)
                source = write(self.folder, data)
                artifact = self.folder / "model.llmc"
                succeed(LLMC, "compile", source, "-o", artifact)
                result = generate(artifact, [5], 32, "--ignore-end")
                self.assertEqual(result["tokens"], [(6 + i) % 64 for i in range(32)])

    def test_one_past_for_keys_and_values(self):
        """b10: keys and values side by side in one cache; a chain needs no positions."""
        chain = fixtures.chain_model([(t + 1) % 64 for t in range(64)])
        artifact = self.folder / "model.llmc"
        succeed(LLMC, "compile", write(self.folder, from_gguf(chain, "fused")), "-o", artifact)
        result = generate(artifact, [5], 32, "--ignore-end")
        self.assertEqual(result["tokens"], [(6 + i) % 64 for i in range(32)])
        # Grouped queries over one head; what is attended to shows in the means.
        unif = fixtures.uniform_model()
        succeed(LLMC, "compile", write(self.folder, from_gguf(unif, "fused")), "-o", artifact,
                "--activations", "f32")
        for position, row in enumerate(prompt_logits(artifact, list(range(8)))):
            self.assertAlmostEqual(row[0] / row[1], position / 2, delta=1e-3)

    def test_multi_head_attention(self):
        """com.microsoft MultiHeadAttention, its mask added."""
        rand = fixtures.random_model(heads=4, kv_heads=4)
        expected = prompt_logits(compiled_fixture(rand, "--activations", "f32"), PROMPT)
        self.assertNear(self.logits(from_gguf(rand, "multihead")), expected)

    def test_merged_decoders(self):
        """The branch that continues a cache is the model."""
        expected = self.expected()
        for swapped in (False, True):
            with self.subTest(swapped=swapped):
                self.assertNear(self.logits(merged(self.rand, "primitive", swapped)), expected)

    def test_unpaired_pasts_are_listed(self):
        """b10: a past that no output continues is named."""
        data = from_gguf(self.rand, "primitive", lost=(1, 0))
        result = run(LLMC, "compile", write(self.folder, data))
        self.assertRefused(result, "past_key_values.1.key")

    def test_half_precision(self):
        """b11: bf16 and f16 models are compiled for this CPU; the weights' rounding is all that
        differs."""
        for dtype, encoding in ((w.BFLOAT16, "bf16"), (w.FLOAT16, "f16")):
            with self.subTest(encoding=encoding):
                from ggufwriter import encode
                rounded = fixtures.random_model()
                for t in rounded.tensors:
                    values = struct.unpack("<%df" % (len(t["data"]) // 4), t["data"])
                    bits = encode(values, encoding)
                    if encoding == "bf16":
                        t["data"] = b"".join(b"\0\0" + bits[i:i + 2]
                                             for i in range(0, len(bits), 2))
                    else:
                        halves = struct.unpack("<%de" % (len(bits) // 2), bits)
                        t["data"] = struct.pack("<%df" % len(halves), *halves)
                for style in ("primitive", "opset23"):
                    got = self.logits(from_gguf(rounded, style, dtype=dtype))
                    want = prompt_logits(compiled_fixture(rounded, "--activations", "f32"), PROMPT)
                    self.assertNear(got, want, 0.15)
                    self.assertEqual([harness.argmax(r) for r in got],
                                     [harness.argmax(r) for r in want])

    def test_windows(self):
        """b5: the window counts the current position, in one prefill and in single steps."""
        unif = fixtures.uniform_model()
        for style in STYLES:
            with self.subTest(style=style):
                source = write(self.folder, from_gguf(unif, style, window=4))
                artifact = self.folder / "model.llmc"
                succeed(LLMC, "compile", source, "-o", artifact, "--activations", "f32")
                rows = prompt_logits(artifact, list(range(8)))
                means = [r[0] / r[1] for r in rows]
                for got, want in zip(means, [0, .5, 1, 1.5, 2.5, 3.5, 4.5, 5.5]):
                    self.assertAlmostEqual(got, want, delta=1e-3)
                loaded = self.load(artifact)
                with loaded.session() as session:
                    for i in range(8):
                        logits = session.prefill([0]) if i == 0 else session.decode(i)
                        a, b = struct.unpack_from("<2f", logits)
                        self.assertAlmostEqual(a / b, means[i], delta=1e-4)

    def test_four_bit_blocks(self):
        """b1, b2: MatMulNBits with blocks of 16 to 1024, rows of whole blocks and not, with and
        without zero points: the numbers of the codes, in decode and prefill."""
        for block, zeros in ((16, False), (32, True), (64, False), (128, True), (512, False),
                             (1024, True)):
            with self.subTest(block=block, zeros=zeros):
                rounded = quantized(fixtures.random_model(tied=False), block, zeros)
                got = self.logits(from_gguf(rounded, "contrib", block=block, zeros=zeros))
                want = prompt_logits(compiled_fixture(rounded, "--activations", "f32"), PROMPT)
                self.assertNear(got, want)

    def test_weights_behind_dequantize_linear(self):
        """Codes of 4 and 8 bits, scales per block, row or tensor, with and without zero points, in
        both orders: taken as they are."""
        for type, kind, zeros, encoding in (
                (w.INT4, 32, False, "int4_g32_f32"), (w.UINT4, 32, True, "int4_g32_zp_f32"),
                (w.INT4, 64, True, "int4_g64_zp_f32"), (w.UINT4, 16, False, "int4_g16_zp_f32"),
                (w.INT8, 32, False, "int8_g32_f32"), (w.INT4, "row", False, "int4_row_f32"),
                (w.INT8, "row", False, "int8_row_f32"), (w.UINT8, "row", True, "int8_row_zp_f32"),
                (w.INT8, "tensor", False, "int8_row_f32"),
                (w.UINT4, "tensor", True, "int4_row_f32")):
            with self.subTest(encoding=encoding, kind=kind):
                rounded = round_rows(fixtures.random_model(tied=False), type, kind, zeros)
                data = from_gguf(rounded, "primitive", qdq=(type, kind), zeros=zeros)
                source = write(self.folder, data)
                listing = succeed(LLMC, "compile", source, "--compile-to=import").text
                kept = re.findall(r'llm.weight @blk\S* \[\d+, \d+\] "(\w+)"', listing)
                self.assertEqual(set(kept), {encoding})
                artifact = self.folder / "model.llmc"
                succeed(LLMC, "compile", source, "-o", artifact, "--activations", "f32")
                self.assertNear(prompt_logits(artifact, PROMPT), prompt_logits(
                    compiled_fixture(rounded, "--activations", "f32"), PROMPT))

    def test_blocks_of_unknown_sizes_are_refused(self):
        rounded = quantized(fixtures.random_model(tied=False), 48)
        result = run(LLMC, "compile",
                     write(self.folder, from_gguf(rounded, "contrib", block=48)))
        self.assertRefused(result, "blocks of 48")

    def test_without_past(self):
        """A graph that was exported without a cache computes the same with one."""
        for style in ("primitive", "opset23"):
            with self.subTest(style=style):
                self.assertNear(self.logits(from_gguf(self.rand, style, past=False)),
                                self.expected())


class ExternalData(TestCase):
    def model(self, location, **more):
        x, y = w.value("x", w.FLOAT, [2]), w.value("y", w.FLOAT)
        tensor = w.tensor("w", w.FLOAT, [16], external={"location": location, **more})
        return w.model(w.graph([w.node("Add", ["x", "w"], ["y"])], [x], [y], [tensor]))

    def test_paths_stay_in_the_folder(self):
        """b6: no file of the machine is read because a model names it."""
        (self.folder / "w.data").write_bytes(bytes(64))
        for location, text in (("../../etc/hostname", "leaves"), ("/etc/hostname", "absolute"),
                               ("no/such", "no/such")):
            source = write(self.folder, self.model(location))
            self.assertRefused(run(LLMC, "inspect", source), text)
        os.symlink("/etc/hostname", self.folder / "link.data")
        source = write(self.folder, self.model("link.data"))
        self.assertRefused(run(LLMC, "inspect", source), "link")
        source = write(self.folder, self.model("w.data", offset=4))
        self.assertRefused(run(LLMC, "inspect", source), "64")

    def test_hub_caches(self):
        """b6: there, model and data are links into one folder of blobs."""
        blobs, snapshot = self.folder / "blobs", self.folder / "snapshots/1"
        blobs.mkdir()
        snapshot.mkdir(parents=True)
        (blobs / "aa").write_bytes(self.model("model.onnx_data"))
        (blobs / "bb").write_bytes(bytes(64))
        os.symlink("../../blobs/aa", snapshot / "model.onnx")
        os.symlink("../../blobs/bb", snapshot / "model.onnx_data")
        listing = succeed(LLMC, "inspect", snapshot / "model.onnx", "--json").json
        self.assertEqual(listing["initializers"][0]["file"], 1)

    def test_beyond_two_gigabytes(self):
        """b7: external data of 3 GiB (a file of holes) is mapped, not read."""
        offset = (1 << 31) + 64
        with open(self.folder / "big.data", "wb") as file:
            file.seek(offset)
            file.write(struct.pack("<16f", *range(1, 17)))
            file.truncate(3 << 30)
        tensor = w.tensor("w", w.FLOAT, [16],
                          external={"location": "big.data", "offset": offset, "length": 64})
        want = w.tensor("want", w.FLOAT, [16], [float(-i) for i in range(1, 17)])
        source = write(self.folder, w.model(w.graph([w.node("Neg", ["w"], ["y"])], [],
                                                    [w.value("y", w.FLOAT)], [tensor, want])))
        result = harness.measured(LLMC, "inspect", source, "--json")
        self.assertEqual(result.code, 0, result.error)
        self.assertEqual(result.json["initializers"][0]["offset"], offset)
        self.assertEqual(result.json["nodes_after_folding"], 0)
        self.assertLess(result.peak_kb, 1 << 20)
        folds = harness.BIN / "llmc_onnx_tests"
        if folds.exists():
            succeed(folds, "--gtest_filter=Fold.GivenFolder",
                    env={"LLMC_ONNX_FOLD_DIR": str(self.folder)})


if __name__ == "__main__":
    unittest.main()
