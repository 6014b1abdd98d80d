"""Field reports f1 and f5: the context limit, and rope scaling as it was read."""

import unittest

import fixtures
from harness import LLMC, LLMC_RUN, TestCase, compiled_fixture, ids, run, succeed


class ContextLimit(TestCase):
    """f1: a prompt that is too long is refused, never cut."""

    def setUp(self):
        super().setUp()
        self.artifact = compiled_fixture(
            fixtures.chain_model([(t + 1) % 64 for t in range(64)], context=64))

    def test_longer_prompt(self):
        prompt = ids(t % 64 for t in range(65))
        for command in (("-n", "1"), ("--logits", self.folder / "logits.npy")):
            with self.subTest(command=command):
                self.assertRefused(run(LLMC_RUN, self.artifact, "--tokens", prompt, *command), "65",
                                   "64", program="llmc-run: ")
        self.assertFalse((self.folder / "logits.npy").exists())

    def test_full_prompt(self):
        result = succeed(LLMC_RUN, self.artifact, "--tokens", ids(range(64)), "--json").json
        self.assertEqual((result["tokens"], result["finish_reason"]), ([], "length"))

    def test_generation_ends_at_the_limit(self):
        result = succeed(LLMC_RUN, self.artifact, "--tokens", ids(range(60)), "--json", "--temp",
                         "0").json
        self.assertEqual(result["finish_reason"], "length")
        # The last token is known without being computed, so it needs no position.
        self.assertEqual(result["tokens"], [60, 61, 62, 63, 0][:len(result["tokens"])])
        self.assertIn(len(result["tokens"]), (4, 5))

    def test_smaller_limit(self):
        self.assertRefused(run(LLMC_RUN, self.artifact, "--tokens", ids(range(33)), "--context",
                               "32"), "33", "32", program="llmc-run: ")
        self.assertRefused(run(LLMC_RUN, self.artifact, "--tokens", "1", "--context", "65"), "65",
                           "64", "--context", program="llmc-run: ")


class Rope(TestCase):
    """f5: what `llmc inspect --rope` prints."""

    def rope(self, name):
        path = fixtures.variants()[name].write(self.folder / "model.gguf")
        tables = succeed(LLMC, "inspect", "--rope", "--json", path).json["rope"]
        self.assertEqual(len(tables), 1)
        self.text = succeed(LLMC, "inspect", "--rope", path).text
        return tables[0]

    def test_yarn(self):
        self.assertAlmostEqual(self.rope("rope-yarn4")["attention_scale"], 1.138629, delta=5e-7)
        self.assertIn("1.138629", self.text)
        self.assertEqual(self.rope("rope-yarn4-explicit")["attention_scale"], 1.0)

    def test_llama3(self):
        self.assertAlmostEqual(self.rope("rope-llama3")["last_inverse_frequency"], 9.4183e-08,
                               delta=5e-13)
        self.assertIn("9.4183", self.text)


if __name__ == "__main__":
    unittest.main()
