"""--quant and --calibrate: field reports d1 to d4, d6 and d7, ONNX sources, real models."""

import json
import math
import struct
import unittest

import fixtures
import harness
import onnxmodels
from harness import (LLMC, TestCase, compiled, compiled_fixture, model, prompt_logits, run, shared,
                     succeed)
from test_onnx import materialized


def divergence(a, b):
    """KL(a || b) of two rows of logits, in nats."""
    def log_softmax(x):
        top = max(x)
        total = top + math.log(sum(math.exp(v - top) for v in x))
        return [v - total for v in x]
    return sum(math.exp(p) * (p - q) for p, q in zip(log_softmax(a), log_softmax(b)))


def quantized(test, source, *arguments):
    """The artifact and its report."""
    path = source.write(test.folder / "model.gguf")
    artifact, report = test.folder / "model.llmc", test.folder / "report.json"
    result = succeed(LLMC, "compile", path, "-o", artifact, "--report", report, *arguments)
    test.message = result.error
    return artifact, json.loads(report.read_text())


def constant_model(mlp, value):
    """Every product sums `value` times its inputs; the down projection has `mlp` of them."""
    source = fixtures.random_model(layers=1, mlp=mlp)
    for name in ("ffn_gate", "ffn_up", "ffn_down", "attn_q", "attn_v", "attn_output"):
        tensor = source.tensor("blk.0.%s.weight" % name)
        tensor["data"] = struct.pack("<f", value) * (len(tensor["data"]) // 4)
    return source


class RowLengths(TestCase):
    """d1, d2: groups that do not divide a row."""

    def test_short_last_group(self):
        for mlp, encoding in ((192, "int4_g128"), (40, "int4_g128"), (96, "int4_g256"),
                              (192, "int4_g128_min"), (40, "iq4_g32")):
            with self.subTest(mlp=mlp, encoding=encoding):
                source = constant_model(mlp, 0.5)
                plain = self.folder / "plain.llmc"
                succeed(LLMC, "compile", "-q", source.write(self.folder / "plain.gguf"), "-o", plain)
                artifact, report = quantized(self, source, "-q", "--quant", encoding)
                for weight in report["weights"]:
                    if ".ffn" in weight["name"] and weight["rows"] > 1:
                        self.assertEqual(weight["to"], encoding)
                        self.assertLess(weight["error"], 0.005)
                expected, got = (prompt_logits(a, [3, 1, 4]) for a in (plain, artifact))
                for a, b in zip(expected, got):
                    self.assertLess(divergence(a, b), 0.02)

    def test_type_of_super_blocks(self):
        path = fixtures.random_model(mlp=96).write(self.folder / "m.gguf")
        self.assertRefused(run(LLMC, "compile", "-q", path, "-o", self.folder / "m.llmc", "--quant",
                               "q4_k"), "cannot quantize to 'q4_k'")
        self.assertFalse((self.folder / "m.llmc").exists())


class Fidelity(TestCase):
    """d6: the cost is printed, the ruined layer stands out, --max-kl refuses."""

    def test_outlier_column(self):
        source = fixtures.random_model(width=64, mlp=128)
        tensor = source.tensor("blk.1.ffn_up.weight")
        values = list(struct.unpack("<%df" % (len(tensor["data"]) // 4), tensor["data"]))
        values[5::64] = [100 * v for v in values[5::64]]
        tensor["data"] = struct.pack("<%df" % len(values), *values)
        _, report = quantized(self, source, "-q", "--quant", "int4_g64")
        self.assertIn("mean KL", self.message)
        # The error is relative to the weight, which the outliers dominate: what is lost is the rest.
        rests = {w["name"]: w["rest_error"] for w in report["weights"] if "rest_error" in w}
        self.assertGreater(rests.pop("blk.1.ffn_up.weight"), 0.9)
        self.assertLess(max(rests.values()), 0.25)
        self.assertIn("outliers ruin what is grouped with them in blk.1.ffn_up.weight (",
                      self.message)
        self.assertNotIn("blk.0", self.message)
        self.assertGreater(report["fidelity"]["mean_kld"], 0)
        path = self.folder / "model.gguf"
        self.assertRefused(run(LLMC, "compile", "-q", path, "-o", self.folder / "no.llmc", "--quant",
                               "int4_g64", "--max-kl", "1e-9"), "--max-kl")
        self.assertFalse((self.folder / "no.llmc").exists())


class Calibration(TestCase):
    """--calibrate: what columns are multiplied with weighs their errors."""

    def setUp(self):
        super().setUp()
        self.text = self.folder / "text.txt"
        self.text.write_text("the quick brown fox jumps over the lazy dog\n" * 20)

    def skewed(self):
        """Some columns of every product are multiplied with large numbers."""
        source = fixtures.random_model(tokenizer=fixtures.bpe_vocabulary())
        for layer in range(2):
            for name in ("attn_norm", "ffn_norm"):
                tensor = source.tensor("blk.%d.%s.weight" % (layer, name))
                values = [20.0 if k % 16 == 3 else 0.5 for k in range(len(tensor["data"]) // 4)]
                tensor["data"] = struct.pack("<%df" % len(values), *values)
        return source

    def test_large_columns_are_kept_better(self):
        costs = []
        for arguments in ((), ("--calibrate", self.text)):
            _, report = quantized(self, self.skewed(), "-q", "--quant", "int4_g64", *arguments)
            costs.append(report["fidelity"]["mean_kld"])
            flags = {w["name"]: w["calibrated"] for w in report["weights"] if "calibrated" in w}
            table = flags.pop("token_embd.weight")
            self.assertFalse(table)
            self.assertEqual(set(flags.values()), {bool(arguments)})
        self.assertLess(costs[1], 0.7 * costs[0])

    def test_columns_and_matrices_without_inputs(self):
        """d3: a column that is always 0, and a matrix that nothing reaches."""
        source = fixtures.random_model(tokenizer=fixtures.bpe_vocabulary())
        tensor = source.tensor("token_embd.weight")
        values = list(struct.unpack("<%df" % (len(tensor["data"]) // 4), tensor["data"]))
        values[5::64] = [0.0] * len(values[5::64])
        tensor["data"] = struct.pack("<%df" % len(values), *values)
        gate = source.tensor("blk.1.ffn_gate.weight")
        gate["data"] = bytes(len(gate["data"]))
        artifact, report = quantized(self, source, "-q", "--quant", "int4", "--calibrate", self.text)
        self.assertIn("calibration says nothing about the inputs of", self.message)
        self.assertIn("blk.1.ffn_down.weight", self.message)
        for weight in report["weights"]:
            self.assertTrue(math.isfinite(weight["error"]))
            if "calibrated" in weight:
                even = weight["name"] in ("token_embd.weight", "blk.1.ffn_down.weight")
                self.assertEqual(weight["calibrated"], not even, weight["name"])
        for row in prompt_logits(artifact, [7, 8, 9]):
            self.assertTrue(all(map(math.isfinite, row)))

    def test_refusals(self):
        source = fixtures.random_model(tokenizer=fixtures.bpe_vocabulary())
        bare = fixtures.random_model().write(self.folder / "bare.gguf")
        source = source.write(self.folder / "m.gguf")
        empty = self.folder / "empty.txt"
        empty.write_bytes(b"")
        out = ("-q", "-o", self.folder / "m.llmc")
        self.assertRefused(run(LLMC, "compile", source, *out, "--calibrate", self.text), "--quant")
        for given, text, why in ((source, "no/such", "no/such"), (source, empty, "empty"),
                                 (bare, self.text, "no tokenizer")):
            self.assertRefused(run(LLMC, "compile", given, *out, "--quant", "int4", "--calibrate",
                                   text), why)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()),
                         ["bare.gguf", "empty.txt", "m.gguf", "text.txt"])


class OnnxSources(TestCase):
    """The same weights are quantized to the same codes whatever file they are in."""

    def onnx(self, data, *arguments):
        source, report = self.folder / "m.onnx", self.folder / "r.json"
        source.write_bytes(data)
        artifact = self.folder / "onnx.llmc"
        result = succeed(LLMC, "compile", source, "-q", "-o", artifact, "--activations", "f32",
                         "--report", report, *arguments)
        weights = {w["name"]: w for w in json.loads(report.read_text())["weights"]}
        return artifact, weights, result.error

    def test_float_graphs(self):
        rand = fixtures.random_model()
        for scheme in ("int4", "int8-channel"):
            want = prompt_logits(compiled_fixture(rand, "--activations", "f32", "--quant", scheme),
                                 [3, 1, 4, 1, 5])
            for style in ("primitive", "tables", "contrib"):
                with self.subTest(scheme=scheme, style=style):
                    artifact, weights, _ = self.onnx(onnxmodels.from_gguf(rand, style), "--quant",
                                                     scheme)
                    self.assertNotIn("f32", {w["to"] for w in weights.values() if w["rows"] > 1})
                    for a, b in zip(want, prompt_logits(artifact, [3, 1, 4, 1, 5])):
                        self.assertLess(max(abs(u - v) for u, v in zip(a, b)), 1e-3)

    def test_blocks_of_codes_are_taken_as_they_are(self):
        rounded = onnxmodels.quantized(fixtures.random_model(tied=False), 32)
        data = onnxmodels.from_gguf(rounded, "contrib", block=32)
        _, weights, message = self.onnx(data, "--quant", "int4")
        for name, weight in weights.items():
            if weight["rows"] > 1 and name != "token_embd.weight":
                self.assertEqual((weight["from"], weight["error"]), (weight["to"], 0), name)
        self.assertEqual(weights["token_embd.weight"]["to"], "int8_g32")
        self.assertIn("matrices stay as they are", message)
        # Who names an encoding gets it.
        _, weights, _ = self.onnx(data, "--quant", "iq4_g32")
        self.assertEqual(weights["blk.0.ffn_up.weight"]["to"], "iq4_g32")

    def test_refusals(self):
        source = self.folder / "m.onnx"
        source.write_bytes(onnxmodels.from_gguf(fixtures.random_model(), "primitive"))
        out = ("-q", "-o", self.folder / "m.llmc")
        for arguments, why in ((("--quant", "int3"), "cannot quantize to 'int3'"),
                               (("--quant", "int4", "--quant-map", "no.such*=int8_g32"), "no.such")):
            self.assertRefused(run(LLMC, "compile", source, *out, *arguments), why)
        # A graph of tensors has no matrices of a known role.
        x = onnxmodels.value("x", onnxmodels.FLOAT, [2, 2])
        source.write_bytes(onnxmodels.model(onnxmodels.graph(
            [onnxmodels.node("Relu", ["x"], ["y"])], [x], [onnxmodels.value("y", onnxmodels.FLOAT)])))
        self.assertRefused(run(LLMC, "compile", source, *out, "--quant", "int4"),
                           "--quant is for language models")
        self.assertFalse((self.folder / "m.llmc").exists())


class LargeActivations(TestCase):
    """d4: large equal activations through every product, at the row counts where paths switch."""

    def test_finite_and_near(self):
        source = constant_model(64, 1.0)
        tensor = source.tensor("token_embd.weight")
        tensor["data"] = struct.pack("<f", 3000.0) * (len(tensor["data"]) // 4)
        plain = self.folder / "plain.llmc"
        succeed(LLMC, "compile", "-q", source.write(self.folder / "plain.gguf"), "-o", plain)
        for encoding in ("int4", "int8", "int8-channel", "int4-mixed"):
            artifact, _ = quantized(self, source, "-q", "--quant", encoding)
            for rows in (1, 63, 64, 65):
                with self.subTest(encoding=encoding, rows=rows):
                    expected, got = (prompt_logits(a, [7] * rows)[-1] for a in (plain, artifact))
                    for a, b in zip(expected, got):
                        self.assertTrue(math.isfinite(b))
                        self.assertLess(abs(a - b), 0.01 * abs(a) + 1e-3)


    def test_after_what_is_no_number(self):
        """d4: a request that ends in NaN leaves nothing behind."""
        source = fixtures.random_model()
        row = source.tensor("token_embd.weight")
        nan = struct.pack("<f", math.nan)
        row["data"] = row["data"][:9 * 256] + nan * 64 + row["data"][10 * 256:]
        loaded = self.load(compiled_fixture(source))
        prompt = [3, 1, 4, 1, 5]
        with loaded.session() as session:
            clean = [session.prefill(prompt)] + [session.decode(t) for t in (2, 6)]
        with loaded.session() as session:
            for poison in ([9], [3, 9, 4] * 30):
                session.prefill(poison)
                bad = session.decode(9)
                self.assertTrue(math.isnan(struct.unpack_from("<f", bad)[0]))
                session.reset()
                again = [session.prefill(prompt)] + [session.decode(t) for t in (2, 6)]
                self.assertEqual(again, clean)


class Vocabularies(TestCase):
    """d7: more rows in the head than the tokenizer has tokens; arithmetic that a target lacks."""

    def test_padded_rows_are_never_chosen(self):
        vocabulary = fixtures.random_model(
            vocabulary=300, tokenizer=fixtures.bpe_vocabulary(size=300))
        source = fixtures.random_model(vocabulary=304, tied=False, context=1024)
        head = source.tensor("output.weight")
        rows = 4 * 64
        best = head["data"][7 * rows:8 * rows]
        # Each pad is what some token is, only more so: without care it would win.
        pads = b"".join(struct.pack("<64f", *(sign * 50 * v for v in struct.unpack("<64f", best)))
                        for sign in (1, -1, 1, -1))
        head["data"] = head["data"][:300 * rows] + pads
        path, artifact = source.write(self.folder / "m.gguf"), self.folder / "m.llmc"
        tokens = ("--tokenizer", vocabulary.write(self.folder / "v.gguf"))
        result = succeed(LLMC, "compile", "-q", path, "-o", artifact, *tokens)
        self.assertIn("4 rows of the head belong to no token", result.error)
        made = harness.generate(artifact, [1, 2, 3], 1000, "--ignore-end")["tokens"]
        self.assertEqual(len(made), 1000)
        self.assertLess(max(made), 300)
        succeed(LLMC, "compile", "-q", path, "-o", artifact, "--quant", "int4", *tokens)
        made = harness.generate(artifact, [1, 2, 3], 300, "--ignore-end")["tokens"]
        self.assertLess(max(made), 300)
        succeed(LLMC, "compile", "-q", path, "-o", artifact)  # they would win
        made = harness.generate(artifact, [1, 2, 3], 20, "--ignore-end")["tokens"]
        self.assertGreaterEqual(max(made), 300)

    def test_fewer_rows_than_tokens(self):
        source = fixtures.random_model(vocabulary=256, tokenizer=fixtures.bpe_vocabulary(size=300))
        self.assertRefused(run(LLMC, "compile", "-q", source.write(self.folder / "m.gguf"), "-o",
                               self.folder / "m.llmc"), "300 tokens", "256")

    def test_numerics_that_a_target_lacks(self):
        source = fixtures.random_model().write(self.folder / "m.gguf")
        result = succeed(LLMC, "compile", "-q", source, "-o", self.folder / "m.llmc", "--target",
                         "x86-64-v3", "--numerics", "fast")
        self.assertIn("prefill of this model is not faster on x86-64-v3", result.error)
        shown = succeed(LLMC, "inspect", self.folder / "m.llmc", "--json").text
        self.assertIn('"strict"', shown)


class RealModels(TestCase):
    def test_identity(self):
        """SmolLM2 is there in Q4_1: int4 of the same grid keeps every byte."""
        source = model("smollm2-135m")
        report = self.folder / "report.json"
        artifact = self.folder / "again.llmc"
        result = succeed(LLMC, "compile", "-q", source, "-o", artifact, "--quant", "int4", "--report",
                         report)
        self.assertIn("matrices stay as they are", result.error)
        self.assertEqual({w["error"] for w in json.loads(report.read_text())["weights"]}, {0})
        self.assertEqual(artifact.read_bytes(), compiled(source).read_bytes())

    def gemma(self, *arguments):
        """Bits per weight of the matrices, and the divergence on the reference's windows from
        float32; the tied table stays as it is."""
        source = model("gemma3-270m")
        report, artifact = self.folder / "report.json", self.folder / "small.llmc"
        succeed(LLMC, "compile", "-q", source, "-o", artifact, "--report", report, *arguments,
                timeout=900)
        weights = json.loads(report.read_text())["weights"]
        table = [w for w in weights if w["name"] == "token_embd.weight"]
        self.assertEqual([(w["to"], w["error"]) for w in table], [("q8_0", 0)])
        matrices = [w for w in weights if w["rows"] > 1 and w not in table]
        bits = (sum(w["bits_per_weight"] * w["rows"] * w["columns"] for w in matrices)
                / sum(w["rows"] * w["columns"] for w in matrices))
        result = succeed(LLMC, "eval", artifact, "--text", shared("data/eval.txt"), "--windows", "8",
                         "--against", compiled(source, "--activations", "f32"), "--json",
                         timeout=900).json
        return bits, result["mean_kld"]

    def test_gemma_to_four_bits(self):
        bits, divergence = self.gemma("--quant", "iq4_g32", "--max-kl", "0.35")
        self.assertLess(bits, 4.531)
        self.assertLess(divergence, 0.17)

    def test_gemma_calibrated(self):
        text = self.folder / "text.txt"
        text.write_bytes(shared("data/calibration.txt").read_bytes()[:40000])
        bits, divergence = self.gemma("--quant", "int4-mixed", "--calibrate", text)
        self.assertLess(bits, 4.85)
        self.assertLess(divergence, 0.07)

    def test_onnx_files(self):
        """Float graphs of SmolLM2 hold the numbers of its Q4_1 file: --quant int4 finds the same
        codes. The 4-bit file stays as it is."""
        for name in ("optimum-fp32", "dynamo-fp32", "genai-int4"):
            with self.subTest(graph=name):
                report = self.folder / "report.json"
                result = succeed(LLMC, "compile", "-q", materialized(name), "-o",
                                 self.folder / "m.llmc", "--quant", "int4", "--report", report)
                weights = json.loads(report.read_text())["weights"]
                matrices = [w for w in weights if w["rows"] > 1 and w["name"] != "token_embd.weight"]
                self.assertEqual(len(matrices), 210)
                self.assertEqual({w["error"] for w in matrices}, {0})
                if name == "genai-int4":
                    self.assertIn("all 211 matrices stay as they are", result.error)
                else:
                    self.assertEqual({w["to"] for w in matrices}, {"int4_g32_min"})
                    self.assertLess(json.loads(report.read_text())["fidelity"]["mean_kld"], 0.02)


if __name__ == "__main__":
    unittest.main()
