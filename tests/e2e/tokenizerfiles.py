"""tokenizer.json files for the tests: small models trained on the spot, one for each component.

Needs the package `tokenizers`, which is also what the tests compare with.
"""

import json

CORPUS = ["The quick brown fox jumps over the lazy dog; it didn't care, we'll see.",
          "Äpfel und Birnen kosten 3,50 € im Januar 2024. Crème brûlée, naïve façade!",
          "def main(argv):\n\treturn [x ** 2 for x in range(10)]  # comment",
          "日本語のテキストと中文字符，以及한국어 문장.", "Привет, мир! Ελληνικά κείμενα.",
          "ﬁne ﬂuﬀy ½ ² ™ Ⅳ ① ｆｕｌｌｗｉｄｔｈ", "hello hello world world worlds unhappiness"] * 8

# What is hard: white space of all kinds, marks, case, scripts, symbols, joiners, controls.
TEXTS = ["", " ", "  ", "\t", "\n", "\n\n", "\r\n x", "a", " a", "a ", "  a  b  ", "Hello, world!",
         "don't we'll I'M THEY'VE", "it 's n't 'm", "x" * 40, "word " * 30, "unhappiness worlds",
         "Äpfel crème brûlée naïve", "A\u0308pfel e\u0301", "\u1e9b\u0323 ﬁ ﬂ ½ ² Ⅳ ① ｆｕｌｌ",
         "İstanbul IŞIK ß ẞ ΣΑΣ", "日本語テキスト 中文字符，한국어", "か\u3099 ｶﾞ", "Привет, мир",
         "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดี", "👩‍👩‍👧‍👦 🤷🏽‍♀️ 🇩🇪", "\u200bzero\u200cwidth\u200djoin\ufeff",
         "tab\tand\x0bvt\x0cff\x85nel\xa0nbsp\u3000wide", "\x00\x01\x1f\x7f\x9f", "\ufffd�",
         "123 4567 3.14 1,000,000 ١٢٣ ५६ ²³", "a_b-c+d=e*f/g%h$i^j|k~l`m<n>o", "¿qué? «sí» “no” …",
         "<s> x </s> [CLS] y [SEP]", "<extra> <EXTRA> in<extra>side  <extra>  ", "▁under▁score ▁▁",
         "<0x41> <0xFF>", "url https://a.b/c?d=e&f#g", "CamelCaseAndSNAKE_CASE", "a\u0300\u0301\u0302b",
         "line one\nline two\r\nline three\u2028four", "  \n  \t leading and trailing \n ",
         "end with space ", "...!!!???", "(((nested))) [[brackets]]", "e\u0301\u0323 \u0323\u0301"]


def _trained(t, model, trainer, **parts):
    tokenizer = t.Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _bpe(t, size=420, model=None, **parts):
    trainer = t.trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False,
        initial_alphabet=t.pre_tokenizers.ByteLevel.alphabet() if parts.pop("bytes", True) else [],
        continuing_subword_prefix=(model or {}).get("continuing_subword_prefix", ""),
        end_of_word_suffix=(model or {}).get("end_of_word_suffix", ""))
    return _trained(t, t.models.BPE(**(model or {})), trainer, **parts)


def _byte_level(t, pre=None, **parts):
    parts.setdefault("decoder", t.decoders.ByteLevel())
    return _bpe(t, pre_tokenizer=pre or t.pre_tokenizers.ByteLevel(add_prefix_space=False), **parts)


def _word_piece(t, **parts):
    trainer = t.trainers.WordPieceTrainer(vocab_size=400, show_progress=False, special_tokens=[
        "[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    parts.setdefault("normalizer", t.normalizers.BertNormalizer())
    parts.setdefault("pre_tokenizer", t.pre_tokenizers.BertPreTokenizer())
    parts.setdefault("decoder", t.decoders.WordPiece())
    return _trained(t, t.models.WordPiece(unk_token="[UNK]"), trainer, **parts)


def _unigram(t, **parts):
    trainer = t.trainers.UnigramTrainer(vocab_size=300, show_progress=False, unk_token="<unk>",
                                        special_tokens=["<unk>", "<s>", "</s>"])
    parts.setdefault("pre_tokenizer", t.pre_tokenizers.Metaspace())
    parts.setdefault("decoder", t.decoders.Metaspace())
    return _trained(t, t.models.Unigram(), trainer, **parts)


def _sentence_piece_like(t, **model):
    """As Llama's file: no pre-tokenizer, byte tokens, spaces by the normalizer."""
    n, d = t.normalizers, t.decoders
    tokenizer = _bpe(t, bytes=False, pre_tokenizer=t.pre_tokenizers.Metaspace(split=True))
    vocabulary = json.loads(tokenizer.to_str())["model"]
    ids = dict(vocabulary["vocab"])
    for byte in range(256):
        ids["<0x%02X>" % byte] = len(ids)
    merges = [tuple(m) for m in vocabulary["merges"]]
    made = t.Tokenizer(t.models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True,
                                    byte_fallback=True, **model))
    made.normalizer = n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
    made.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(),
                               d.Strip(" ", 1, 0)])
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    made.post_processor = t.processors.TemplateProcessing("<s> $A", "<s> $A <s> $B:1",
                                                          [("<s>", made.token_to_id("<s>"))])
    return made


