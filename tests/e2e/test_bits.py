"""The same request gives the same bits: threads, chunks, prefill and decode, variants."""

import random
import unittest

import fixtures
from harness import TestCase, compiled, compiled_fixture, model, reference

THREADS = (1, 2, 3, 5)
CHUNKS = (1, 7, 64, 512)


STRICT = ("--numerics", "strict")


class Bits:
    """`artifact()`, `vocabulary`, `length` of the prompt and how many tokens are decoded."""

    length, decoded = 300, 12

    def setUp(self):
        super().setUp()
        self.loaded = self.load(self.artifact())
        rng = random.Random(7)
        self.prompt = [rng.randrange(self.loaded.vocabulary) for _ in range(self.length)]

    def logits(self, **options):
        with self.loaded.session(context=self.length, **options) as session:
            return session.prefill(self.prompt)

    def test_threads(self):
        expected = self.logits(threads=1)
        for threads in THREADS[1:]:
            with self.subTest(threads=threads):
                self.assertEqual(self.logits(threads=threads), expected)

    def test_chunks(self):
        expected = self.logits(threads=2)
        for chunk in CHUNKS:
            with self.subTest(chunk=chunk):
                self.assertEqual(self.logits(threads=2, chunk=chunk), expected)

    def test_threads_in_decode(self):
        def continued(threads):
            with self.loaded.session(threads=threads, context=self.length) as session:
                session.prefill(self.prompt[:20])
                return [session.decode(t) for t in self.prompt[20:20 + self.decoded]]

        expected = continued(1)
        for threads in THREADS[1:]:
            with self.subTest(threads=threads):
                self.assertEqual(continued(threads), expected)

    def test_prefill_equals_decode(self):
        """Every position, reached either way, and what a later position makes of it."""
        border = self.length - self.decoded
        with self.loaded.session(threads=2, context=self.length) as session:
            session.prefill(self.prompt[:border])
            decoded = [session.decode(t) for t in self.prompt[border:]]
            session.reset()
            for i, expected in enumerate(decoded):
                with self.subTest(position=border + i):
                    session.reset()
                    self.assertEqual(session.prefill(self.prompt[:border + i + 1]), expected)


class SmolBits(Bits, TestCase):
    def artifact(self):
        return compiled(model("smollm2-135m"), *STRICT)


class GemmaBits(Bits, TestCase):
    """Longer than its window of 512 positions."""

    length, decoded = 530, 4

    def artifact(self):
        return compiled(model("gemma3-270m"), *STRICT)


class RandomBits(Bits, TestCase):
    length = 256

    def artifact(self):
        return compiled_fixture(fixtures.random_model(), *STRICT)


class RandomF32Bits(Bits, TestCase):
    length = 256

    def artifact(self):
        return compiled_fixture(fixtures.random_model(), "--activations", "f32")


class Conversation(TestCase):
    """A conversation that is continued gives the tokens of a cold run."""

    def test_continued(self):
        prompt = reference("smollm2-135m")["prompts"][2]["ids"]
        loaded = self.load(compiled(model("smollm2-135m"), *STRICT))
        with loaded.session() as session:
            session.prefill(prompt)
            for token in prompt[:8]:
                session.decode(token)
            warm = session.prefill(prompt)
            session.reset()
            self.assertEqual(session.prefill(prompt + prompt[:8] + prompt), warm)


if __name__ == "__main__":
    unittest.main()
