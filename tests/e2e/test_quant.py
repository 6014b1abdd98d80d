"""Field reports b1, b2, d1, d2, d4, d6, d7 and --quant on a real model."""

import json
import math
import struct
import unittest

import fixtures
from harness import LLMC, TestCase, compiled, model, prompt_logits, run, succeed


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
        errors = {w["name"]: w["error"] for w in report["weights"] if w["error"] > 0}
        self.assertIn("blk.1.ffn_up.weight", errors)
        self.assertGreater(report["fidelity"]["mean_kld"], 0)
        path = self.folder / "model.gguf"
        self.assertRefused(run(LLMC, "compile", "-q", path, "-o", self.folder / "no.llmc", "--quant",
                               "int4_g64", "--max-kl", "1e-9"), "--max-kl")
        self.assertFalse((self.folder / "no.llmc").exists())


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


class RealModels(TestCase):
    def test_identity(self):
        """SmolLM2 is there in Q4_1: int4 of the same grid keeps every byte."""
        source = model("smollm2-135m")
        report = self.folder / "report.json"
        artifact = self.folder / "again.llmc"
        result = succeed(LLMC, "compile", "-q", source, "-o", artifact, "--quant", "int4", "--report",
                         report)
        self.assertEqual(result.error, "")
        self.assertEqual({w["error"] for w in json.loads(report.read_text())["weights"]}, {0})
        self.assertEqual(artifact.read_bytes(), compiled(source).read_bytes())

    def test_gemma_to_four_bits(self):
        """4.5 bits per weight cost less than 0.30 nats, the tied table stays as it is."""
        source = model("gemma3-270m")
        report, artifact = self.folder / "report.json", self.folder / "small.llmc"
        result = succeed(LLMC, "compile", "-q", source, "-o", artifact, "--quant", "iq4_g32",
                         "--max-kl", "0.35", "--report", report)
        self.assertIn("mean KL", result.error)
        weights = json.loads(report.read_text())["weights"]
        table = [w for w in weights if w["name"] == "token_embd.weight"]
        self.assertEqual([(w["to"], w["error"]) for w in table], [("q8_0", 0)])
        matrices = [w for w in weights if w["rows"] > 1 and w not in table]
        bits = (sum(w["bits_per_weight"] * w["rows"] * w["columns"] for w in matrices)
                / sum(w["rows"] * w["columns"] for w in matrices))
        self.assertLess(bits, 4.53)


if __name__ == "__main__":
    unittest.main()
