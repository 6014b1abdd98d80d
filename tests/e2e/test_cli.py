"""The commands as people and programs use them: status, JSON, streams, chat."""

import json
import os
import re
import unittest

import fixtures
from harness import (LLMC, LLMC_RUN, TestCase, compiled, compiled_fixture, model, reference, run,
                     succeed)

PHASES = ("import", "fuse", "plan-kv", "schedule", "codegen")


def counting(**options):
    return fixtures.chain_model([(t + 1) % 64 for t in range(64)], **options)


class Status(TestCase):
    def test_success(self):
        for program in (LLMC, LLMC_RUN):
            self.assertEqual(run(program, "--help").code, 0)
        self.assertRegex(succeed(LLMC, "--version").text, r"^llmc \d+\.\d+\.\d+\n$")

    def test_mistakes(self):
        missing = self.folder / "missing"
        artifact = compiled_fixture(counting())
        for texts, command in (
                (["subcommand"], (LLMC,)),
                (["no-such"], (LLMC, "no-such")),
                (["model"], (LLMC, "compile")),
                (["missing"], (LLMC, "compile", missing)),
                (["missing"], (LLMC, "inspect", missing)),
                (["missing"], (LLMC, "eval", missing, "--text", __file__)),
                (["missing"], (LLMC, "eval", artifact, "--text", missing)),
                (["tokenizer"], (LLMC, "eval", artifact, "--text", __file__, "--window", 16)),
                (["missing"], (LLMC, "render-template", missing, missing)),
                (["missing"], (LLMC_RUN, missing, "--tokens", "1")),
                (["-p"], (LLMC_RUN, artifact)),
                (["999"], (LLMC_RUN, artifact, "--tokens", "1,999")),
                (["'x'"], (LLMC_RUN, artifact, "--tokens", "1,x"))):
            with self.subTest(command=command[1:]):
                program = os.path.basename(command[0]) + ": "
                self.assertRefused(run(*command), *texts, program=program)

    def test_unwritable_output(self):
        source = counting().write(self.folder / "model.gguf")
        self.assertRefused(run(LLMC, "compile", source, "-o", self.folder / "none/model.llmc"),
                           "none/model.llmc")
        self.assertEqual(os.listdir(self.folder), ["model.gguf"])

    def test_unknown_target(self):
        source = counting().write(self.folder / "model.gguf")
        self.assertRefused(run(LLMC, "compile", source, "-o", self.folder / "m.llmc", "--target",
                               "z80"), "z80", "x86-64-v3")


class Compile(TestCase):
    def test_phases(self):
        """--compile-to prints the IR of a phase; --dump-ir writes that of all."""
        source = counting().write(self.folder / "model.gguf")
        dumps = self.folder / "ir"
        succeed(LLMC, "compile", source, "-o", self.folder / "m.llmc", "--dump-ir", dumps)
        written = {re.sub(r"^\d+-|\.mlir$", "", name) for name in os.listdir(dumps)
                   if name.endswith(".mlir")}
        for phase in PHASES:
            with self.subTest(phase=phase):
                printed = succeed(LLMC, "compile", source, "--compile-to", phase)
                self.assertIn("module", printed.text)
                if phase != "codegen":
                    self.assertIn(phase, written)
        self.assertEqual(sorted(os.listdir(self.folder)), ["ir", "m.llmc", "model.gguf"])

    def test_context(self):
        artifact = compiled_fixture(counting(), "--context", "16")
        self.assertEqual(succeed(LLMC, "inspect", "--json", artifact).json["model"]
                         ["context_length"], 16)

    def test_same_source_same_bytes(self):
        source = counting().write(self.folder / "model.gguf")
        artifacts = []
        for i in range(2):
            path = self.folder / ("%d.llmc" % i)
            succeed(LLMC, "compile", source, "-o", path)
            artifacts.append(path.read_bytes())
        self.assertEqual(*artifacts)


class Inspect(TestCase):
    def test_artifact(self):
        artifact = compiled(model("smollm2-135m"))
        report = succeed(LLMC, "inspect", "--json", artifact).json
        self.assertEqual(report["bytes"], artifact.stat().st_size)
        self.assertEqual((report["model"]["layers"], report["model"]["vocabulary"]), (30, 49152))
        self.assertEqual(report["model"]["activations"], "int8")
        self.assertIn(report["model"]["numerics"], ("strict", "fast"))
        self.assertLessEqual({"decode", "prefill"}, {p["program"] for p in report["programs"]})
        for program in report["programs"]:
            self.assertGreater(program["dispatches"], program["dispatches_per_layer"])
            self.assertGreater(program["barriers"], 0)
            # A step reads every weight once; of the embedding, tied to the output, one row more.
            weights = sum(w["bytes"] for w in report["weights"])
            self.assertAlmostEqual(program["weight_bytes"], weights, delta=1024)
        self.assertEqual(len(report["kv"]), 30)
        # Quantized weights keep their own format.
        encodings = {row["encoding"]: row for row in report["encodings"]}
        self.assertAlmostEqual(encodings["q4_1"]["bits_per_weight"], 5, delta=0.01)
        self.assertEqual(sum(w["bytes"] for w in report["weights"]),
                         sum(row["bytes"] for row in report["encodings"]))
        text = succeed(LLMC, "inspect", artifact).text
        for heading in ("model", "tokenizer", "variants", "programs", "weights", "sections"):
            self.assertIn("\n%s\n" % heading, text)

    def test_gguf(self):
        source = counting().write(self.folder / "model.gguf")
        report = succeed(LLMC, "inspect", "--json", source).json
        self.assertEqual((report["format"], report["version"]), ("gguf", 3))
        first = report["tensors"][0]
        self.assertEqual((first["name"], first["encoding"], first["shape"], first["bytes"]),
                         ("token_embd.weight", "f32", [64, 64], 4 * 64 * 64))
        self.assertIn({"key": "llama.block_count", "type": "u32", "value": "1"},
                      report["metadata"])
        self.assertIn("llama.block_count", succeed(LLMC, "inspect", source).text)

    def test_hostile_text_is_escaped(self):
        source = counting().set("general.name", "\x1b[2J").write(self.folder / "model.gguf")
        self.assertNotIn(b"\x1b", succeed(LLMC, "inspect", source).stdout)


