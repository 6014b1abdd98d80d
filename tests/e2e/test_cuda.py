"""Real and tiny models on CUDA kernels, in the emulator of tests/ptx, against their references."""

import json
import math
import unittest

import fixtures
from harness import (LLMC_RUN, TestCase, argmax, compiled, compiled_fixture, generate, has_cuda, model,
                     on_cuda, prompt_logits, reference, shared, succeed)

BOUND = 1e-4  # of the largest logit; starcoder2's reference: see test_zoo.py
FLOAT16_GELU_BOUND = {"starcoder2-dense.gguf": 2.1e-4}
MARGIN = 0.05  # logits nearer to each other than that may change places
MEAN_KL = 0.004


def mock(check, **settings):
    """The environment of a process that finds the emulator where the driver would be."""
    return on_cuda("check=" + check, **settings)


def on_device(env):
    """A program to run that is given the environment."""
    return ("env", *("%s=%s" % item for item in env.items()), LLMC_RUN)


def log_softmax(row):
    top = max(row)
    total = math.log(sum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


def mean_kl(rows, references):
    """Of the distributions that two lists of logits stand for."""
    total = 0.0
    for row, expected in zip(rows, references, strict=True):
        total += sum(math.exp(p) * (p - q)
                     for p, q in zip(log_softmax(expected), log_softmax(row)))
    return total / len(references)


@unittest.skipUnless(has_cuda(), "no emulator was built")
class Cuda(TestCase):
    def test_zoo(self):
        """Every architecture, with all checks."""
        for line in shared("zoo/reference-logits.jsonl").read_text().splitlines():
            case = json.loads(line)
            with self.subTest(model=case["model"]):
                artifact = compiled(shared("zoo/" + case["model"]), "--activations", "f32",
                                    "--target", "sm90")
                rows = prompt_logits(artifact, case["tokens"], "--device", "cuda",
                                     program=on_device(mock("full", count=0)))
                largest = max(map(abs, case["logits_last"]))
                error = max(abs(a - b) for a, b in zip(rows[-1], case["logits_last"], strict=True))
                self.assertLessEqual(error / largest,
                                     FLOAT16_GELU_BOUND.get(case["model"], BOUND))
                self.assertEqual([argmax(row) for row in rows], case["argmax_each"])

    def test_schedules(self):
        """Seeds and the landing of copies change nothing; nor do chunks of the prompt or drafts."""
        prompt = [5, 60, 7, 33, 12] * 9
        for encoding in ("q4_0", "q8_0"):
            artifact = compiled_fixture(
                fixtures.random_model(width=128, mlp=320, encoding=encoding, context=128),
                "--target", "sm80,sm90")
            runs = [(90, "full", 1, "late", ()), (90, "full", 2, "early", ()),
                    (90, "full", 3, "late", ("--draft", "ngram")), (80, "full", 1, "early", ())]
            results = [generate(artifact, prompt, 6, "--device", "cuda", *more,
                                env=mock(check, sm=sm, seed=seed, copies=copies, count=0))["tokens"]
                       for sm, check, seed, copies, more in runs]
            for result in results[1:]:
                self.assertEqual(result, results[0])

    def test_real_model(self):
        """SmolLM2's tokens are those of the float32 reference where it is sure of them."""
        expected = reference("smollm2-135m")["prompts"][0]
        artifact = compiled(model("smollm2-135m"), "--target", "sm90", "--context", "512")
        result = generate(artifact, expected["ids"], 16, "--device", "cuda", "--ignore-end",
                          env=mock("fast", count=0))
        tokens, wanted = result["tokens"], expected["greedy64"][:16]
        if tokens == wanted:
            return
        # The first other token must be one that the reference nearly chose.
        place = next(i for i, (a, b) in enumerate(zip(tokens, wanted)) if a != b)
        exact = compiled(model("smollm2-135m"), "--activations", "f32")
        row = prompt_logits(exact, expected["ids"] + wanted[:place])[-1]
        self.assertLess(row[wanted[place]] - row[tokens[place]], MARGIN)

    def test_divergence(self):
        """The logits of a window, against the reference mode on the CPU."""
        text = shared("data/eval.txt").read_text()[:600]
        artifact = compiled(model("smollm2-135m"), "--target", "sm90", "--context", "512")
        window = succeed(LLMC_RUN, artifact, "--tokenize", "-p", text, "--json").json["ids"][:64]
        exact = compiled(model("smollm2-135m"), "--activations", "f32")
        rows = prompt_logits(artifact, window, "--device", "cuda",
                             program=on_device(mock("fast", count=0)))
        self.assertLessEqual(mean_kl(rows, prompt_logits(exact, window)), MEAN_KL)

    def test_all_checks_on_a_real_model(self):
        """A prompt and a token of SmolLM2: no race, nothing out of bounds, nothing unwritten."""
        artifact = compiled(model("smollm2-135m"), "--target", "sm90", "--context", "512")
        succeed(LLMC_RUN, artifact, "--tokens", "504,3575", "-n", 2, "--temp", "0", "--device",
                "cuda", env=mock("full", seed=2, copies="early", count=0), timeout=600)


if __name__ == "__main__":
    unittest.main()
