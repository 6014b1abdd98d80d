#!/usr/bin/env python3
"""Runs a decoder compiled from ONNX files in turn with the same model from GGUF and with ONNX Runtime
GenAI, and prints a section for docs/benchmarks.md.

    tools/bench_onnx.py --gguf M.gguf --float M/model.onnx [...] --genai FOLDER [--python PYTHON]

FOLDER holds the file that both GenAI and llmc run, model.onnx, and genai_config.json; PYTHON has the
package onnxruntime-genai. Float graphs are compiled with --quant int4, which must find the GGUF file's
format again. Every measurement is a process of its own; a ratio is the median of the ratios of runs that
followed each other.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Prompt and generated tokens per second: FOLDER, prompt, generated, threads.
GENAI = """
import json, sys, time, numpy, onnxruntime_genai as og
folder, prompt, count, threads = sys.argv[1], *map(int, sys.argv[2:])
config = og.Config(folder)
config.overlay(json.dumps({"model": {"decoder": {"session_options": {
    "intra_op_num_threads": threads}}}}))
model = og.Model(config)
params = og.GeneratorParams(model)
params.set_search_options(max_length=prompt + count + 8, min_length=prompt + count + 8,
                          do_sample=False)
ids = numpy.array([[i * 7919 % 49000 + 100 for i in range(prompt)]], dtype=numpy.int32)
warm = og.Generator(model, params)
warm.append_tokens(ids[:, :16])
warm.generate_next_token()
generator = og.Generator(model, params)
begin = time.perf_counter()
generator.append_tokens(ids)
generator.generate_next_token()
middle = time.perf_counter()
for _ in range(count):
    generator.generate_next_token()
print(json.dumps({"prefill_tok_s": prompt / (middle - begin),
                  "decode_tok_s": count / (time.perf_counter() - middle)}))
"""


def run(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit("%s: %s" % (command[0], result.stderr.strip()))
    return result.stdout


def spread(values, digits=0):
    return "%.*f (%.*f-%.*f)" % (digits, statistics.median(values), digits, min(values), digits,
                                 max(values))


def cpu():
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    facts = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    flags = [f for f in ("avx2", "avx512f", "avx512_vnni", "amx_int8")
             if f in facts.get("flags", "").split()]
    return "%s (family %s, model %s; %s)" % (facts.get("model name"), facts.get("cpu family"),
                                             facts.get("model"), ", ".join(flags))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--gguf", type=pathlib.Path, required=True)
    parser.add_argument("--float", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--genai", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = [("GGUF", args.gguf, ())]
        sources += [(p.parent.name + ", `--quant int4`", p, ("--quant", "int4")) for p in args.float]
        sources.append(("GenAI 4-bit file", args.genai / "model.onnx", ()))
        runs = {}
        for i, (name, source, more) in enumerate(sources):
            artifact = pathlib.Path(folder, "%d.llmc" % i)
            run(args.bin / "llmc", "compile", "-q", source, "-o", artifact, *more)
            runs[name] = lambda artifact=artifact: run(
                args.bin / "llmc-run", artifact, "--bench",
                "%d,%d" % (args.prompt, args.generate), "--threads", args.threads, "--json")
        peer = "ONNX Runtime GenAI, the same file"
        runs[peer] = lambda: run(args.python, "-c", GENAI, args.genai, args.prompt, args.generate,
                                 args.threads)
        results = {name: [] for name in runs}
        for _ in range(args.repeat):
            for name, measure in runs.items():
                results[name].append(json.loads(measure()))
            print(os.getloadavg()[0], {n: [round(v) for v in (r[-1]["prefill_tok_s"],
                                                              r[-1]["decode_tok_s"])]
                                       for n, r in results.items()}, file=sys.stderr)
    genai = sources[-1][0]
    print("## ONNX (SmolLM2-135M)\n\nWritten by `tools/bench_onnx.py`, medians of %d runs in turn.\n"
          % args.repeat)
    print("- CPU: %s, %d threads\n- %s\n" % (cpu(), args.threads, datetime.date.today().isoformat()))
    print("| model | prefill tok/s | decode tok/s | ratio, prefill | decode |\n|---|---|---|---|---|")
    for name, own in results.items():
        base = results[peer] if name == genai else results["GGUF"] if name != peer else None
        row = [spread([r[k] for r in own]) for k in ("prefill_tok_s", "decode_tok_s")]
        for key in ("prefill_tok_s", "decode_tok_s"):
            row.append(spread([a[key] / b[key] for a, b in zip(own, base)], 2) if base else "")
        print("| %s | %s |" % (name, " | ".join(row)))
    print("\nRatios of the float graphs are to the GGUF file (Q4_1: the programs are the same), that of the "
          "4-bit\nfile to ONNX Runtime GenAI.")


if __name__ == "__main__":
    main()
