"""What ptxas and the disassembler say of every CUDA kernel that is shipped for real models."""

import collections
import functools
import json
import pathlib
import re
import shutil
import tempfile
import unittest

from harness import (BIN, LLMC, TestCase, compiled, generate, model, on_cuda, package,
                     succeed)
from test_onnx import materialized

# Of a multiprocessor: shared memory, threads and blocks; all have 64 K registers.
LIMITS = {"sm80": (164 << 10, 2048, 32), "sm89": (100 << 10, 1536, 24), "sm90": (228 << 10, 2048, 32)}
REGISTERS = 64 << 10
BLOCK_SHARED = {"sm80": 163 << 10, "sm89": 99 << 10, "sm90": 227 << 10}
SYSTEM_SHARED = 1 << 10  # of every block

# Threads that are to fit a multiprocessor: two blocks of the kernels for few rows, two of those for
# many; of these one on 8.9, whose shared memory is small.
FEW_THREADS, MANY_THREADS = 512, {"sm80": 256, "sm89": 128, "sm90": 256}

ALL, NEWEST = ("sm80", "sm89", "sm90"), ("sm90",)
SOURCES = {
    "smollm2": (lambda: model("smollm2-135m"), ALL, ()),  # Q4_1, Q8_0
    "gemma3": (lambda: model("gemma3-270m"), ALL, ()),  # Q5_0, Q8_0, Q6_K
    "gemma3 int4": (lambda: model("gemma3-270m"), ALL, ("--quant", "int4")),
    "genai int4": (lambda: materialized("genai-int4"), NEWEST, ()),
    "optimum int8": (lambda: materialized("optimum-fp32"), NEWEST, ("--quant", "int8")),
}

# All that ptxas may say. Whatever else it has to tell, as of wgmma that it has to serialize, fails.
EXPECTED = re.compile(r"ptxas info    : (0 bytes gmem|\d+ bytes gmem.*|Compiling entry function .*"
                      r"|Function properties for .*|Used \d+ registers.*|Compile time = .*)"
                      r"|    \d+ bytes stack frame.*|")


