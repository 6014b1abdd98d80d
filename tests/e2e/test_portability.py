"""Field reports h1, h2, h5: threads, instruction sets, versions and damage."""

import os
import shutil
import struct
import unittest

import fixtures
from harness import (LLMC, LLMC_RUN, TestCase, compiled, compiled_fixture, emulated, generate, ids,
                     model, prompt_logits, reference, run, shared, succeed)

VARIANTS = ("x86-64-v4+vnni", "x86-64-v3")


class Threads(TestCase):
    """h1. How quotas are read and nested is the unit test of runtime/base."""

    def config(self, *prefix, env=None):
        return succeed(*prefix, LLMC_RUN, "--print-config", "--json", env=env).json

    def test_affinity_mask(self):
        if not shutil.which("taskset"):
            self.skipTest("no taskset")
        cpu = min(os.sched_getaffinity(0))
        config = self.config("taskset", "-c", cpu)
        self.assertEqual((config["threads"], config["affinity_cpus"]), (1, 1))

    def test_within_the_mask(self):
        self.assertLessEqual(self.config()["threads"], len(os.sched_getaffinity(0)))

    def test_quota(self):
        enter = self.in_control_group(("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", 150000),
                                      ("/sys/fs/cgroup", "cpu.max", "150000 100000"))
        config = self.config(*enter)
        self.assertEqual((config["threads"], config["cpu_quota"]), (1, 1.5))
        override = succeed(*enter, LLMC_RUN, "--print-config", "--json", "--threads", "3").json
        self.assertEqual(override["threads"], 3)

    def test_override_wins(self):
        config = succeed(LLMC_RUN, "--print-config", "--json", "--threads", "5").json
        self.assertEqual(config["threads"], 5)


class InstructionSets(TestCase):
    """h2: a lower variant with equal tokens, or the missing feature by name; never a signal."""

    PROMPT = [3, 1, 4, 1, 5]

    def emulate(self, cpu, artifact, *arguments):
        result = run(*emulated("x86_64", cpu), artifact, "--tokens", ids(self.PROMPT), "-n",
                     "16", "--temp", "0", "--json", *arguments)
        # What the emulator says of the CPU model is its own.
        result.stderr = b"".join(line for line in result.stderr.splitlines(keepends=True)
                                 if not line.startswith(b"qemu-"))
        return result

    def artifact(self, *targets):
        return compiled_fixture(fixtures.random_model(), "--target", ",".join(targets))

    def test_lower_variant(self):
        both = self.artifact(*VARIANTS)
        expected = generate(both, self.PROMPT, 16, "--variant", "x86-64-v3")["tokens"]
        result = self.emulate("Haswell", both)
        self.assertEqual(result.code, 0, result.error)
        self.assertEqual(result.json["tokens"], expected)

    def test_missing_feature_is_named(self):
        for cpu, target, feature in (("Haswell", "x86-64-v4+vnni", "avx512f"),
                                     ("Nehalem", "x86-64-v3", "avx2")):
            with self.subTest(cpu=cpu):
                self.assertRefused(self.emulate(cpu, self.artifact(target)), target, feature,
                                   "--target", program="llmc-run: ")

    def test_variant_asked_for(self):
        both = self.artifact(*VARIANTS)
        self.assertRefused(self.emulate("Haswell", both, "--variant", "x86-64-v4+vnni"), "avx512f",
                           program="llmc-run: ")
        self.assertRefused(run(LLMC_RUN, both, "--tokens", "1", "--variant", "none"), "'none'",
                           *VARIANTS, program="llmc-run: ")


