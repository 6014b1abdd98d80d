"""Field reports a1 to a13: what GGUF files look like in the wild."""

import os
import pathlib
import unittest

import fixtures
from fixtures import random_model
from harness import (LLMC, TestCase, compiled_fixture, generate, measured, prompt_logits, run,
                     succeed)

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]
KB = 1024


def logits(gguf, *arguments, prompt=PROMPT):
    """All logits of the prompt, of the model in float32."""
    artifact = compiled_fixture(gguf, "--activations", "f32", *arguments)
    return [list(row) for row in prompt_logits(artifact, prompt)]


class Refusals(TestCase):
    def compile(self, data):
        source, output = self.folder / "model.gguf", self.folder / "model.llmc"
        source.write_bytes(data)
        result = measured(LLMC, "compile", source, "-o", output)
        self.assertEqual(sorted(os.listdir(self.folder)), ["model.gguf"] +
                         (["model.llmc"] if result.code == 0 else []))
        return result

    def test_spoiled_headers(self):
        """a1, a2, a4, a5, a8 to a11: a clean refusal that names the field."""
        idle = measured(LLMC, "--version").peak_kb
        for name, (data, texts) in fixtures.spoiled_headers().items():
            with self.subTest(file=name):
                result = self.assertRefused(self.compile(data), "model.gguf", *texts)
                self.assertLess(result.peak_kb - idle, 64 * KB)
                self.assertLess(result.seconds, 5)  # 1 s on a machine that does nothing else

    def test_truncated_downloads(self):
        """a3: every cut is refused with the size needed and the size there."""
        data = random_model(pad_last=False).bytes()
        for size in [len(data) * i // 20 for i in range(1, 20)] + [len(data) - 1]:
            with self.subTest(size=size):
                result = self.assertRefused(self.compile(data[:size]), "truncated", size)
                needed = [int(word) for word in result.error.replace(",", " ").split()
                          if word.isdigit() and int(word) > size]
                self.assertTrue(needed, result.error)
        self.assertEqual(self.compile(data).code, 0)

    def test_unknown_type_is_not_corruption(self):
        """a8: a type from the future is told apart from a damaged file."""
        spoiled = fixtures.spoiled_headers()
        for name in ("type-39", "type-139"):
            error = self.compile(spoiled[name][0]).error
            self.assertNotIn("corrupt", error)
            self.assertNotIn("truncated", error)


class Alignment(TestCase):
    """a5. The sweep over all header lengths is a unit test of the reader."""

    def test_every_tensor_has_its_own_bytes(self):
        for alignment in (16, 64, 4096):
            for length in (0, 7, 16, 31):
                for pad in (True, False):
                    with self.subTest(alignment=alignment, length=length, pad=pad):
                        path = fixtures.three_tensors(alignment, length, pad).write(
                            self.folder / "three.gguf")
                        listing = succeed(LLMC, "inspect", "--stats", "--json", path).json
                        self.assertEqual([t["mean"] for t in listing["tensors"]], [1, 2, 3])


class Equalities(TestCase):
    def test_tied_embedding(self):
        """a6: the logits are equal, and the file does not carry the table twice."""
        tied, untied = random_model(), random_model(tied=False)
        self.assertEqual(logits(tied), logits(untied))
        table = 4 * 256 * 64
        self.assertLess(compiled_fixture(tied, "--activations", "f32").stat().st_size,
                        compiled_fixture(untied, "--activations", "f32").stat().st_size -
                        table // 2)

    def test_head_counts(self):
        """a11: scalar, one per layer, or absent."""
        variants = fixtures.variants()
        self.assertEqual(logits(variants["kv-array"]), logits(variants["rand"]))
        self.assertEqual(logits(variants["kv-absent-mha"]), logits(variants["kv-scalar-mha"]))

    def test_rope_factors(self):
        """a12: factors of 1 change nothing, factors of 2 halve every inverse frequency."""
        variants = fixtures.variants()
        prompt = PROMPT * 3
        plain = logits(variants["rand"], prompt=prompt)
        self.assertEqual(logits(variants["rope-ones"], prompt=prompt), plain)
        halved = logits(variants["rope-twos"], prompt=prompt)
        self.assertEqual(halved[0], plain[0])
        self.assertNotEqual(halved[40], plain[40])
        self.assertEqual(halved, logits(variants["rope-linear2"], prompt=prompt))

    def test_fused_tensors(self):
        variants = fixtures.variants()
        self.assertEqual(logits(variants["rand-fused-qkv"]), logits(variants["rand"]))

    def test_unknown_pre_tokenizer(self):
        """a13: the refusal names what is known and the flag that helps; the flag helps."""
        variants = fixtures.variants()
        source, output = self.folder / "model.gguf", self.folder / "model.llmc"
        variants["pre-unknown"].write(source)
        self.assertRefused(run(LLMC, "compile", source, "-o", output), "'no-such'", "qwen2",
                           "llama-bpe", "--pre")
        succeed(LLMC, "compile", source, "-o", output, "--pre", "qwen2")
        overridden = output.read_bytes()
        variants["pre-qwen2"].write(source)
        succeed(LLMC, "compile", source, "-o", output)
        self.assertEqual(overridden, output.read_bytes())


class SplitSets(TestCase):
    """a7."""

    def setUp(self):
        super().setUp()
        self.parts = fixtures.write_split(fixtures.split(random_model(), 3), self.folder / "m")
        self.whole = compiled_fixture(random_model())

    def compile(self, source):
        return run(LLMC, "compile", source, "-o", self.folder / "model.llmc")

    def test_any_part_gives_the_set(self):
        expected = generate(self.whole, PROMPT, 32)["tokens"]
        for part in self.parts[:2]:
            with self.subTest(part=part):
                result = self.compile(part)
                self.assertEqual(result.code, 0, result.error)
                self.assertEqual(generate(self.folder / "model.llmc", PROMPT, 32)["tokens"],
                                 expected)

    def test_missing_part_is_named(self):
        os.remove(self.parts[2])
        self.assertRefused(self.compile(self.parts[0]), "m-00003-of-00003.gguf")

    def test_joined_parts_are_refused(self):
        joined = self.folder / "joined.gguf"
        joined.write_bytes(b"".join(pathlib.Path(part).read_bytes() for part in self.parts))
        self.assertRefused(self.compile(joined), "joined shards")


class BigEndian(TestCase):
    def test_byte_order_is_named(self):
        """a9."""
        path = self.folder / "big.gguf"
        path.write_bytes(fixtures.byte_swapped(random_model()))
        for command in (("compile", path, "-o", self.folder / "out.llmc"), ("inspect", path)):
            self.assertRefused(run(LLMC, *command), "byte order")


class Encodings(TestCase):
    def test_every_type_generates(self):
        """Every block type goes the whole way, and prefill and decode agree in the default mode."""
        for encoding in fixtures.ENCODINGS:
            with self.subTest(encoding=encoding):
                gguf = random_model(width=256, mlp=256, encoding=encoding)
                artifact = compiled_fixture(gguf, "--numerics", "strict")
                tokens = generate(artifact, PROMPT, 8, "--ignore-end")["tokens"]
                rows = prompt_logits(artifact, PROMPT + tokens)
                for i, token in enumerate(tokens):
                    row = rows[len(PROMPT) - 1 + i]
                    self.assertEqual(max(range(len(row)), key=row.__getitem__), token)


if __name__ == "__main__":
    unittest.main()
