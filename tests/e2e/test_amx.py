"""AMX: the target sapphirerapids, on the processor's tiles or on emulated ones.

amx-run (tests/unit/amx) computes with the artifact's machine code as it is; what the processor does
not know, its emulator executes.
"""

import unittest

import fixtures
from harness import (BIN, LLMC, ROOT, TestCase, compiled, compiled_fixture, ids, model, reference,
                     run, succeed)

AMX_RUN = BIN / "amx-run"
AMX, VNNI, AVX2 = "sapphirerapids", "x86-64-v4+vnni", "x86-64-v3"


class Tiles(TestCase):
    def setUp(self):
        super().setUp()
        if not AMX_RUN.exists():
            self.skipTest("no %s" % AMX_RUN)

    def run_tiles(self, artifact, tokens, *arguments, variant=AMX):
        result = run(AMX_RUN, artifact, "--tokens", ids(tokens), "--variant", variant, *arguments)
        if "needs amx" in result.error or "needs avx512" in result.error:
            self.skipTest("neither AMX nor AVX-512 to emulate it")
        self.assertEqual(result.code, 0, result.error)
        report = result.json
        self.assertEqual(report["variant"], variant)
        self.assertFalse(report["tiles_left_in_use"])
        if report["mode"] == "emulated":
            count = report["prefill_instructions"]
            self.assertEqual(count["ldtilecfg"], count["tilerelease"])
        return report

    def assertUsed(self, report, used, unused):
        """Which products a prefill is made of, where they are counted."""
        if report["mode"] == "emulated":
            self.assertGreater(report["prefill_instructions"][used], 0)
            self.assertEqual(report["prefill_instructions"][unused], 0)
            self.assertEqual(report["later_dots"], 0)


class Strict(Tiles):
    """Bits of the tiles are the bits of decode and of every other target."""

    def artifact(self, encoding):
        return compiled_fixture(fixtures.random_model(encoding=encoding, width=256, mlp=256),
                                "--target", "%s,%s" % (AMX, VNNI), "--numerics", "strict")

    def test_equal_bits(self):
        prompt = list(range(20, 75))
        for encoding in ("q4_1", "q6_k"):
            artifact = self.artifact(encoding)
            expected = self.run_tiles(artifact, prompt, "--decode", 4, variant=VNNI)["logits"]
            report = self.run_tiles(artifact, prompt, "--decode", 4)
            self.assertUsed(report, "int8_dots", "bf16_dots")
            self.assertEqual(report["logits"], expected)
            for arguments in (("--threads", 1), ("--threads", 5), ("--chunk", 17)):
                with self.subTest(encoding=encoding, arguments=arguments):
                    again = self.run_tiles(artifact, prompt, "--decode", 4, *arguments)
                    self.assertEqual(again["logits"], expected)

    def test_prefill_equals_decode(self):
        artifact = self.artifact("q4_1")
        prompt = list(range(20, 53))
        whole = self.run_tiles(artifact, prompt)["logits"][-1]
        self.assertEqual(self.run_tiles(artifact, prompt, "--decode", 12)["logits"][-1], whole)

    def test_verify(self):
        """Sixteen rows, drafted and verified in one step, are computed on tiles too."""
        for numerics in ("strict", "fast"):
            artifact = compiled_fixture(fixtures.random_model(encoding="q4_1"), "--target", AMX,
                                        "--numerics", numerics)
            prompt = list(range(20, 56))
            decoded = self.run_tiles(artifact, prompt, "--decode", 16)
            verified = self.run_tiles(artifact, prompt, "--verify", 16)
            self.assertEqual(verified["logits"], decoded["logits"])
            if verified["mode"] == "emulated":
                self.assertGreater(verified["later_dots"], 0)

    def test_real_model(self):
        artifact = compiled(model("smollm2-135m"), "--target", "%s,%s" % (AMX, VNNI), "--numerics",
                            "strict", "--context", "512")
        prompt = reference("smollm2-135m")["prompts"][2]["ids"][:20]
        expected = self.run_tiles(artifact, prompt, "--decode", 2, variant=VNNI)["logits"]
        self.assertEqual(self.run_tiles(artifact, prompt, "--decode", 2)["logits"], expected)


