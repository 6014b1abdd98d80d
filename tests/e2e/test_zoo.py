"""One tiny model per architecture, with every optional tensor, against llama.cpp in float32."""

import json
import unittest

from harness import TestCase, argmax, compiled, prompt_logits, shared

BOUND = 1e-4  # of the largest logit


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
                self.assertLessEqual(error / largest, BOUND)
                self.assertEqual([argmax(row) for row in rows], case["argmax"])


if __name__ == "__main__":
    unittest.main()