class Run(TestCase):
    def test_json(self):
        artifact = compiled_fixture(counting())
        result = succeed(LLMC_RUN, artifact, "--tokens", "3,4", "-n", "5", "--temp", "0",
                         "--json").json
        self.assertEqual((result["tokens"], result["finish_reason"]), ([5, 6, 7, 8, 9], "length"))
        self.assertEqual(result["usage"], {"prompt_tokens": 2, "completion_tokens": 5,
                                           "total_tokens": 7})
        self.assertLessEqual({"load_ms", "prefill_ms", "decode_ms", "prefill_tok_s",
                              "decode_tok_s"}, result["timings"].keys())

    def test_bench(self):
        result = succeed(LLMC_RUN, compiled_fixture(counting()), "--bench", "16,8", "--repeat", "1",
                         "--json").json
        for key in ("prefill_tok_s", "decode_tok_s", "ttft_ms", "read_gb_s", "bandwidth_gb_s"):
            self.assertGreater(result[key], 0, key)

    def test_same_seed_same_tokens(self):
        artifact = compiled_fixture(fixtures.random_model())
        draw = lambda seed: succeed(LLMC_RUN, artifact, "--tokens", "1,2", "-n", "24", "--temp",
                                    "1.5", "--seed", seed, "--json").json["tokens"]
        self.assertEqual(draw(7), draw(7))
        self.assertNotEqual(draw(7), draw(8))

    def test_progress_stays_off_pipes(self):
        source = counting().write(self.folder / "model.gguf")
        self.assertEqual(succeed(LLMC, "compile", source, "-o", self.folder / "m.llmc").error, "")


class RealModels(TestCase):
    def test_prompt(self):
        """Text in, text out, as the ids of the reference say."""
        expected = reference("smollm2-135m")["prompts"][0]
        artifact = compiled(model("smollm2-135m"), "--activations", "f32")
        result = succeed(LLMC_RUN, artifact, "-p", "The capital of France is", "-n", "16",
                         "--temp", "0", "--ignore-end", "--json").json
        self.assertEqual(result["usage"]["prompt_tokens"], len(expected["ids"]))
        self.assertEqual(result["tokens"], expected["greedy64"][:16])
        self.assertIn("Paris", result["text"])

    def test_chat(self):
        """The template's tokens, an answer, an end by the model itself; text on stdout only."""
        artifact = compiled(model("smollm2-135m"), "--activations", "f32")
        question = ("--chat", "-p", "What is the capital of France?", "--temp", "0", "-n", "64")
        result = succeed(LLMC_RUN, artifact, *question, "--json").json
        self.assertIn("Paris", result["text"])
        self.assertEqual(result["finish_reason"], "stop")
        self.assertNotIn("<|im_end|>", result["text"])
        streamed = succeed(LLMC_RUN, artifact, *question)
        self.assertEqual(streamed.text, result["text"] + "\n")
        self.assertIn("tokens/s", streamed.error)

    def test_eval(self):
        artifact = compiled(model("smollm2-135m"))
        result = succeed(LLMC, "eval", artifact, "--text", __file__, "--window", "64", "--windows",
                         "2", "--against", artifact, "--json").json
        self.assertEqual((result["tokens"], len(result["nll_per_window"])), (64, 2))
        self.assertEqual((result["mean_kld"], result["kld_99_9"], result["same_top"]), (0, 0, 1))
        self.assertAlmostEqual(result["ppl"], result["reference_ppl"], places=9)
        text = self.folder / "short.txt"
        text.write_text("Too short.")
        self.assertRefused(run(LLMC, "eval", artifact, "--text", text), "short.txt", "fewer", "512")
        self.assertRefused(run(LLMC, "eval", artifact, "--text", text, "--window", "9999"),
                           artifact.name, "9999", "8192")

    def test_conversation(self):
        """Two turns from standard input; the second is computed on top of the first."""
        artifact = compiled(model("smollm2-135m"))
        lines = succeed(LLMC_RUN, artifact, "--chat", "--temp", "0", "-n", "24", "--json",
                        input=b"What is 2 + 2?\nAnd why?\n").text.splitlines()
        first, second = map(json.loads, lines)
        self.assertGreater(second["usage"]["prompt_tokens"], first["usage"]["prompt_tokens"] +
                           first["usage"]["completion_tokens"])

    def test_stop_string(self):
        artifact = compiled(model("smollm2-135m"))
        plain = succeed(LLMC_RUN, artifact, "-p", "One, two, three,", "-n", "24", "--temp", "0",
                        "--ignore-end", "--json").json["text"]
        stop = plain[8:12]
        result = succeed(LLMC_RUN, artifact, "-p", "One, two, three,", "-n", "24", "--temp", "0",
                         "--ignore-end", "--json", "--stop", stop).json
        self.assertEqual(result["text"], plain[:plain.index(stop)])
        self.assertEqual(result["finish_reason"], "stop")


if __name__ == "__main__":
    unittest.main()
