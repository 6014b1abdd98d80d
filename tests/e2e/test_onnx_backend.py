"""A fixed part of the ONNX project's backend node tests; onnx_backend.py runs all of them."""

import os
import unittest

import harness
import onnx_backend

NAMES = (harness.DATA / "onnx-backend/cases.txt").read_text().split()


class BackendNodeTests(unittest.TestCase):
    def test_a_fixed_part_passes(self):
        numpy, onnx = onnx_backend.package()
        known = {case.name: case for case in onnx_backend.cases(numpy, onnx)}
        chosen = [known[name] for name in NAMES if name in known]
        self.assertGreater(len(chosen), len(NAMES) // 2, "another package than expected")
        verdicts = onnx_backend.run_all(numpy, onnx, chosen, len(os.sched_getaffinity(0)))
        for name, (verdict, reason, _) in verdicts.items():
            with self.subTest(name):
                self.assertIn(verdict, ("pass", "constant"), reason)

    def test_a_wrong_result_is_seen(self):
        numpy, onnx = onnx_backend.package()
        case = next(c for c in onnx_backend.cases(numpy, onnx) if c.name == "test_relu")
        expected = onnx.numpy_helper.to_array(case.outputs[0])
        self.assertEqual(onnx_backend.difference(numpy, case, expected, expected), "")
        self.assertIn("Mismatch",
                      onnx_backend.difference(numpy, case, expected + 0.01, expected))
        self.assertIn("shape", onnx_backend.difference(numpy, case, expected[:1], expected))


if __name__ == "__main__":
    unittest.main()
