"""Models on a CUDA device, which is the emulator of tests/ptx behind the runtime's own driver calls."""

import json
import os
import sys
import unittest

import fixtures
from harness import (BIN, LLMC, LLMC_RUN, TestCase, compiled, compiled_fixture, generate, has_cuda,
                     ids, model, on_cuda, on_gpu, read_npy, reference, run, shared, succeed)

TARGET = ("--target", "sm90,native", "--context", "64")
PROMPT = [5, 60, 7, 33, 12]


def mock(settings="check=full,count=0", **others):
    """The environment of a process that finds the emulator where the driver would be."""
    return on_cuda(settings, **others)


def emulator_only(test):
    return unittest.skipIf(on_gpu(), "asks the emulator, or for its mistakes")(test)


# Prompt, generated and drafted tokens through the C interface.
BITS = """
import ctypes, sys
from harness import Model, _library
library, model = _library(), Model(sys.argv[1])
library.llmc_verify_logits.restype = ctypes.POINTER(ctypes.c_float)
library.llmc_model_device.restype = ctypes.c_char_p
assert library.llmc_model_device(model._handle) != b"cpu"
tokens, last = [5, 60, 7, 33, 12, 9, 77, 31], 4
with model.session(chunk=3) as session:
    rows = []
    for end in range(len(tokens) - last + 1, len(tokens) + 1):
        session.reset()
        rows.append(session.prefill(tokens[:end]))
    session.reset()
    session.prefill(tokens[:-last])
    assert rows == [session.decode(token) for token in tokens[-last:]], "decode"
    session.reset()
    session.prefill(tokens[:-last])
    assert library.llmc_verify(session._handle, (ctypes.c_int32 * last)(*tokens[-last:]),
                               ctypes.c_size_t(last)) == 0
    assert rows == [ctypes.string_at(library.llmc_verify_logits(session._handle, i),
                                     4 * model.vocabulary) for i in range(last)], "verify"
"""


def small(layers=3):
    return fixtures.random_model(layers=layers, encoding="q8_0", context=64)


