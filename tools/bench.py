#!/usr/bin/env python3
"""Runs llmc and llama.cpp in turn on the same models and writes docs/benchmarks.md.

Each repetition runs both programs once for prefill and once for decode, so that
both see the same machine. Figures are medians; the spread is the least and the
greatest value seen.
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
MODELS = [("SmolLM2-135M Q4_1", "smollm2-135m.gguf"), ("Gemma3-270M Q4_K_M", "gemma3-270m.gguf")]


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: {command[0]} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def measure_llmc(args, artifact):
    result = run_json([args.bin / "llmc-run", artifact, "--bench", f"{args.prompt},{args.generate}",
                       "--repeat", "1", "--threads", str(args.threads), "--json"])
    return {key: result[key] for key in
            ("prefill_tok_s", "decode_tok_s", "read_gb_s", "bandwidth_gb_s", "ttft_ms", "load_ms")}


def measure_peer(args, model):
    rows = run_json([args.peer / "llama-bench", "-m", model, "-t", str(args.threads), "-p", str(args.prompt),
                     "-n", str(args.generate), "-r", "1", "-o", "json"])
    speeds = {"decode_tok_s" if row["n_gen"] else "prefill_tok_s": row["avg_ts"] for row in rows}
    return speeds


def cpu_name():
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    wanted = ("avx2", "avx512f", "avx512_vnni", "amx_int8")
    flags = [flag for flag in wanted if flag in facts.get("flags", "").split()]
    return (f'{facts.get("model name", "unknown CPU")} (family {facts.get("cpu family")}, '
            f'model {facts.get("model")}; {", ".join(flags)})')


def spread(values):
    return f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})"


def collect(args):
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for title, name in MODELS:
            model, artifact = args.models / name, pathlib.Path(folder) / (name + ".llmc")
            subprocess.run([args.bin / "llmc", "compile", "-q", model, "-o", artifact], check=True)
            runs = {"llmc": [], "peer": []}
            for repetition in range(args.repeat):
                print(f"{title}: run {repetition + 1} of {args.repeat}", file=sys.stderr)
                runs["llmc"].append(measure_llmc(args, artifact))
                runs["peer"].append(measure_peer(args, model))
            results.append((title, runs))
    return results


def report(args, results):
    lines = [
        "# Benchmarks",
        "",
        "Written by `bash tools/bench.sh`: llmc and llama.cpp run in turn, on the same file and machine, each",
        f"{args.repeat} times. Figures are medians, with the least and the greatest value in brackets.",
        "",
        f"- CPU: {cpu_name()}, {os.cpu_count()} cores seen",
        f"- {args.threads} threads, {args.prompt} prompt and {args.generate} generated tokens",
        f"- {datetime.date.today().isoformat()}",
        "",
        "| model | phase | llmc tok/s | llama.cpp tok/s | ratio |",
        "|---|---|---|---|---|",
    ]
    for title, runs in results:
        for phase, key in (("prefill", "prefill_tok_s"), ("decode", "decode_tok_s")):
            ours = [run[key] for run in runs["llmc"]]
            peer = [run[key] for run in runs["peer"]]
            ratio = statistics.median(ours) / statistics.median(peer)
            lines.append(f"| {title} | {phase} | {spread(ours)} | {spread(peer)} | {ratio:.2f} |")
    lines += [
        "",
        "How near decode comes to the memory: weight bytes read per second while generating, against a plain",
        "read of the same bytes with the same threads.",
        "",
        "| model | decode GB/s | plain read GB/s | fraction | time to first token, ms | load, ms |",
        "|---|---|---|---|---|---|",
    ]
    for title, runs in results:
        median = {key: statistics.median(run[key] for run in runs["llmc"])
                  for key in ("read_gb_s", "bandwidth_gb_s", "ttft_ms", "load_ms")}
        lines.append(f'| {title} | {median["read_gb_s"]:.1f} | {median["bandwidth_gb_s"]:.1f} '
                     f'| {median["read_gb_s"] / median["bandwidth_gb_s"]:.0%} | {median["ttft_ms"]:.0f} '
                     f'| {median["load_ms"]:.0f} |')
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin", help="llmc's programs")
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--peer", type=pathlib.Path, required=True, help="llama.cpp's programs")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "docs/benchmarks.md")
    args = parser.parse_args()
    args.output.parent.mkdir(exist_ok=True)
    args.output.write_text(report(args, collect(args)))
    print(args.output.read_text())


if __name__ == "__main__":
    main()
