#!/usr/bin/env python3
"""Runs llmc and llama.cpp in turn on the same models and writes docs/benchmarks.md with its plots.

Whatever is compared runs in turn, repetition by repetition, so that both see the same machine.
Figures are medians; the spread is the least and the greatest value seen, for a ratio that of the
ratios of single repetitions.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from svgplot import line_plot

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = [("SmolLM2-135M Q4_1", "smollm2-135m.gguf"), ("Gemma3-270M Q4_K_M", "gemma3-270m.gguf")]
LENGTHS = (128, 512, 1024, 4096)  # of the first model's prompt
DEPTH_TOKENS = 32                 # generated behind it
VERIFY = (1, 4, 8)                # tokens of a step
DRAFT_TOKENS = 240
SHORT_PROMPT = "Once upon a time"
# Of the report: what comes after this line is written by other tools, and kept.
OTHERS = "<!-- By other tools: -->"


def run_json(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: {command[0]} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def first_output_ms(command):
    """Milliseconds from the start of a process to the first byte that it prints."""
    start = time.monotonic()
    with subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        first = process.stdout.read(1)
        elapsed = time.monotonic() - start
        process.stdout.read()
    if not first or process.returncode:
        sys.exit(f"bench: {command[0]} printed nothing")
    return 1e3 * elapsed


class Programs:
    """Both programs, as functions from what is asked to numbers."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.run = args.bin / "llmc-run"

    def source(self, name):
        return self.args.models / name

    def artifact(self, name):
        path = self.folder / (name + ".llmc")
        if not path.exists():
            subprocess.run([self.args.bin / "llmc", "compile", "-q", self.source(name), "-o", path],
                           check=True)
        return path

    def llmc(self, name, prompt, generate, threads=None):
        """llmc-run's report; decoding starts behind the prompt."""
        return run_json([self.run, self.artifact(name), "--bench", f"{prompt},{generate}", "--repeat",
                         1, "--threads", threads or self.args.threads, "--json"])

    def llmc_steps(self, name):
        """{tokens: ms} of steps that verify drafts."""
        report = run_json([self.run, self.artifact(name), "--bench-verify", "--repeat", 2, "--threads",
                           self.args.threads, "--json"])
        return {row["tokens"]: row["ms"] for row in report["steps"]}

    def llmc_generate(self, name, prompt, *options):
        """(tokens per second, tokens, counts of drafts) of a completion."""
        report = run_json([self.run, self.artifact(name), "-p", prompt, "-n", DRAFT_TOKENS,
                           "--ignore-end", "--json", "--threads", self.args.threads, *options])
        speed = (len(report["tokens"]) - 1) / report["timings"]["decode_ms"] * 1e3
        return speed, report["tokens"], report["drafts"]

    def llmc_first_token_ms(self, name):
        return first_output_ms([self.run, self.artifact(name), "-p", SHORT_PROMPT, "-n", 1,
                                "--threads", self.args.threads])

    def peer_bench(self, name, *options):
        return run_json([self.args.peer / "llama-bench", "-m", self.source(name), "-t",
                         self.args.threads, "-r", 1, "-o", "json", *options])

    def peer(self, name, prompt, generate):
        rows = self.peer_bench(name, "-p", prompt, "-n", generate)
        return {"decode_tok_s" if row["n_gen"] else "prefill_tok_s": row["avg_ts"] for row in rows}

    def peer_at_depth(self, name, depth):
        return self.peer_bench(name, "-p", 0, "-n", DEPTH_TOKENS, "-d", depth)[0]["avg_ts"]

    def peer_steps(self, name):
        """{tokens: ms} of steps that compute a few tokens at once."""
        rows = self.peer_bench(name, "-p", ",".join(map(str, VERIFY)), "-n", 0, "-r", 5)
        return {row["n_prompt"]: 1e3 * row["n_prompt"] / row["avg_ts"] for row in rows}

    def peer_first_token_ms(self, name):
        return first_output_ms([self.args.peer / "llama-completion", "-m", self.source(name), "-p",
                                SHORT_PROMPT, "-n", 1, "-t", self.args.threads, "-no-cnv",
                                "--no-display-prompt", "--no-warmup"])


