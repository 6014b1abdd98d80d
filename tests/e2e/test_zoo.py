"""One tiny model per architecture, with every optional tensor, against llama.cpp in float32."""

import json
import unittest

from harness import TestCase, argmax, compiled, prompt_logits, shared

BOUND = 1e-4  # of the largest logit

# llama.cpp reads GELU from a table of float16 values, indexed by the float16 of its argument. In
# starcoder2's plain MLP that error reaches the logits: a float64 model with that table comes within
# 9e-7 of the reference, with GELU itself within 2.03e-4 of it and within 1e-6 of what is tested here.
FLOAT16_GELU_BOUND = {"starcoder2-dense.gguf": 2.1e-4}


class Zoo(TestCase):
    def test_logits(self):
        lines = shared("zoo/reference-logits.jsonl").read_text().splitlines()
        self.assertEqual(len(lines), 12)
        for line in lines:
            case = json.loads(line)
            with self.subTest(model=case["model"]):
                artifact = compiled(shared("zoo/" + case["model"]), "--activations", "f32")
                rows = prompt_logits(artifact, case["tokens"])
                largest = max(map(abs, case["logits_last"]))
                error = max(abs(a - b) for a, b in zip(rows[-1], case["logits_last"], strict=True))
                self.assertLessEqual(error / largest,
                                     FLOAT16_GELU_BOUND.get(case["model"], BOUND))
                self.assertEqual([argmax(row) for row in rows], case["argmax_each"])


if __name__ == "__main__":
    unittest.main()