class Fast(Tiles):
    """bf16 tiles: other bits than decode's, but one and the same for every split."""

    def test_splits(self):
        prompt = list(range(20, 90))
        for encoding in ("q4_1", "f16"):
            artifact = compiled_fixture(fixtures.random_model(encoding=encoding, width=96, mlp=160,
                                                              heads=3, kv_heads=1),
                                        "--target", AMX, "--numerics", "fast")
            report = self.run_tiles(artifact, prompt, "--decode", 3)
            self.assertUsed(report, "bf16_dots", "int8_dots")
            for arguments in (("--threads", 1), ("--threads", 5), ("--chunk", 1), ("--chunk", 16),
                              ("--chunk", 17), ("--chunk", 33)):
                with self.subTest(encoding=encoding, arguments=arguments):
                    again = self.run_tiles(artifact, prompt, "--decode", 3, *arguments)
                    self.assertEqual(again["logits"], report["logits"])

    def test_divergence(self):
        """Not further from float32 than what decode does."""
        smol = model("smollm2-135m")
        target = ("--target", "%s,%s" % (AMX, VNNI), "--context", "512")
        exact = compiled(smol, *target, "--activations", "f32")
        text = ROOT / "docs/guide.md"

        def divergence(artifact, variant):
            result = run(AMX_RUN, artifact, "--variant", variant, "--text", text, "--against", exact,
                         "--window", 48, "--windows", 1)
            if "needs a" in result.error:
                self.skipTest("neither AMX nor AVX-512 to emulate it")
            self.assertEqual(result.code, 0, result.error)
            return result.json["mean_kld"]

        strict = divergence(compiled(smol, *target, "--numerics", "strict"), VNNI)
        fast = divergence(compiled(smol, *target, "--numerics", "fast"), AMX)
        self.assertLess(fast, 1.1 * strict)


class Policy(TestCase):
    """Which numerics a variant has, and who says so."""

    def compile(self, *arguments):
        """(numerics of each variant, what was said, the artifact's bytes)."""
        source = fixtures.random_model(encoding="q4_1").write(self.folder / "model.gguf")
        path = self.folder / "model.llmc"
        said = succeed(LLMC, "compile", "-q", source, "-o", path, *arguments).error
        variants = succeed(LLMC, "inspect", "--json", path).json["variants"]
        return {v["target"]: v["numerics"] for v in variants}, said, path.read_bytes()

    def test_default(self):
        numerics, said, _ = self.compile("--target", ",".join((AMX, VNNI, AVX2)))
        self.assertEqual(numerics, {AMX: "fast", VNNI: "strict", AVX2: "strict"})
        self.assertEqual(said, "")

    def test_strict(self):
        numerics, _, _ = self.compile("--target", AMX, "--numerics", "strict")
        self.assertEqual(numerics, {AMX: "strict"})

    def test_fast_where_nothing_is_faster(self):
        numerics, said, fast = self.compile("--target", AVX2, "--numerics", "fast")
        self.assertEqual(numerics, {AVX2: "strict"})
        self.assertIn(AVX2, said)
        self.assertIn("strict", said)
        self.assertEqual(self.compile("--target", AVX2, "--numerics", "strict")[2], fast)

    def test_reference_mode_is_strict(self):
        numerics, said, _ = self.compile("--target", AMX, "--activations", "f32", "--numerics", "fast")
        self.assertEqual(numerics, {AMX: "strict"})
        self.assertIn("strict", said)


class Permission(Tiles):
    """An operating system that does not give the registers."""

    def refused(self, *targets):
        artifact = compiled_fixture(fixtures.random_model(encoding="q4_1"), "--target",
                                    ",".join(targets))
        return run(AMX_RUN, artifact, "--tokens", "1,2,3", "--refuse")

    def test_next_variant(self):
        result = self.refused(AMX, VNNI, AVX2)
        self.assertEqual(result.code, 0, result.error)
        self.assertIn(result.json["variant"], (VNNI, AVX2))

    def test_no_other_variant(self):
        self.assertRefused(self.refused(AMX), AMX, "amx-tile", program="amx-run: ")


if __name__ == "__main__":
    unittest.main()