def in_turn(what, repeat, jobs):
    """{key: [values]} of {key: function}, all functions in each repetition."""
    values = collections.defaultdict(list)
    for repetition in range(repeat):
        print(f"{what}: {repetition + 1} of {repeat}", file=sys.stderr)
        for key, job in jobs.items():
            values[key].append(job())
    return values


def draft_prompts():
    text = (ROOT / "tests/data/text/repeat.txt").read_text().strip()
    edited = text.replace("Tomas", "Marco").replace("lamp", "lantern")

    def begun(answer):
        return " ".join(answer.split()[:60])

    sampled = ("--temp", "1", "--seed", "7")  # never repeats itself for long
    return [("repeat 300 words", f"Repeat the following text word for word.\n\n{text}\n\n{begun(text)}", ()),
            ("edit 300 words", f"Replace Tomas by Marco, and lamp by lantern.\n\n{text}\n\n{begun(edited)}", ()),
            ("free text, where drafts are useless", "The history of the city begins", sampled)]


def thread_counts(cores):
    counts = [1]
    while counts[-1] * 2 < cores:
        counts.append(counts[-1] * 2)
    return sorted({*counts, cores, 2 * cores})


def measure_drafts(programs, name, repeat):
    """[(text, {"plain": [...], "drafts": [...]} tokens per second, counts of drafts)]"""
    rows = []
    for text, prompt, options in draft_prompts():
        counts, tokens = {}, {}

        def job(kind, *more, prompt=prompt, options=options, counts=counts, tokens=tokens):
            speed, tokens[kind], counts[kind] = programs.llmc_generate(name, prompt, *options, *more)
            return speed

        speeds = in_turn(f"{name}: {text}", repeat,
                         {"plain": lambda job=job: job("plain"),
                          "drafts": lambda job=job: job("drafts", "--draft", "ngram")})
        if tokens["plain"] != tokens["drafts"]:
            sys.exit("bench: drafts changed the tokens")
        rows.append((text, speeds, counts["drafts"]))
    return rows