class Built:
    """The kernels of a model for one target: what ptxas says, launches and machine code."""

    def __init__(self, log, launches, cubin):
        self.log, self.launches, self.cubin = log, launches, cubin
        self.used = {}
        for part in log.split("Compiling entry function '")[1:]:
            stack, stores, loads = map(int, re.search(
                r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
                part).groups())
            registers = int(re.search(r"Used (\d+) registers", part).group(1))
            self.used[part.split("'")[0]] = (registers, stack, stores + loads)

    def blocks(self, target, kernel):
        """How many blocks of a kernel fit a multiprocessor, in the launch that needs most."""
        shared, threads, most = LIMITS[target]
        registers = -(-self.used[kernel][0] // 8) * 8
        return min(min(most, threads // launch["block"],
                       REGISTERS // (registers * launch["block"]),
                       shared // (launch["shared_bytes"] + SYSTEM_SHARED))
                   for launch in self.launches if launch["kernel"] == kernel)


@functools.lru_cache(maxsize=None)
def built(name):
    """{target: Built} of a source."""
    source, targets, arguments = SOURCES[name]
    with tempfile.TemporaryDirectory() as folder:
        artifact, dump = pathlib.Path(folder, "model.llmc"), pathlib.Path(folder, "dump")
        succeed(LLMC, "compile", source(), "-q", "-o", artifact, "--target", ",".join(targets),
                "--dump-ir", dump, *arguments, timeout=1200)
        facts = succeed(LLMC, "inspect", artifact, "--json").json
        result = {}
        for target in targets:
            # The dump has a folder for each of several targets.
            said = (dump / target if len(targets) > 1 else dump) / "ptxas.txt"
            if not said.exists():
                raise unittest.SkipTest("ptxas is not there")
            section = next(s for s in facts["sections"]
                           if s["kind"] == "cubin" and target in s["name"])
            with open(artifact, "rb") as file:
                file.seek(section["offset"])
                cubin = file.read(section["bytes"])
            result[target] = Built(said.read_text(),
                                   [l for l in facts["launches"] if l["variant"] == target], cubin)
    return result


def disassembler():
    found = shutil.which("nvdisasm")
    if found:
        return found
    folder = package("nvidia-cuda-nvdisasm==13.5.37")
    return str(next(folder.glob("nvidia/**/bin/nvdisasm")))


def loops(text):
    """{kernel: [opcodes of each innermost loop]} of nvdisasm's output."""
    result = {}
    for kernel, body in re.findall(r"^\.text\.(\w+):\n(.*?)(?=^\s*\.section|\Z)", text, re.M | re.S):
        labels, code, backward = {}, [], []
        for line in body.splitlines():
            label = re.match(r"\s*(\.L_x_\d+):", line)
            instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?(\S+)(.*?);", line)
            if label:
                labels[label.group(1)] = len(code)
            elif instruction:
                code.append(instruction.group(1))
                target = re.search(r"`\((\.L_x_\d+)\)", instruction.group(2))
                if code[-1].startswith("BRA") and target and target.group(1) in labels:
                    backward.append((labels[target.group(1)], len(code)))
        innermost = [(a, b) for a, b in backward
                     if not any(a <= c and d < b for c, d in backward)]
        result[kernel] = [code[a:b] for a, b in innermost]
    return result


def disassembled(cubin):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return loops(succeed(disassembler(), "-c", file.name).text)


class Gates(TestCase):
    def check(self, name):
        for target, code in built(name).items():
            with self.subTest("ptxas", target=target):
                self.check_ptxas(code)
            with self.subTest("occupancy", target=target):
                self.check_occupancy(target, code)
            with self.subTest("weight loads", target=target):
                self.check_weight_loads(code)

    def check_ptxas(self, code):
        """Every kernel is assembled without a complaint, without spills and without a stack."""
        self.assertEqual([l for l in code.log.splitlines() if not EXPECTED.fullmatch(l)], [])
        self.assertEqual(set(code.used), {launch["kernel"] for launch in code.launches})
        self.assertEqual({k: u for k, u in code.used.items() if u[1] or u[2]}, {})

    def check_occupancy(self, target, code):
        """Registers and shared memory leave room for the threads that hide latency."""
        few = {l["kernel"] for l in code.launches if l["program"] in ("decode", "verify")}
        short = {}
        for launch in code.launches:
            kernel, block = launch["kernel"], launch["block"]
            self.assertLessEqual(launch["shared_bytes"], BLOCK_SHARED[target], kernel)
            blocks = code.blocks(target, kernel)
            wanted = -(-(FEW_THREADS if kernel in few else MANY_THREADS[target]) // block)
            # A kernel that has fewer blocks in all needs no room for more.
            grid = launch["grid"][0] * launch["grid"][1] * launch["grid"][2]
            if blocks < min(wanted, grid):
                short[kernel] = (blocks, wanted, code.used[kernel][0], launch["shared_bytes"])
        self.assertEqual(short, {}, "blocks, wanted, registers, bytes of shared memory")

    def check_weight_loads(self, code):
        """In the loops of products with few rows codes come 16 bytes at a time, and a weight takes
        at most two instructions."""
        decode = {l["kernel"] for l in code.launches if l["program"] == "decode"}
        products, wrong = collections.Counter(), []
        for kernel, bodies in disassembled(code.cubin).items():
            for body in bodies if kernel in decode else ():
                count = collections.Counter(body)
                dots = sum(n for op, n in count.items() if op.startswith("IDP.4A"))
                loads = {op: n for op, n in count.items() if op.startswith("LDG")}
                if not dots or not loads:
                    continue
                products[kernel] += 1
                wide = sum(n for op, n in loads.items() if ".128" in op)
                # Eight groups of 32 weights are a chunk. A group has one load of codes, or two where
                # they have eight bits; one of scales; one of a fifth and sixth bit.
                if wide < 8 or sum(loads.values()) > 3 * wide:
                    wrong.append((kernel, loads))
                # Of one row: a dot product is of four weights.
                if dots < 16 * wide and len(body) > 2 * 4 * dots:
                    wrong.append((kernel, "%.2f instructions per weight" % (len(body) / 4 / dots)))
        self.assertEqual(wrong, [])
        self.assertIn("qkv_0", products)
        self.assertTrue(any(kernel.startswith("linear") for kernel in products))


for _name in SOURCES:
    setattr(Gates, "test_" + _name.replace(" ", "_"),
            lambda self, name=_name: self.check(name))


@unittest.skipUnless((BIN.parent / "mockcuda/libcuda.so.1").exists(), "no emulator was built")
class Traffic(TestCase):
    def test_bytes_and_instructions(self):
        """A generated token reads weights, keys and values once, in whole sectors, and takes at most
        two instructions per weight in the largest product."""
        artifact = compiled(model("smollm2-135m"), "--target", "sm90", "--context", "512")
        path = self.folder / "report.json"
        # The second token is a decode step.
        generate(artifact, [1, 504, 338], 2, "--device", "cuda", "--ignore-end",
                 env=on_cuda("check=fast", emulated=True, report=path))
        counted = json.loads(path.read_text())
        facts = succeed(LLMC, "report", artifact, "--position", 3, "--counters", path,
                        "--json").json
        needed = facts["token"]["weight_bytes"] + facts["token"]["kv_bytes"]
        self.assertTrue(facts["token"]["all_counted"])
        # All that is asked for. Blocks ask for the same activations, a quarter more in all; these are in
        # L2.
        counters = [(row, counted["kernels"][row["kernel"]]) for row in facts["kernels"]]
        read = sum(row["count"] * counts["global_load_bytes"] / counts["launches"]
                   for row, counts in counters)
        self.assertLessEqual(read, 1.3 * needed)
        self.assertGreaterEqual(read, 0.99 * needed)
        # Different bytes: activations are next to nothing.
        self.assertLessEqual(counted["touched_bytes"], 1.05 * needed)
        self.assertGreaterEqual(counted["touched_bytes"], 0.99 * needed)
        for row, counts in counters:
            self.assertEqual(counts["local_bytes"], 0, row["kernel"])
            if row["op"] in ("qkv", "attn_out", "ffn_up", "ffn_down", "logits"):
                self.assertLessEqual(counts["global_load_sectors"],
                                     1.01 * counts["global_load_ideal_sectors"], row["kernel"])
        logits = next(row for row in facts["kernels"] if row["op"] == "logits")
        weights = 49152 * 576  # of eight bits
        self.assertLessEqual(logits["instructions"], 2 * weights)


if __name__ == "__main__":
    unittest.main()