@unittest.skipUnless(has_cuda(), "no emulator was built")
class Device(TestCase):
    def setUp(self):
        super().setUp()
        self.artifact = compiled_fixture(small(), *TARGET)

    def report(self, *command, **settings):
        """What the driver counted while a command ran."""
        path = self.folder / "report.json"
        succeed(*command, env=mock(report=path, **settings))
        return json.loads(path.read_text())

    def test_auto(self):
        config = succeed(LLMC_RUN, self.artifact, "--print-config", "--json", env=mock()).json
        self.assertEqual(config["variant"], "sm90")
        self.assertNotEqual(config["device"], "cpu")
        config = succeed(LLMC_RUN, self.artifact, "--print-config", "--json", "--device", "cpu",
                         env=mock()).json
        self.assertEqual(config["device"], "cpu")

    @emulator_only
    def test_auto_without_a_device(self):
        """The CPU does it, and one line says why."""
        expected = generate(self.artifact, PROMPT, 4, "--device", "cpu")["tokens"]
        result = succeed(LLMC_RUN, self.artifact, "--tokens", ids(PROMPT), "-n", 4, "--json",
                         env=mock(devices=0))
        self.assertEqual(result.json["tokens"], expected)
        self.assertRegex(result.error, r"\Allmc-run: using the CPU: CUDA_ERROR_NO_DEVICE .*\Z")

    @emulator_only
    def test_refusals(self):
        prompt = ("--tokens", "1,2", "-n", 1)
        only_cpu = compiled_fixture(small(), "--context", "64")
        for texts, artifact, arguments, settings in (
                (["--target sm90"], only_cpu, ["--device", "cuda"], {}),
                (["--target sm90"], only_cpu, ["--gpu-layers", 1], {}),
                (["NO_DEVICE"], self.artifact, ["--device", "cuda"], {"devices": 0}),
                (["NO_DEVICE"], self.artifact, ["--gpu-layers", 1], {"devices": 0}),
                (["no CUDA device 1"], self.artifact, ["--device", "cuda:1"], {}),
                (["9.0 or later", "8.6"], self.artifact, ["--device", "cuda"], {"sm": 86}),
                (["OUT_OF_MEMORY", "MiB are free"], self.artifact, ["--device", "cuda"],
                 {"memory": 4096}),
                (["--gpu-layers"], self.artifact, ["--device", "cpu", "--gpu-layers", 1], {}),
                (["tpu"], self.artifact, ["--device", "tpu"], {})):
            with self.subTest(texts=texts):
                self.assertRefused(run(LLMC_RUN, artifact, *prompt, *arguments,
                                       env=mock(**settings)), *texts, program="llmc-run: ")

    def test_same_tokens(self):
        expected = generate(self.artifact, PROMPT, 8, "--device", "cpu")["tokens"]
        for seed in (1, 2):
            self.assertEqual(generate(self.artifact, PROMPT, 8, "--device", "cuda",
                                      env=mock(seed=seed))["tokens"], expected)

    def test_layers(self):
        """Any number of them; and the driver is asked for no more than they need."""
        expected = generate(self.artifact, PROMPT, 6, "--device", "cpu")["tokens"]
        launches = []
        for layers in range(4):
            with self.subTest(layers=layers):
                path = self.folder / ("%d.json" % layers)
                got = generate(self.artifact, PROMPT, 6, "--gpu-layers", layers,
                               env=mock(report=path))
                self.assertEqual(got["tokens"], expected)
                kernels = json.loads(path.read_text())["kernels"] if path.exists() else {}
                launches.append(sum(k["launches"] for k in kernels.values()))
        if on_gpu():
            return
        # Each layer has as many kernels; whole programs have the logits and the pick besides.
        first, second, third = (b - a for a, b in zip(launches, launches[1:]))
        self.assertEqual(launches[0], 0)
        self.assertGreater(first, second)
        self.assertGreater(third, second)

    def test_logits(self):
        """All rows of a prompt, as near as another order of sums allows."""
        rows = []
        for device, env in (("cpu", {}), ("cuda", mock())):
            path = self.folder / (device + ".npy")
            succeed(LLMC_RUN, self.artifact, "--tokens", ids(PROMPT), "--logits", path,
                    "--device", device, env=env)
            positions, vocabulary, values = read_npy(path)
            self.assertEqual((positions, vocabulary), (len(PROMPT), 256))
            rows.append(values)
        bar = 2e-3 * max(map(abs, rows[0]))
        self.assertLess(max(abs(a - b) for a, b in zip(*rows)), bar)

    def test_bits(self):
        """How a token is computed, as prompt, generated or drafted, leaves no trace in its logits."""
        for encoding in ("q8_0", "q4_0", "f32"):
            artifact = compiled_fixture(fixtures.random_model(encoding=encoding, context=64),
                                        *TARGET)
            succeed(sys.executable, "-c", BITS, artifact,
                    env={**mock(), "LLMC_BIN": str(BIN),
                         "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))})

    def test_layers_of_a_real_model(self):
        """Ten of thirty layers: the residual stream and the rope's rows go over, once per step."""
        artifact = compiled(model("smollm2-135m"), "--target", "sm90,native", "--context", "512")
        prompt = reference("smollm2-135m")["prompts"][0]["ids"]
        path = self.folder / "report.json"
        got = generate(artifact, prompt, 6, "--gpu-layers", 10,
                       env=mock("check=fast,count=0", report=path))
        self.assertEqual(got["tokens"], generate(artifact, prompt, 6, "--device", "cpu")["tokens"])
        if on_gpu():
            return
        calls = json.loads(path.read_text())["calls"]
        self.assertEqual((calls["cuGraphLaunch"], calls["cuMemcpyDtoHAsync_v2"]), (6, 12))

    def test_layers_of_architectures(self):
        """What is live between layers: two rope tables, norms behind, layer norms, biases."""
        for name in ("gemma3", "starcoder2"):
            with self.subTest(architecture=name):
                artifact = compiled(shared("zoo/%s-dense.gguf" % name), "--target", "sm90,native")
                got = generate(artifact, PROMPT, 6, "--gpu-layers", 1, env=mock())
                self.assertEqual(got["tokens"],
                                 generate(artifact, PROMPT, 6, "--device", "cpu")["tokens"])

    def test_sampling(self):
        """The sampler gets the device's logits: the seed gives the same tokens again."""
        sample = ("--tokens", ids(PROMPT), "-n", 6, "--temp", "1.5", "--seed", 3, "--json")
        texts = [succeed(LLMC_RUN, self.artifact, *sample, env=mock(seed=seed)).json["tokens"]
                 for seed in (1, 2)]
        self.assertEqual(*texts)

    def test_eval(self):
        artifact = compiled_fixture(fixtures.random_model(
            vocabulary=259, tokenizer=fixtures.spm_vocabulary(), context=64), *TARGET)
        text = self.folder / "text"
        text.write_text("what is scored does not matter, the two devices agree")
        result = succeed(LLMC, "eval", artifact, "--text", text, "--window", 16, "--windows", 2,
                         "--device", "cuda", "--against", compiled_fixture(
                             fixtures.random_model(vocabulary=259, context=64,
                                                   tokenizer=fixtures.spm_vocabulary()),
                             "--context", "64"), "--json", env=mock()).json
        self.assertLess(abs(result["mean_kld"]), 1e-4)
        self.assertAlmostEqual(result["ppl"] / result["reference_ppl"], 1, delta=1e-3)

    def test_bench_and_profile(self):
        profile = self.folder / "profile.json"
        bench = succeed(LLMC_RUN, self.artifact, "--bench", "4,2", "--repeat", 1, "--json",
                        "--profile", profile, env=mock()).json
        self.assertNotEqual(bench["device"], "cpu")
        self.assertGreater(bench["bandwidth_gb_s"], 100)
        rows = json.loads(profile.read_text())["dispatches"]
        self.assertTrue({"qkv", "attention", "logits"} <= {row["op"] for row in rows})
        self.assertTrue(all(row["ns"] > 0 for row in rows if row["phase"] == "decode"))

    @emulator_only
    def test_text_needs_no_device(self):
        """A vocabulary is read without looking for a driver."""
        artifact = compiled_fixture(fixtures.random_model(
            vocabulary=259, tokenizer=fixtures.spm_vocabulary()), "--target", "sm90")
        result = succeed(LLMC_RUN, artifact, "--tokenize", "-p", "ab", env=mock(devices=0))
        self.assertEqual(result.error, "")

    def test_inspect(self):
        report = succeed(LLMC, "inspect", "--json", self.artifact).json
        gpu, cpu = report["variants"]
        self.assertEqual((gpu["target"], gpu["device"], cpu["device"]), ("sm90", "cuda", "cpu"))
        self.assertGreater(gpu["ptx_bytes"], 0)
        self.assertNotEqual(gpu["weights"], cpu["weights"])
        kernels = {row["kernel"] for row in report["launches"]}
        self.assertTrue(any("qkv" in kernel for kernel in kernels), kernels)
        for program in report["programs"]:
            self.assertEqual(program["boundaries"], 2)
            # The residual stream and a row of the rope table.
            self.assertEqual(program["boundary_bytes_per_row"], 4 * 64 + 4 * 16)
        self.assertIn("launches\n", succeed(LLMC, "inspect", self.artifact).text)

    def test_inspect_what_others_wrote(self):
        """A header need not have what only people read."""
        writer, artifact = BIN / "llmc_capi_fixture", self.folder / "chain.llmc"
        if not writer.exists():
            self.skipTest("no test program that writes artifacts")
        succeed(writer, artifact, "cuda")
        self.assertEqual(len(succeed(LLMC, "inspect", "--json", artifact).json["variants"]), 2)

    @emulator_only
    def test_one_copy_per_token(self):
        """Greedy generation launches and waits, no more."""
        few = self.report(LLMC_RUN, self.artifact, "--tokens", "1,2", "-n", 2)["calls"]
        many = self.report(LLMC_RUN, self.artifact, "--tokens", "1,2", "-n", 9)["calls"]
        grown = {name for name in many if many[name] != few[name]}
        self.assertEqual(grown, {"cuGraphLaunch", "cuStreamSynchronize"})
        self.assertEqual(many["cuGraphLaunch"], 9)


if __name__ == "__main__":
    unittest.main()
