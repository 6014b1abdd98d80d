"""llmc-run --profile (field report i4) and --bench-verify."""

import collections
import json
import unittest

from harness import LLMC_RUN, TestCase, compiled, ids, model, reference, run, succeed

TOKENS = 40


class Profile(TestCase):
    def setUp(self):
        super().setUp()
        self.artifact = compiled(model("smollm2-135m"))
        self.prompt = ids(reference("smollm2-135m")["prompts"][0]["ids"])

    def profiled(self, *arguments):
        """llmc-run's JSON, the profile and the table of stderr."""
        path = self.folder / "profile.json"
        result = succeed(LLMC_RUN, self.artifact, "--json", "--profile", path, *arguments)
        return result.json, json.loads(path.read_text()), result.error

    def test_rows(self):
        output, profile, table = self.profiled("--tokens", self.prompt, "-n", TOKENS,
                                               "--ignore-end")
        self.assertEqual(len(output["tokens"]), TOKENS)
        rows = profile["dispatches"]
        decode = [row for row in rows if row["phase"] == "decode"]
        self.assertEqual({row["calls"] for row in decode}, {TOKENS - 1})
        per_layer = collections.Counter(row["layer"] for row in decode)
        layers = [layer for layer in per_layer if layer >= 0]
        self.assertEqual(sorted(layers), list(range(len(layers))))
        self.assertEqual(len({per_layer[layer] for layer in layers}), 1)
        for op in {row["op"] for row in rows}:
            self.assertIn(op, table)

    def check_sums(self, output, profile):
        """The dispatches' times against those of the generator, which include the choice of the
        token. Decoding has plain steps and those that verify."""
        sums = collections.Counter()
        for phase in profile["phases"]:
            rows = [row for row in profile["dispatches"] if row["phase"] == phase["phase"]]
            self.assertEqual(sum(row["ns"] for row in rows), phase["ns"])
            sums["prefill" if phase["phase"] == "prefill" else "decode"] += phase["ns"]
        for phase, ns in sums.items():
            wall = output["timings"][phase + "_ms"] * 1e6
            self.assertLessEqual(ns, wall)
            self.assertGreaterEqual(ns, 0.95 * wall, phase)

    def test_sums_are_wall_time(self):
        for length in (1, 512, 4096):
            with self.subTest(prompt=length):
                prompt = ids(3 + i % 300 for i in range(length))
                output, profile, _ = self.profiled("--tokens", prompt, "-n", TOKENS,
                                                   "--ignore-end")
                self.check_sums(output, profile)

    def test_sums_with_drafts(self):
        prompt = ids(list(range(300, 340)) * 3)
        output, profile, _ = self.profiled("--tokens", prompt, "-n", TOKENS, "--ignore-end",
                                           "--draft", "ngram", "--draft-always")
        self.assertIn("verify", [phase["phase"] for phase in profile["phases"]])
        self.check_sums(output, profile)

    def test_bench(self):
        output, profile, _ = self.profiled("--bench", "16,4", "--repeat", "2")
        steps = {phase["phase"]: phase["steps"] for phase in profile["phases"]}
        self.assertEqual(steps, {"prefill": 3, "decode": 12})
        self.assertIn("decode_tok_s", output)

    def test_unwritable(self):
        path = self.folder / "no" / "profile.json"
        result = run(LLMC_RUN, self.artifact, "--tokens", "1", "-n", "2", "--profile", path)
        self.assertEqual(result.code, 1)
        self.assertIn("cannot write " + str(path), result.error)

    def test_bench_verify(self):
        result = succeed(LLMC_RUN, self.artifact, "--bench-verify", "--repeat", "1", "--json").json
        self.assertEqual([row["tokens"] for row in result["steps"]], list(range(1, 17)))
        self.assertEqual(result["steps"][0]["relative"], 1)
        for row in result["steps"]:
            self.assertGreater(row["ms"], 0)


if __name__ == "__main__":
    unittest.main()
