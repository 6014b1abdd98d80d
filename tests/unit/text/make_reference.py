#!/usr/bin/env python3
"""Writes reference.json: what the Hugging Face tokenizers package makes of a text of mixed scripts.

    pip install tokenizers
    LLMC_SHARED=... python3 make_reference.py reference.json

The file holds the text, the byte lengths of the words that each pre-tokenizer cuts it into, and the ids for
the vocabularies that are at hand (GGUF files; see ReferenceTest.cpp for where they lie). The pre-tokenizers
are built here from the patterns in the models' own tokenizer.json.
"""
import json
import os
import pathlib
import random
import struct
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

WORDS = (
    "the quick Brown fox jumps over LAZY dogs it's we'll I'D they'VE don't can\u2019t HTTPServer "
    'camelCase snake_case x86_64 C++ foo(bar) <tag> {"k":1} naïve café e\u0301te\u0301 Straße Ǆ ǅ ǆ '
    "ﬁ Ωmega привет мир Ёлка Ελλάδα שלום עולם مرحبا بالعالم ١٢٣٤ हिन्दी नमस्ते १२३ বাংলা ไทย สวัสดี ၁၂ ខ្មែរ "
    "한국어 안녕하세요 日本語 ひらがな カタカナ 漢字 中文字符 々〇 ㊀㊁ ⅫⅣ ½ ¾ ² ³ 12 345 6789 1234567890 3.14 "
    "1,000,000 🦙 👩‍👩‍👧 🏳️‍🌈 👍🏽 € £ ¥ № ™ ∑ ∫ → ⇒ ─ █ ﷽ it'ſ K Å ！？ ，。 、 ‘’ “” … — – \u00ad \u200b "
    "\u200d \u2060 \ufeff a\u0300\u0301\u0302 \u0301x \U0001d400\U0001d401 \U00020000 Việt Nam ıİ"
).split(" ")
SPACES = [" "] * 30 + [
    "  ", "   ", "\n", "\n\n", " \n", "\r\n", "\t", "\t\t", "\u00a0", "\u2029", "\u2028", "\u3000",
    "\u0085", "\u180e", "\u2003 ", " \u202f", "\n   ", "",
]  # fmt: skip

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
OTHER = r"[^\r\n\p{L}\p{N}]?"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SLASH_TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PUNCTUATION = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""


def cased(contraction, number, not_han=""):
    upper, lower = UPPER[:-1] + not_han + "]", LOWER[:-1] + not_han + "]"
    return f"{OTHER}{upper}*{lower}+{contraction}|{OTHER}{upper}+{lower}*{contraction}|{number}|"


def split(pattern):
    return Split(Regex(pattern), "isolated")


GPT2 = ByteLevel(add_prefix_space=False, use_regex=True)
BYTES = ByteLevel(add_prefix_space=False, use_regex=False)
PRE_TOKENIZERS = {
    "gpt-2": [GPT2],
    "smollm": [Digits(individual_digits=True), GPT2],
    "llama-bpe": [split(CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + TAIL), BYTES],
    "qwen2": [split(CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + TAIL), BYTES],
    "qwen35": [
        split(
            CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
            r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        BYTES,
    ],
    "tekken": [split(cased("", r"\p{N}") + SLASH_TAIL), BYTES],
    "gpt-4o": [split(cased(CONTRACTION + "?", r"\p{N}{1,3}") + SLASH_TAIL), BYTES],
    "kimi-k2": [
        split(r"[\p{Han}]+|" + cased(CONTRACTION + "?", r"\p{N}{1,3}", r"&&[^\p{Han}]") + TAIL),
        BYTES,
    ],
    "tiny_aya": [
        split(r"\d{1,3}(?=(?:\d{3})*\b)"),
        split(cased(CONTRACTION + "?", r"\p{N}{1,3}") + SLASH_TAIL),
        BYTES,
    ],
    "deepseek-v3": [
        split(r"\p{N}{1,3}"),
        split("[一-龥぀-ゟ゠-ヿ]+"),
        split(
            PUNCTUATION + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        BYTES,
    ],
    "deepseek-coder": [
        split("[\r\n]"),
        split(r"\s?\p{L}+"),
        split(r"\s?\p{P}+"),
        split("[一-龥ࠀ-一가-\ud7ff]+"),
        Digits(individual_digits=True),
        BYTES,
    ],
    "bloom": [split(r" ?[^(\s|[.,!?…。，、।۔،])]+")],
    "bailingmoe": [
        split(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
        ),
        BYTES,
    ],
    "seed-coder": [
        split(
            CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        BYTES,
    ],
    "exaone-moe": [
        split(
            CONTRACTION + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
        ),
        BYTES,
    ],
    "minicpm5": [
        split(r"\p{N}{1,3}"),
        split(CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|" + TAIL),
        BYTES,
    ],
}

SHARED = pathlib.Path(os.environ.get("LLMC_SHARED", "../shared")) / "tokenizers"
VOCABULARIES = {  # name: file, pre-tokenizer, whether merges are ignored for whole words
    "smollm2-135m": (
        pathlib.Path.home() / ".cache/llmc-models/smollm2-135m.gguf",
        "smollm",
        False,
    ),
    "gpt-2": (SHARED / "ggml-vocab-gpt-2.gguf", "gpt-2", False),
    "llama-bpe": (SHARED / "ggml-vocab-llama-bpe.gguf", "llama-bpe", True),
    "deepseek-coder": (SHARED / "ggml-vocab-deepseek-coder.gguf", "deepseek-coder", False),
    "starcoder": (SHARED / "ggml-vocab-starcoder.gguf", "smollm", False),
}


def read_gguf(path):
    """The metadata of a GGUF file."""
    scalars = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    with open(path, "rb") as file:

        def scalar(kind):
            return struct.unpack("<" + kind, file.read(struct.calcsize(kind)))[0]

        def value(kind):
            if kind == 8:
                return file.read(scalar("Q")).decode("utf-8", "surrogateescape")
            if kind == 9:
                item, count = scalar("I"), scalar("Q")
                return [value(item) for _ in range(count)]
            return scalar(scalars[kind])

        file.read(16)
        return {value(8): value(scalar("I")) for _ in range(scalar("Q"))}


def make_tokenizer(path, pre, ignore_merges):
    meta = read_gguf(path)
    tokens = meta["tokenizer.ggml.tokens"]
    merges = []
    for merge in meta["tokenizer.ggml.merges"]:
        space = merge.index(" ", 1)
        merges.append((merge[:space], merge[space + 1 :]))
    vocabulary = {token: id for id, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = Sequence(PRE_TOKENIZERS[pre])
    types = meta["tokenizer.ggml.token_type"]
    added = [AddedToken(t, normalized=False) for t, kind in zip(tokens, types) if kind == 4]
    tokenizer.add_tokens(added)
    return tokenizer


def main():
    random.seed(7)
    text = ""
    while len(text.encode()) < 3000:
        text += random.choice(WORDS) + random.choice(SPACES)
    words = {}
    for name, steps in PRE_TOKENIZERS.items():
        cut = Sequence(steps).pre_tokenize_str(text)
        words[name] = [len(text[begin:end].encode()) for _, (begin, end) in cut]
    ids = {
        name: make_tokenizer(*source).encode(text).ids
        for name, source in VOCABULARIES.items()
        if source[0].exists()
    }
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        rows = {"text": text, "words": words, "ids": ids}
        json.dump(rows, out, separators=(",", ":"))
        out.write("\n")


main()
