#!/usr/bin/env python3
"""Runs a sentence encoder with llmc and with onnxruntime in turn, on the same sentences, and prints a
table for docs/benchmarks.md.

    tools/bench_encoder.py MODEL.onnx TOKENIZER_FOLDER [--compile ARGUMENT ...]

Sentences are sorted by length. Both go from text to embeddings of length 1: onnxruntime with the tokenizers package and NumPy, a batch
padded to its longest sentence; llmc through its C interface. Each is a process of its own and waits
while the other runs. Figures are medians over the repetitions, with the least and the greatest value.
"""

import argparse
import ctypes
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCHES = (1, 32)
SENTENCES = 256


def sentences_of(paths):
    """Prose sentences of files: those of the documentation where none are named."""
    found = []
    for path in paths or sorted(ROOT.glob("docs/**/*.md")):
        lines = pathlib.Path(path).read_text().splitlines()
        prose = " ".join(line for line in lines if not re.match(r"[|#\s`-]", line))
        for sentence in re.split(r"(?<=[.!?])\s+", prose):
            if 20 <= len(sentence) <= 400:
                found.append(sentence)
    # As sentence-transformers does, so that batches need little padding.
    return sorted(found[:SENTENCES], key=len, reverse=True)


class Onnxruntime:
    def __init__(self, args):
        import numpy
        import onnxruntime
        import tokenizers
        self.numpy = numpy
        self.tokenizer = tokenizers.Tokenizer.from_file(str(args.tokenizer / "tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        self.session = onnxruntime.InferenceSession(str(args.model), options,
                                                    providers=["CPUExecutionProvider"])
        self.inputs = [i.name for i in self.session.get_inputs()]

    def embed(self, texts):
        np = self.numpy
        ids = [e.ids for e in self.tokenizer.encode_batch(texts)]
        longest = max(map(len, ids))
        tokens, mask = np.zeros((len(ids), longest), "int64"), np.zeros((len(ids), longest), "int64")
        for row, i in enumerate(ids):
            tokens[row, :len(i)] = i
            mask[row, :len(i)] = 1
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        results = self.session.run(None, {k: v for k, v in feed.items() if k in self.inputs})
        rows = next(r for r in results if r.ndim == 3)
        weights = mask[..., None].astype("float32")
        pooled = (rows * weights).sum(1) / weights.sum(1)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


class Text(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_uint32),
                ("context", ctypes.c_uint32), ("no_truncate", ctypes.c_int)]


class Llmc:
    def __init__(self, args):
        self.library = ctypes.CDLL(str(next(args.bin.parent.glob("**/libllmc.so"))))
        self.library.llmc_last_error.restype = ctypes.c_char_p
        self.model, self.embedder = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.library.llmc_model_load(str(args.artifact).encode(), None,
                                                ctypes.byref(self.model)))
        options = Options(ctypes.sizeof(Options), args.threads, 0, 0)
        self.check(self.library.llmc_embedder_create(self.model, ctypes.byref(options),
                                                     ctypes.byref(self.embedder)))
        self.width = self.library.llmc_model_embedding_size(self.model)

    def check(self, status):
        if status:
            sys.exit("bench: " + self.library.llmc_last_error().decode())

    def embed(self, texts):
        data = [t.encode() for t in texts]
        array = (Text * len(data))(*[Text(d, len(d)) for d in data])
        out = (ctypes.c_float * (len(data) * self.width))()
        self.check(self.library.llmc_embed(self.embedder, array, ctypes.c_size_t(len(data)), out,
                                           None))
        return [out[i * self.width:(i + 1) * self.width] for i in range(len(data))]


def serve(engine, texts, clock):
    """Answers each batch size on standard input with the texts per second of one pass, and "rows" with
    all embeddings."""
    for line in sys.stdin:
        if line.strip() == "rows":
            rows = [[float(x) for x in engine.embed([t])[0]] for t in texts]
            lengths = [sum(x * x for x in row) ** 0.5 for row in rows]
            print(json.dumps([[x / n for x in row] for row, n in zip(rows, lengths)]), flush=True)
            continue
        batch = int(line)
        start = clock()
        for i in range(0, len(texts), batch):
            engine.embed(texts[i:i + batch])
        print(json.dumps(len(texts) / (clock() - start)), flush=True)


class Child:
    def __init__(self, name, arguments):
        self.process = subprocess.Popen([sys.executable, __file__, *arguments, "--serve", name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, what):
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or sys.exit("bench: a program ended"))


def spread(values, digits):
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f}-{max(values):.{digits}f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--compile", action="append", default=[], metavar="ARGUMENT")
    parser.add_argument("--text", action="append", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--cpu-time", action="store_true",
                        help="count the processor's seconds, for machines that do other work")
    parser.add_argument("--artifact", help=argparse.SUPPRESS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.bin = args.bin.resolve()
    texts = sentences_of(args.text)
    if args.serve:
        clock = time.process_time if args.cpu_time else time.perf_counter
        return serve(Llmc(args) if args.serve == "llmc" else Onnxruntime(args), texts, clock)
    with tempfile.TemporaryDirectory() as folder:
        artifact = pathlib.Path(folder) / "model.llmc"
        subprocess.run([args.bin / "llmc", "compile", args.model, "--tokenizer", args.tokenizer,
                        "-q", "-o", artifact, *args.compile], check=True)
        common = [str(args.model), str(args.tokenizer), "--bin", str(args.bin), "--threads",
                  str(args.threads), "--artifact", str(artifact)]
        common += ["--cpu-time"] if args.cpu_time else []
        for path in args.text or []:
            common += ["--text", str(path)]
        ours, theirs = Child("llmc", common), Child("onnxruntime", common)
        pairs = zip(ours.ask("rows"), theirs.ask("rows"))
        worst = max(1 - sum(a * b for a, b in zip(x, y)) for x, y in pairs)
        print(f"{len(texts)} sentences, {args.threads} threads; largest cosine distance {worst:.1e}\n")
        print("| batch | llmc texts/s | onnxruntime texts/s | ratio |\n|---|---|---|---|")
        for batch in BATCHES:
            ours.ask(batch), theirs.ask(batch)
            pairs = [(ours.ask(batch), theirs.ask(batch)) for _ in range(args.repeat)]
            print(f"| {batch} | {spread([a for a, _ in pairs], 0)} | "
                  f"{spread([b for _, b in pairs], 0)} | "
                  f"{spread([a / b for a, b in pairs], 2)} |", flush=True)


if __name__ == "__main__":
    main()