def _with(tokenizer, t, **flags):
    tokenizer.add_tokens([t.AddedToken("<extra>", **flags)])
    return tokenizer


def charsmap(entries):
    """SentencePiece's precompiled map of {bytes: bytes}: a double-array trie and the texts."""
    children, texts = {}, b""
    for key, value in entries.items():
        node = children
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = len(texts)
        texts += value + b"\0"
    units = [0] * 512
    used = {0}

    def place(node, at):
        labels = sorted(node)
        base = next(b for b in range(1, 1 << 20)
                    if all((b ^ label) not in used for label in labels) and 0 not in
                    [b ^ label for label in labels])
        # The offset of a unit is what its children's place is xor-ed with.
        offset = at ^ base
        units.extend([0] * (base + 512 - len(units)))
        used.update(base ^ label for label in labels)
        units[at] |= offset << 10 if offset < 1 << 21 else 0
        for label in labels:
            child = base ^ label
            if label == 0:
                units[at] |= 1 << 8
                units[child] = node[0] | 1 << 31
            else:
                units[child] |= label
                place(node[label], child)

    place(children, 0)
    raw = b"".join(u.to_bytes(4, "little") for u in units)
    return len(raw).to_bytes(4, "little") + raw + texts


def cases(t):
    """(name, a function that makes a tokenizer), for the package `t`."""
    n, p, d, r = t.normalizers, t.pre_tokenizers, t.decoders, t.processors
    regex = t.Regex
    llama3 = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
              " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
    yield "byte-level", lambda: _byte_level(t)
    yield "byte-level-prefix", lambda: _byte_level(t, p.ByteLevel(add_prefix_space=True))
    yield "byte-level-llama3", lambda: _byte_level(t, p.Sequence([
        p.Split(regex(llama3), "isolated"), p.ByteLevel(False, use_regex=False)]))
    yield "byte-level-digits", lambda: _byte_level(t, p.Sequence([
        p.Digits(True), p.ByteLevel(False)]))
    yield "byte-level-nfc", lambda: _byte_level(t, normalizer=n.NFC())
    yield "byte-level-normalizer", lambda: _byte_level(
        t, p.Whitespace(), normalizer=n.Sequence([n.NFKC(), n.ByteLevel()]))
    yield "roberta", lambda: _byte_level(t, post_processor=r.RobertaProcessing(
        ("</s>", 2), ("<s>", 1)))
    yield "byte-level-sequence", lambda: _byte_level(t, post_processor=r.Sequence([
        r.ByteLevel(trim_offsets=False),
        r.TemplateProcessing("<s> $A </s>", "<s> $A $B", [("<s>", 1), ("</s>", 2)])]))
    for name, pattern in [
            ("classes", "[[:alpha:]&&[^aeiou]]+|[a[^\\W\\d]]|\\d{2}|\\h+"),
            ("lines", "^.+$"), ("repeat", "\\p{N}{1,3}+|\\w{,2}\\b"),
            ("properties", "[\\p{Han}\\p{Hiragana}]+|\\p{^L}+|[^\\S\\n]+"),
            ("look", "(?<=a)b|(?<!a)c|(?>x+)y?|[[:punct:]]+|\\u4e2d|[\\x{1F300}-\\x{1FAFF}]"),
            ("dot-all", "(?m:l.+t)|(?i)HELLO")]:
        for behavior in ("isolated", "removed", "contiguous"):
            yield "split-%s-%s" % (name, behavior), lambda pattern=pattern, behavior=behavior: \
                _byte_level(t, p.Sequence([p.Split(regex(pattern), behavior), p.ByteLevel(False)]))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next",
                     "contiguous"):
        for invert in (False, True):
            yield "behavior-%s-%d" % (behavior, invert), lambda behavior=behavior, invert=invert: \
                _bpe(t, bytes=False, model={"unk_token": "<unk>"},
                     pre_tokenizer=p.Split(regex("[aeiou ]"), behavior, invert))
    for name, pre in [("whitespace", p.Whitespace()), ("whitespace-split", p.WhitespaceSplit()),
                      ("digits", p.Digits()), ("punctuation", p.Punctuation("merged_with_next")),
                      ("delimiter", p.CharDelimiterSplit("e")),
                      ("literal", p.Split(". ", "merged_with_previous")),
                      ("metaspace-first", p.Metaspace("_", "first")),
                      ("metaspace-never", p.Metaspace("▁", "never", split=False)),
                      ("metaspace-words", p.Sequence([p.WhitespaceSplit(),
                                                      p.Metaspace("▁", "first")]))]:
        yield "pre-" + name, lambda pre=pre: _bpe(t, bytes=False, model={"unk_token": "<unk>"},
                                                  pre_tokenizer=pre)
    for name, normalizer in [
            ("nfd", n.NFD()), ("nfkd", n.NFKD()), ("nfkc", n.NFKC()), ("lower", n.Lowercase()),
            ("accents", n.Sequence([n.NFD(), n.StripAccents()])), ("strip", n.Strip()),
            ("strip-right", n.Strip(left=False)), ("replace", n.Replace(regex("\\s+"), " ")),
            ("prepend", n.Prepend("Q")),
            ("nmt", n.Nmt()), ("literal", n.Replace("o", "0"))]:
        yield "normalizer-" + name, lambda normalizer=normalizer: _byte_level(
            t, normalizer=normalizer)
    yield "bpe-suffix", lambda: _bpe(
        t, bytes=False, model={"unk_token": "<unk>", "end_of_word_suffix": "</w>"},
        pre_tokenizer=p.WhitespaceSplit(), decoder=d.BPEDecoder())
    yield "bpe-prefix", lambda: _bpe(
        t, bytes=False, model={"unk_token": "<unk>", "continuing_subword_prefix": "##",
                               "fuse_unk": True}, pre_tokenizer=p.Whitespace())
    yield "bpe-fuse", lambda: _bpe(t, bytes=False, pre_tokenizer=p.Whitespace(),
                                   model={"unk_token": "<unk>", "fuse_unk": True})
    yield "bpe-no-unk", lambda: _bpe(t, bytes=False, pre_tokenizer=p.Whitespace())
    yield "llama", lambda: _sentence_piece_like(t)
    yield "llama-ignore-merges", lambda: _sentence_piece_like(t, ignore_merges=True)
    yield "bert", lambda: _word_piece(t, post_processor=r.BertProcessing(("[SEP]", 3),
                                                                         ("[CLS]", 2)))
    yield "bert-cased", lambda: _word_piece(
        t, normalizer=n.BertNormalizer(lowercase=False), decoder=d.WordPiece(cleanup=False),
        post_processor=r.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1",
                                            [("[CLS]", 2), ("[SEP]", 3)]))
    yield "bert-chinese", lambda: _word_piece(t, normalizer=n.BertNormalizer(
        handle_chinese_chars=False, clean_text=False))
    yield "unigram", lambda: _unigram(t)
    yield "unigram-bytes", lambda: _unigram_with_bytes(t)
    yield "unigram-charsmap", lambda: _unigram(t, normalizer=n.Sequence([
        n.Precompiled(charsmap({"ﬁ".encode(): b"fi", "Ä".encode(): "Ä".encode(),
                                "½".encode(): "1⁄2".encode(), b"\t": b" ", "\u3000".encode(): b" ",
                                "\u200b".encode(): b"", "e\u0301".encode(): "é".encode()})),
        n.Replace(regex(" {2,}"), " ")]))
    for name, flags in [("plain", {}), ("left", {"lstrip": True}), ("right", {"rstrip": True}),
                        ("both", {"lstrip": True, "rstrip": True}),
                        ("word", {"single_word": True}), ("raw", {"normalized": False})]:
        yield "added-" + name, lambda flags=flags: _with(
            _word_piece(t), t, **flags)
        yield "added-bytes-" + name, lambda flags=flags: _with(
            _byte_level(t, normalizer=n.Lowercase()), t, **flags)


def _unigram_with_bytes(t):
    tokenizer = json.loads(_unigram(t).to_str())
    tokenizer["model"]["vocab"] += [["<0x%02X>" % byte, -20.0] for byte in range(256)]
    tokenizer["model"]["byte_fallback"] = True
    tokenizer["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "ByteFallback"},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]}
    return t.Tokenizer.from_str(json.dumps(tokenizer))