def fewer_repeats(args):
    """Of what takes long, or is many."""
    return max(1, (args.repeat * 3 + 4) // 5)


def collect(args):
    results = {}
    fewer = fewer_repeats(args)
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(args, pathlib.Path(folder))
        for title, name in MODELS:
            results[title] = {
                "speed": in_turn(f"{title}, {args.prompt} and {args.generate} tokens", args.repeat, {
                    "llmc": lambda: programs.llmc(name, args.prompt, args.generate),
                    "peer": lambda: programs.peer(name, args.prompt, args.generate)}),
                "start": in_turn(f"{title}, first token", args.repeat, {
                    "llmc": lambda: programs.llmc_first_token_ms(name),
                    "peer": lambda: programs.peer_first_token_ms(name)}),
                "steps": in_turn(f"{title}, steps", fewer, {
                    "llmc": lambda: programs.llmc_steps(name),
                    "peer": lambda: programs.peer_steps(name)}),
                "drafts": measure_drafts(programs, name, fewer)}
        title, name = MODELS[0]
        results[title]["lengths"] = {
            length: in_turn(f"{title}, {length} positions", fewer, {
                "llmc": lambda: programs.llmc(name, length, DEPTH_TOKENS),
                "peer prefill": lambda: programs.peer(name, length, 0)["prefill_tok_s"],
                "peer decode": lambda: programs.peer_at_depth(name, length)})
            for length in LENGTHS}
        results[title]["threads"] = in_turn(f"{title}, threads", fewer, {
            count: lambda count=count: programs.llmc(name, args.prompt, 64, threads=count)
            for count in thread_counts(len(os.sched_getaffinity(0)))})
    return results


# The report ---------------------------------------------------------------------------------------


def median(values):
    return statistics.median(values)


def spread(values, form=".0f"):
    return f"{median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def ratio(ours, peer, form=".2f"):
    """Of medians, with the least and the greatest ratio of two that ran in turn."""
    single = [a / b for a, b in zip(ours, peer)]
    return f"{median(ours) / median(peer):{form}} ({min(single):{form}}-{max(single):{form}})"


def pick(runs, key):
    return [run[key] for run in runs]


def point(x, values):
    return (x, min(values), median(values), max(values))


def cpu_name():
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    wanted = ("avx2", "avx512f", "avx512_vnni", "amx_int8", "amx_bf16", "asimddp", "i8mm")
    present = facts.get("flags", facts.get("Features", "")).split()
    flags = [flag for flag in wanted if flag in present]
    return (f'{facts.get("model name", "unknown CPU")} (family {facts.get("cpu family")}, '
            f'model {facts.get("model")}; {", ".join(flags)})')


def table(header, rows):
    return ["", "| " + " | ".join(header) + " |", "|" + "---|" * len(header),
            *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def speed_rows(results):
    for title, result in results.items():
        for phase in ("prefill", "decode"):
            ours, peer = (pick(result["speed"][who], phase + "_tok_s") for who in ("llmc", "peer"))
            yield title, phase, spread(ours), spread(peer), ratio(ours, peer)


def start_rows(results):
    for title, result in results.items():
        ours, peer = result["start"]["llmc"], result["start"]["peer"]
        yield title, spread(ours), spread(peer), ratio(ours, peer)


def bandwidth_rows(results):
    for title, result in results.items():
        runs = result["speed"]["llmc"]
        read, plain = pick(runs, "read_gb_s"), pick(runs, "bandwidth_gb_s")
        yield (title, spread(read, ".1f"), spread(plain, ".1f"), ratio(read, plain, ".0%"),
               f'{median(pick(runs, "ttft_ms")):.0f}', f'{median(pick(runs, "load_ms")):.0f}')


def step_rows(results):
    for title, result in results.items():
        for who, runs in (("llmc", result["steps"]["llmc"]), ("llama.cpp", result["steps"]["peer"])):
            yield (title, who, spread(pick(runs, 1), ".2f"),
                   *(ratio(pick(runs, count), pick(runs, 1)) for count in VERIFY[1:]))


def draft_rows(results):
    for title, result in results.items():
        for text, speeds, counts in result["drafts"]:
            steps = (DRAFT_TOKENS - 1) / max(1, counts["steps"])
            yield (title, text, spread(speeds["plain"]), spread(speeds["drafts"]),
                   ratio(speeds["drafts"], speeds["plain"]), f"{steps:.2f}")


def length_rows(lengths):
    for length, runs in lengths.items():
        prefill, decode = (pick(runs["llmc"], key) for key in ("prefill_tok_s", "decode_tok_s"))
        yield (length, spread(prefill), spread(runs["peer prefill"]),
               ratio(prefill, runs["peer prefill"]), spread(decode), spread(runs["peer decode"]),
               ratio(decode, runs["peer decode"]))


def thread_rows(threads):
    for count, runs in threads.items():
        yield count, *(spread(pick(runs, key)) for key in ("prefill_tok_s", "decode_tok_s"))


def report(args, results):
    title = MODELS[0][0]
    lengths, threads = results[title]["lengths"], results[title]["threads"]
    return "\n".join([
        "# Benchmarks",
        "",
        "Written by `bash tools/bench.sh`: llmc and llama.cpp run in turn, on the same file and machine.",
        f"Figures are medians of {args.repeat} runs (over length, and of threads, steps and drafts:",
        f"{fewer_repeats(args)}), with the least and the greatest value in brackets; for a ratio, of the ratios",
        "of runs that followed each other.",
        "",
        f"- CPU: {cpu_name()}, {os.cpu_count()} cores seen",
        f"- code: {results[title]['speed']['llmc'][0]['variant']}",
        f"- {args.threads} threads, {args.prompt} prompt and {args.generate} generated tokens",
        f"- {datetime.date.today().isoformat()}",
        *table(["model", "phase", "llmc tok/s", "llama.cpp tok/s", "ratio"], speed_rows(results)),
        "How near decode comes to the memory: weight bytes read per second while generating, against a plain",
        "read of the same bytes with the same threads.",
        *table(["model", "decode GB/s", "plain read GB/s", "fraction", f"{args.prompt} tokens to the first, ms",
                "load, ms"], bandwidth_rows(results)),
        "From the start of the process to the first token of a prompt of five, the file being in the page",
        "cache, in ms:",
        *table(["model", "llmc", "llama.cpp", "ratio"], start_rows(results)),
        f"## Over length ({title})",
        *table(["positions", "prefill tok/s", "llama.cpp", "ratio", "decode tok/s behind them", "llama.cpp",
                "ratio"], length_rows(lengths)),
        "![prefill over length](plots/prefill.svg)",
        "![decode over length](plots/decode.svg)",
        "![fraction of the read bandwidth](plots/bandwidth.svg)",
        "",
        f"## Threads ({title})",
        "",
        "The last row has twice as many threads as there are cores.",
        *table(["threads", "prefill tok/s", "decode tok/s"], thread_rows(threads)),
        "![scaling in threads](plots/threads.svg)",
        "",
        "## Steps of several tokens, and drafts",
        "",
        "What verifying several tokens in one step costs, against one token:",
        *table(["model", "program", "1 token, ms", *(f"{count} tokens" for count in VERIFY[1:])],
               step_rows(results)),
        f"`--draft ngram`, {DRAFT_TOKENS} generated tokens, equal to those without drafts in every run:",
        *table(["model", "text", "plain tok/s", "with drafts", "ratio", "tokens a step"], draft_rows(results)),
    ]).rstrip() + "\n"


def plots(results):
    """{file name: SVG}"""
    title = MODELS[0][0]
    lengths, threads = results[title]["lengths"], results[title]["threads"]

    def over_length(values):
        return [point(length, values(runs)) for length, runs in lengths.items()]

    def fraction(run):
        return 100 * run["read_gb_s"] / run["bandwidth_gb_s"]

    def relative(key):
        one = median(pick(threads[1], key))
        return [point(count, [value / one for value in pick(runs, key)])
                for count, runs in threads.items()]

    return {
        "prefill.svg": line_plot(f"{title}: prefill", "prompt tokens", "tokens per second", {
            "llmc": over_length(lambda runs: pick(runs["llmc"], "prefill_tok_s")),
            "llama.cpp": over_length(lambda runs: runs["peer prefill"])}),
        "decode.svg": line_plot(f"{title}: decode", "positions before", "tokens per second", {
            "llmc": over_length(lambda runs: pick(runs["llmc"], "decode_tok_s")),
            "llama.cpp": over_length(lambda runs: runs["peer decode"])}),
        "bandwidth.svg": line_plot(
            f"{title}: weight bytes read while decoding", "positions before",
            "% of a plain read of the same bytes",
            {"llmc": over_length(lambda runs: [fraction(run) for run in runs["llmc"]])}),
        "threads.svg": line_plot(f"{title}: scaling", "threads", "times one thread", {
            "prefill": relative("prefill_tok_s"), "decode": relative("decode_tok_s")}),
    }


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
    start = time.monotonic()
    results = collect(args)
    print(f"bench: measured for {time.monotonic() - start:.0f} s", file=sys.stderr)
    folder = args.output.parent / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in plots(results).items():
        (folder / name).write_text(text)
    kept = args.output.read_text() if args.output.exists() else ""
    kept = kept[kept.index(OTHERS):] if OTHERS in kept else ""
    args.output.write_text(report(args, results) + ("\n" + kept if kept else ""))
    print(args.output.read_text())


if __name__ == "__main__":
    main()
