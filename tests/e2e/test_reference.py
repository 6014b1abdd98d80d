"""The reference mode against PyTorch, and the default mode against the reference mode."""

import functools
import unittest

import harness
from harness import LLMC, TestCase, compiled, generate, model, prompt_logits, reference, succeed

TOP_LOGITS = 0.002  # absolute
PERPLEXITY = 0.0005  # relative


@functools.lru_cache(maxsize=None)
def evaluation(name):
    """The default mode on the reference's windows, against the model's own reference mode."""
    text = harness.shared("data/eval.txt")
    return succeed(LLMC, "eval", compiled(model(name)), "--text", text, "--windows",
                   reference(name)["eval"]["windows"], "--against",
                   compiled(model(name), "--activations", "f32"), "--json", timeout=900).json


class Reference:
    """`name`: the model."""

    def artifact(self):
        return compiled(model(self.name), "--activations", "f32")

    def test_top_logits(self):
        artifact = self.artifact()
        for prompt in reference(self.name)["prompts"]:
            with self.subTest(prompt=prompt["ids"]):
                row = prompt_logits(artifact, prompt["ids"])[-1]
                top = sorted(range(len(row)), key=row.__getitem__, reverse=True)[:20]
                self.assertEqual(top, prompt["top20_ids"])
                for token, logit in zip(top, prompt["top20_logits"]):
                    self.assertAlmostEqual(row[token], logit, delta=TOP_LOGITS)

    def test_greedy_tokens(self):
        artifact = self.artifact()
        for prompt in reference(self.name)["prompts"]:
            with self.subTest(prompt=prompt["ids"]):
                result = generate(artifact, prompt["ids"], 64, "--ignore-end")
                self.assertEqual(result["tokens"], prompt["greedy64"])

    def test_perplexity(self):
        expected = reference(self.name)["eval"]["ppl"]
        self.assertAlmostEqual(evaluation(self.name)["reference_ppl"], expected,
                               delta=PERPLEXITY * expected)


class SmolReference(Reference, TestCase):
    name = "smollm2-135m"


class GemmaReference(Reference, TestCase):
    name = "gemma3-270m"


class Fidelity:
    """The bounds are those of llama.cpp on the same text."""

    def test_divergence(self):
        result = evaluation(self.name)
        self.assertLessEqual(result["mean_kld"], self.mean_kld)
        self.assertLessEqual(result["kld_99_9"], self.kld_99_9)
        self.assertGreaterEqual(result["same_top"], self.same_top)


class SmolFidelity(Fidelity, TestCase):
    name, mean_kld, kld_99_9, same_top = "smollm2-135m", 0.0033, 0.032, 0.958


class GemmaFidelity(Fidelity, TestCase):
    name, mean_kld, kld_99_9, same_top = "gemma3-270m", 0.0055, 0.066, 0.960


if __name__ == "__main__":
    unittest.main()
