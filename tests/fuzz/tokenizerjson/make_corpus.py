#!/usr/bin/env python3
"""Writes corpus/: a small tokenizer.json for each model, component and damage."""

import json
import pathlib

HERE = pathlib.Path(__file__).parent / "corpus"


def letters(*more):
    return {t: i for i, t in enumerate([*"abcdefghijklmnopqrstuvwxyz ,.!", *more])}


BPE = {"type": "BPE", "vocab": letters("ab", "<unk>", "th", "##b"), "merges": ["a b", ["t", "h"]],
       "unk_token": "<unk>", "fuse_unk": True}
WORDPIECE = {"type": "WordPiece", "vocab": letters("##b", "##c", "abc", "[UNK]"),
             "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 100}
UNIGRAM = {"type": "Unigram", "unk_id": 0,
           "vocab": [["<unk>", 0.0], ["a", -1.5], ["ab", -2], ["b", -1], ["▁", -3], ["▁a", -2.5]]}
ADDED = [{"id": 40, "content": "<x>", "lstrip": True, "rstrip": True, "single_word": True,
          "normalized": True, "special": False},
         {"id": 41, "content": "<s>", "special": True, "normalized": False}]


def seed(name, model=BPE, **parts):
    (HERE / name).write_text(json.dumps({"model": model, "added_tokens": ADDED, **parts},
                                        ensure_ascii=False))


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def split(behavior="Isolated", invert=False, **pattern):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def main():
    HERE.mkdir(exist_ok=True)
    seed("bpe")
    seed("bpe-fallback", {**BPE, "byte_fallback": True, "vocab": letters(
        "ab", "th", "<unk>", *("<0x%02X>" % b for b in range(256)))}, added_tokens=[],
         decoder=sequence("decoders", {"type": "ByteFallback"}, {"type": "Fuse"},
                          {"type": "Strip", "content": " ", "start": 1, "stop": 0}))
    seed("bpe-affixes", {**BPE, "end_of_word_suffix": "b", "continuing_subword_prefix": "##"},
         decoder={"type": "BPEDecoder", "suffix": "b"})
    seed("bpe-ignore", {**BPE, "ignore_merges": True},
         pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True, "use_regex": True},
         decoder={"type": "ByteLevel"})
    seed("wordpiece", WORDPIECE, normalizer={"type": "BertNormalizer"},
         pre_tokenizer={"type": "BertPreTokenizer"}, decoder={"type": "WordPiece", "cleanup": True},
         post_processor={"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]})
    seed("unigram", UNIGRAM, pre_tokenizer={"type": "Metaspace", "replacement": "▁",
                                            "prepend_scheme": "first", "split": True},
         decoder={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"})
    seed("charsmap", UNIGRAM, normalizer={"type": "Precompiled", "precompiled_charsmap":
                                          "CAAAAAAEAABhAAAAQUIA"})
    seed("normalizers", normalizer=sequence(
        "normalizers", {"type": "NFC"}, {"type": "NFKD"}, {"type": "StripAccents"},
        {"type": "Lowercase"}, {"type": "Strip"}, {"type": "Nmt"}, {"type": "Prepend", "prepend": "q"},
        {"type": "Replace", "pattern": {"Regex": "x*"}, "content": "-"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}))
    seed("pre-tokenizers", pre_tokenizer=sequence(
        "pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "Digits", "individual_digits": True}, {"type": "Whitespace"},
        {"type": "CharDelimiterSplit", "delimiter": "e"},
        split("MergedWithNext", True, String="l"), split("MergedWithPrevious", Regex="[a-f&&[^b]]")))
    seed("template", post_processor={
        "type": "TemplateProcessing", "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [41], "tokens": ["<s>"]}}})
    for i, pattern in enumerate([
            "^\\w+$|\\b[[:alpha:][^x]]{2,3}+", "(?i:a|b)(?m).\\h\\p{^L}", "(?<=a)(?!b)(?>c)\\u4e2d",
            "[\\x{1F300}-\\x{1FAFF}]|\\R|\\X", "(a+)+$", "[^\\S\\W]"]):
        seed("pattern-%d" % i, pre_tokenizer=split(Regex=pattern))
    for name, text in [("not-json", "{"), ("not-object", "[]"), ("empty", "{}"),
                       ("deep", "[" * 2000), ("no-type", '{"model":{"vocab":{"a":0},"merges":[]}}')]:
        (HERE / ("spoiled-" + name)).write_text(text)
    seed("spoiled-id", {**BPE, "vocab": {"a": 1 << 62}})
    seed("spoiled-merge", {**BPE, "merges": ["a zz"]})
    seed("spoiled-types", {"type": 7, "vocab": "x"}, normalizer=[], decoder=3)


if __name__ == "__main__":
    main()