class AArch64(TestCase):
    """Artifacts compiled here for AArch64 give the bits and the tokens of this machine there."""

    TARGETS = "native,aarch64,aarch64+i8mm"
    # The first has i8mm, the second dotprod only; the best variant is taken on each.
    CPUS = ("max", "cortex-a76")
    PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 89]

    def assertSameEverywhere(self, artifact, prompt, count, *cpus):
        logits, tokens = prompt_logits(artifact, prompt), generate(artifact, prompt, count)["tokens"]
        for cpu in cpus or self.CPUS:
            with self.subTest(cpu=cpu):
                program = emulated("aarch64", cpu)
                self.assertEqual(prompt_logits(artifact, prompt, program=program), logits)
                self.assertEqual(generate(artifact, prompt, count, program=program)["tokens"],
                                 tokens)

    def test_random_models(self):
        # Nibbles, codes of 8 bits, sub-scales; then float32 everywhere.
        for encoding, size, activations in (("q4_1", 64, "int8"), ("q8_0", 64, "int8"),
                                            ("q6_k", 256, "int8"), ("q4_0", 64, "f32")):
            with self.subTest(encoding=encoding, activations=activations):
                gguf = fixtures.random_model(encoding=encoding, width=size, mlp=2 * size)
                self.assertSameEverywhere(
                    compiled_fixture(gguf, "--target", self.TARGETS, "--activations", activations,
                                     "--numerics", "strict"),
                    self.PROMPT, 24)

    def test_other_architectures(self):
        for name in ("gemma2", "starcoder2"):
            with self.subTest(model=name):
                source = shared("zoo/%s-dense.gguf" % name)
                self.assertSameEverywhere(compiled(source, "--target", self.TARGETS, "--numerics",
                                                   "strict"), self.PROMPT, 8, "max")

    def test_real_model(self):
        prompt = reference("smollm2-135m")["prompts"][0]["ids"][:8]
        artifact = compiled(model("smollm2-135m"), "--target", self.TARGETS, "--numerics",
                            "strict")
        self.assertSameEverywhere(artifact, prompt, 4, "max")

    def test_threads(self):
        artifact = compiled_fixture(fixtures.random_model(encoding="q4_1"), "--target",
                                    self.TARGETS, "--numerics", "strict")
        expected = generate(artifact, self.PROMPT, 24)["tokens"]
        for threads in (1, 2, 3):
            got = generate(artifact, self.PROMPT, 24, "--threads", threads,
                           program=emulated("aarch64", "max"))
            self.assertEqual(got["tokens"], expected)

    def test_nothing_fits(self):
        gguf = fixtures.random_model(encoding="q4_1")
        for cpu, targets, text in (("cortex-a53", "aarch64,aarch64+i8mm", "dotprod"),
                                   ("cortex-a76", "aarch64+i8mm", "needs i8mm"),
                                   ("max", "x86-64-v3", "x86_64")):
            with self.subTest(cpu=cpu, targets=targets):
                artifact = compiled_fixture(gguf, "--target", targets)
                result = run(*emulated("aarch64", cpu), artifact, "--tokens", "1", "-n", "1")
                self.assertRefused(result, text, "no variant runs on this CPU", "--target aarch64",
                                   program="llmc-run: ")
        if os.uname().machine == "x86_64":
            artifact = compiled_fixture(gguf, "--target", "aarch64")
            self.assertRefused(run(LLMC_RUN, artifact, "--tokens", "1", "-n", "1"), "aarch64",
                               "--target x86-64-v3", program="llmc-run: ")

    def test_weights_are_stored_once(self):
        gguf = fixtures.random_model(encoding="q4_1", vocabulary=4096)
        sizes = [compiled_fixture(gguf, "--target", targets).stat().st_size
                 for targets in ("x86-64-v3", "aarch64", "x86-64-v3,aarch64")]
        weights = gguf.bytes()
        self.assertLess(sizes[2], sizes[0] + sizes[1] - len(weights) * 0.9)


class Variants(TestCase):
    """Several variants in one artifact share the weights and give the same bits."""

    def variants(self, artifact):
        listing = succeed(LLMC, "inspect", "--json", artifact).json
        self.assertEqual([v["target"] for v in listing["variants"]], list(VARIANTS))
        return [v["target"] for v in listing["variants"] if v["runs_here"] == "yes"]

    def assertSameBits(self, artifact, prompt):
        runnable = self.variants(artifact)
        if len(runnable) < 2:
            self.skipTest("this CPU runs only %s" % runnable)
        results = []
        for name in runnable:
            with self.load(artifact, name).session(context=len(prompt) + 8) as session:
                logits = [session.prefill(prompt)]
                logits += [session.decode(t) for t in prompt[:8]]
            results.append(logits)
        self.assertEqual(results[0], results[1])

    def test_random_model(self):
        for activations in ("int8", "f32"):
            with self.subTest(activations=activations):
                self.assertSameBits(
                    compiled_fixture(fixtures.random_model(), "--target", ",".join(VARIANTS),
                                     "--activations", activations), list(range(20, 90)))

    def test_real_model(self):
        prompt = reference("smollm2-135m")["prompts"][2]["ids"]
        self.assertSameBits(compiled(model("smollm2-135m"), "--target", ",".join(VARIANTS)),
                            prompt)


class Damage(TestCase):
    """h5: newer, older, a damaged section and a truncated file get four messages."""

    def setUp(self):
        super().setUp()
        self.data = bytearray(compiled_fixture(fixtures.random_model()).read_bytes())

    def refusal(self, data, *texts):
        path = self.folder / "model.llmc"
        path.write_bytes(data)
        for command in ((LLMC_RUN, path, "--tokens", "1", "-n", "1"), (LLMC, "inspect", path)):
            result = run(*command)
            program = "llmc-run: " if command[0] == LLMC_RUN else "llmc: "
            self.assertRefused(result, "model.llmc", *texts, program=program)
        return result.error

    def test_four_messages(self):
        version, = struct.unpack_from("<I", self.data, 8)
        patched = lambda v: self.data[:8] + struct.pack("<I", v) + self.data[12:]
        flipped = self.data[:]
        flipped[8192] ^= 1
        messages = {self.refusal(patched(version + 1), "newer"),
                    self.refusal(patched(version - 1), "older"),
                    self.refusal(flipped, "checksum", "weights"),
                    self.refusal(self.data[:-1], "truncated", len(self.data), len(self.data) - 1)}
        self.assertEqual(len(messages), 4)

    def test_cut_anywhere(self):
        for size in (0, 1, 7, 127, 128, 4096, len(self.data) // 2):
            with self.subTest(size=size):
                path = self.folder / "cut.llmc"
                path.write_bytes(self.data[:size])
                self.assertRefused(run(LLMC_RUN, path, "--tokens", "1"), "cut.llmc",
                                   program="llmc-run: ")


if __name__ == "__main__":
    unittest.main()
