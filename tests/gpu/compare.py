"""Compares a GPU with the emulator, and with llama.cpp's CUDA build where there is one.

Prints a table, or writes one JSON object with --json FILE. Run by tests/gpu/run.sh.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import fixtures
from harness import (LLMC_RUN, MODELS, compiled, compiled_fixture, generate, ids, on_cuda, read_npy,
                     run, succeed)

TARGETS = ("--target", "sm80,sm89,sm90")
PROMPT = [5, 60, 7, 33, 12, 9, 77, 31]
# Approximate instructions differ by an ulp or two, sums in tensor cores by their truncation.
BOUND = 1e-3  # of the largest logit
BENCH_PROMPT, BENCH_TOKENS = 512, 128


def logits(artifact, env):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "logits.npy")
        succeed(LLMC_RUN, artifact, "--tokens", ids(PROMPT), "--device", "cuda", "--logits", path,
                env=env)
        return read_npy(path)[2]


def compare_kernels():
    """One row per encoding: how far apart the GPU's and the emulator's logits are."""
    rows = []
    for encoding in ("f32", "f16", "q8_0", "q4_0", "q4_1", "q5_0"):
        artifact = compiled_fixture(
            fixtures.random_model(width=128, mlp=320, encoding=encoding, context=128), *TARGETS)
        emulated = logits(artifact, on_cuda("check=fast,count=0", emulated=True))
        silicon = logits(artifact, {})
        distance = max(abs(a - b) for a, b in zip(emulated, silicon, strict=True))
        rows.append({"encoding": encoding, "distance": distance / max(map(abs, emulated)),
                     "same_bits": bytes(emulated) == bytes(silicon),
                     "same_tokens": generate(artifact, PROMPT, 16, "--device", "cuda")["tokens"]
                     == generate(artifact, PROMPT, 16, "--device", "cuda", env=on_cuda(
                         "check=fast,count=0", emulated=True))["tokens"]})
    return rows


def llama_bench(source):
    """Tokens per second of llama.cpp on the GPU: (prefill, decode); None where it is not there."""
    program = os.environ.get("LLAMA_BENCH") or shutil.which("llama-bench")
    if not program:
        return None
    result = subprocess.run([program, "-m", source, "-p", str(BENCH_PROMPT), "-n",
                             str(BENCH_TOKENS), "-ngl", "99", "-o", "json"],
                            stdout=subprocess.PIPE, check=True)
    speeds = {bool(row["n_gen"]): row["avg_ts"] for row in json.loads(result.stdout)}
    return speeds[False], speeds[True]


def measure(source):
    artifact = compiled(source, *TARGETS, "--context", str(BENCH_PROMPT + BENCH_TOKENS))
    bench = succeed(LLMC_RUN, artifact, "--device", "cuda", "--bench",
                    "%d,%d" % (BENCH_PROMPT, BENCH_TOKENS), "--json").json
    row = {"model": source.name, "variant": bench["variant"],
           "prefill_tok_s": bench["prefill_tok_s"], "decode_tok_s": bench["decode_tok_s"],
           "read_gb_s": bench["read_gb_s"], "bandwidth_gb_s": bench["bandwidth_gb_s"]}
    if peer := llama_bench(source):
        row["llama_cpp_prefill_tok_s"], row["llama_cpp_decode_tok_s"] = peer
    return row


def print_table(rows):
    if not rows:
        return
    cells = [list(rows[0])] + [["%.4g" % v if isinstance(v, float) else str(v)
                                for v in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--models", default="smollm2-135m,gemma3-270m",
                        help="models to measure, by name, or paths of .gguf files")
    arguments = parser.parse_args()
    sample = compiled_fixture(fixtures.random_model(context=128), *TARGETS)
    config = run(LLMC_RUN, sample, "--print-config", "--json", "--device", "cuda")
    if config.code != 0:
        sys.exit("no GPU can be used: " + config.error)
    report = {"device": config.json["device"], "kernels": compare_kernels(), "speed": []}
    for name in arguments.models.split(","):
        source = pathlib.Path(name) if name.endswith(".gguf") else MODELS / (name + ".gguf")
        if source.exists():
            report["speed"].append(measure(source))
        else:
            print("%s is not there; tools/fetch-models.sh fetches it" % source, file=sys.stderr)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")
    print(report["device"])
    print_table(report["kernels"])
    print_table(report["speed"])
    if any(row["distance"] > BOUND for row in report["kernels"]):
        sys.exit("the GPU and the emulator differ by more than %g of the largest logit" % BOUND)


if __name__ == "__main__":
    main()
