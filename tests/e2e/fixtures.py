"""Models made from nothing, for tests; Python's standard library only (see ggufwriter.py).

    random_model(...)     F-rand: a small Llama with random weights, any encoding, any tokenizer
    chain_model(...)      F-chain: greedy output follows a chain of tokens that the test chooses
    uniform_model(...)    F-unif: attention is the mean of the visible positions, exactly
    spoiled_headers()     F-hdr: one field wrong per file, and what the refusal must name
    split(model, n)       the same model as n parts
    bpe_vocabulary(...), spm_vocabulary(...)   toy tokenizers

As a program it writes them all into a folder:  python3 fixtures.py FOLDER
"""

import json
import math
import pathlib
import random
import struct
import sys

from ggufwriter import *  # noqa: F403 - tests take the writer from here

# Tokenizers ---------------------------------------------------------------------------------------

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def byte_letters():
    """GPT-2's letter for every byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {}, 256
    for b in range(256):
        if b in printable:
            letters[b] = chr(b)
        else:
            letters[b] = chr(extra)
            extra += 1
    return [letters[b] for b in range(256)]


def bpe_vocabulary(merges=(), special=(), pre="gpt-2", size=None, **entries):
    """Byte-level BPE: 256 byte tokens (id = byte), one token per merge ("a b"), control tokens.

    `size` fills up with unused tokens. `entries` are further tokenizer.ggml.* entries.
    """
    tokens = byte_letters() + [m.replace(" ", "") for m in merges]
    types = [NORMAL] * len(tokens) + [CONTROL] * len(special)
    tokens += list(special)
    _fill(tokens, types, size)
    metadata = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
                "tokenizer.ggml.tokens": Typed(ARRAY, tokens, STRING),
                "tokenizer.ggml.token_type": Typed(ARRAY, types, I32),
                "tokenizer.ggml.merges": Typed(ARRAY, list(merges), STRING)}
    metadata.update({"tokenizer.ggml." + k: v for k, v in entries.items()})
    return metadata


def spm_vocabulary(pieces=(), special=(), bytes_=True, size=None, **entries):
    """SentencePiece: <unk> <s> </s>, 256 byte tokens, pieces with falling scores, control tokens."""
    tokens, types, scores = ["<unk>", "<s>", "</s>"], [UNKNOWN, CONTROL, CONTROL], [0.0] * 3
    if bytes_:
        tokens += ["<0x%02X>" % b for b in range(256)]
        types += [BYTE] * 256
    types += [NORMAL] * len(pieces) + [CONTROL] * len(special)
    tokens += list(pieces)
    scores += [0.0] * (len(tokens) - len(scores) - len(pieces))
    scores += [-1.0 - i for i in range(len(pieces))]
    tokens += list(special)
    _fill(tokens, types, size)
    scores += [0.0] * (len(tokens) - len(scores))
    metadata = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default",
                "tokenizer.ggml.tokens": Typed(ARRAY, tokens, STRING),
                "tokenizer.ggml.scores": Typed(ARRAY, scores, F32),
                "tokenizer.ggml.token_type": Typed(ARRAY, types, I32),
                "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
                "tokenizer.ggml.unknown_token_id": 0}
    metadata.update({"tokenizer.ggml." + k: v for k, v in entries.items()})
    return metadata


def _fill(tokens, types, size):
    while size and len(tokens) < size:
        tokens.append("<unused%d>" % len(tokens))
        types.append(UNUSED)


# Models -------------------------------------------------------------------------------------------


def llama_metadata(layers, width, heads, kv_heads, mlp, context, arch="llama", **entries):
    """The entries of a Llama-shaped model; `entries` are further ones of the architecture."""
    metadata = {"general.architecture": arch, "general.name": "fixture"}
    own = {"block_count": layers, "context_length": context, "embedding_length": width,
           "feed_forward_length": mlp, "attention.head_count": heads,
           "attention.head_count_kv": kv_heads, "attention.layer_norm_rms_epsilon": 1e-5,
           "rope.freq_base": 10000.0}
    own.update({k.replace("__", "."): v for k, v in entries.items()})
    metadata.update({"%s.%s" % (arch, k): v for k, v in own.items()})
    return metadata


def random_model(seed=1, layers=2, width=64, heads=4, kv_heads=2, mlp=128, vocabulary=256,
                 context=256, encoding="f32", tied=True, tokenizer=None, distinct=None, **entries):
    """F-rand. `encoding` is that of all matrices; 256-blocks need a width and mlp of 256 n. With
    `distinct`, so many elements of each are random, and the others repeat them: for large models.

    `tokenizer` is metadata of a *_vocabulary() of `vocabulary` tokens; None: token ids only.
    """
    rng = random.Random(seed)
    model = Gguf(llama_metadata(layers, width, heads, kv_heads, mlp, context, **entries))
    for key, value in (tokenizer or {"tokenizer.ggml.model": "none"}).items():
        model.set(key, value)
    head = width // heads

    def matrix(name, rows, columns, scale=None):
        model.add(name, (rows, columns),
                  random_weight(rng, rows, columns, encoding, scale or columns ** -0.5, distinct),
                  encoding)

    def norm(name, size=width):
        model.add(name, (size,), [rng.uniform(0.5, 1.5) for _ in range(size)])

    matrix("token_embd.weight", vocabulary, width, 1.0)
    for i in range(layers):
        blk = "blk.%d." % i
        norm(blk + "attn_norm.weight")
        matrix(blk + "attn_q.weight", width, width)
        matrix(blk + "attn_k.weight", kv_heads * head, width)
        matrix(blk + "attn_v.weight", kv_heads * head, width)
        matrix(blk + "attn_output.weight", width, width)
        norm(blk + "ffn_norm.weight")
        matrix(blk + "ffn_gate.weight", mlp, width)
        matrix(blk + "ffn_up.weight", mlp, width)
        matrix(blk + "ffn_down.weight", width, mlp)
    norm("output_norm.weight")
    if not tied:
        embedding = model.tensor("token_embd.weight")
        model.add("output.weight", embedding["shape"], embedding["data"], encoding)
    return model


def chain_model(next_token, tokenizer=None, vocabulary=None, context=64, **entries):
    """F-chain: after token t comes next_token[t] (a dict or list; t without one repeats itself).

    The margin of the next token's logit over all others is about 8.
    """
    successors = dict(enumerate(next_token)) if isinstance(next_token, list) else dict(next_token)
    if tokenizer:
        vocabulary = len(tokenizer["tokenizer.ggml.tokens"].value)
    vocabulary = vocabulary or max([*successors, *successors.values()]) + 1
    width = align(vocabulary, 64)
    model = Gguf(llama_metadata(1, width, width // 64, width // 64, 64, context, **entries))
    for key, value in (tokenizer or {"tokenizer.ggml.model": "none"}).items():
        model.set(key, value)

    def zeros(name, rows, columns):
        model.add(name, (rows, columns), bytes(4 * rows * columns))

    def sparse(name, rows, ones):
        data = bytearray(4 * rows * width)
        for row, column, value in ones:
            struct.pack_into("<f", data, 4 * (row * width + column), value)
        model.add(name, (rows, width), data)

    sparse("token_embd.weight", vocabulary, [(t, t, 1.0) for t in range(vocabulary)])
    for name, rows, columns in (("attn_q", width, width), ("attn_k", width, width),
                                ("attn_v", width, width), ("attn_output", width, width),
                                ("ffn_gate", 64, width), ("ffn_up", 64, width),
                                ("ffn_down", width, 64)):
        zeros("blk.0.%s.weight" % name, rows, columns)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        model.add(name + ".weight", (width,), [1.0] * width)
    # The final norm makes sqrt(width) of the one-hot row. Two tokens may have one successor.
    gain = 8 / math.sqrt(width)
    sparse("output.weight", vocabulary,
           [(successors.get(t, t), t, gain) for t in range(vocabulary)])
    return model


def uniform_model(window=0, arch=None, tokens=64, context=256):
    """F-unif: with token id t at each position, logits[0] / logits[1] of a row is the mean of the
    ids of the positions that it sees. With `window`, a gemma3 with that window in its only layer.
    """
    arch = arch or ("gemma3" if window else "llama")
    width = 64
    extra = {"attention__sliding_window": window,
             "attention__sliding_window_pattern": Typed(ARRAY, [True], BOOL)} if window else {}
    model = Gguf(llama_metadata(1, width, 1, 1, 64, context, arch=arch, **extra))
    model.set("tokenizer.ggml.model", "none")

    def sparse(name, rows, columns, entries):
        data = [0.0] * (rows * columns)
        for row, column, value in entries:
            data[row * columns + column] = value
        model.add(name, (rows, columns), data)

    # Features: 0 the id, 1 what keeps the row's length equal, 2 a constant; the layer adds
    # 3 the mean of the ids and 4 the mean of ones.
    embedding = []
    for t in range(tokens):
        a = t / tokens
        embedding += [(t, 0, a), (t, 1, math.sqrt(2 - a * a)), (t, 2, 1.0)]
    rms = math.sqrt(3 / width)
    sparse("token_embd.weight", tokens, width, embedding)
    blk = "blk.0."
    sparse(blk + "attn_q.weight", width, width, [])
    sparse(blk + "attn_k.weight", width, width, [])
    sparse(blk + "attn_v.weight", width, width, [(0, 0, tokens * rms), (1, 2, rms)])
    sparse(blk + "attn_output.weight", width, width, [(3, 0, 1.0), (4, 1, 1.0)])
    for name in ("ffn_gate", "ffn_up", "ffn_down"):
        sparse(blk + name + ".weight", 64, width, [])
    norms = ["blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"]
    if arch == "gemma3":
        norms += [blk + n for n in ("attn_q_norm", "attn_k_norm", "post_attention_norm",
                                    "post_ffw_norm")]
    for name in norms:
        model.add(name + ".weight", (width,), [1.0] * width)
    sparse("output.weight", tokens, width, [(0, 3, 1.0), (1, 4, 1.0)])
    return model


def split(model, parts):
    """[Gguf] of the parts, to be written with write_split(); the first holds the metadata."""
    tensors = model.tensors
    per_part = (len(tensors) + parts - 1) // parts
    result = []
    for i in range(parts):
        part = Gguf(model.metadata if i == 0 else {},
                    tensors[i * per_part:(i + 1) * per_part], **model.header)
        part.set("split.no", Typed(U16, i)).set("split.count", Typed(U16, parts))
        part.set("split.tensors.count", Typed(I32, len(tensors)))
        result.append(part)
    return result


def write_split(parts, prefix):
    """Writes `<prefix>-00001-of-00003.gguf`, ... and returns the paths."""
    return [part.write("%s-%05d-of-%05d.gguf" % (prefix, i + 1, len(parts)))
            for i, part in enumerate(parts)]


def byte_swapped(model):
    """The same file as a big-endian machine writes it (its header; data are all zero bytes)."""
    h = model.header_bytes()
    version, tensors, entries = struct.unpack_from("<IQQ", h, 4)
    return h[:4] + struct.pack(">IQQ", version, tensors, entries) + bytes(4096)


# Spoiled files ------------------------------------------------------------------------------------


def spoiled_headers():
    """{name: (bytes, [texts that the refusal must have, in lower case])}.

    Every file must be refused with exit status 1 and one line, without a signal, without more
    than 64 MB, and with nothing written.
    """

    def base():
        return random_model()

    def spoil(name, **overrides):
        model = base()
        model.tensor(name).update(overrides)
        return model.bytes()

    def with_entry(key, value):
        return base().set(key, value).bytes()

    def raw_entry(data):
        """A file whose only entry is these bytes."""
        return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + data + bytes(64)

    query = "blk.0.attn_q.weight"
    duplicate = base()
    duplicate.tensors.append(dict(duplicate.tensor(query)))
    repeated = base()
    repeated.metadata.append(("general.name", "again"))
    big = base().bytes()
    joined = b"".join(p.bytes() for p in split(base(), 3))
    empty_key = base()
    empty_key.metadata.insert(3, ("", 1))
    overlapping = base()
    overlapping.tensor(query)["offset"] = 0
    cases = {
        "magic-only": (b"GGUF", ["truncated"]),
        "empty": (b"", ["truncated"]),
        "not-gguf": (b"ONNX" + bytes(100), ["not a gguf file"]),
        "version-1": (b"GGUF" + struct.pack("<I", 1) + bytes(100), ["version 1"]),
        "version-9": (b"GGUF" + struct.pack("<I", 9) + bytes(100), ["version 9"]),
        "big-endian": (byte_swapped(base()), ["byte order"]),
        "zero-dimension": (spoil(query, dims=(8, 0)), [query, "dimension"]),
        "no-dimensions": (spoil(query, dims=()), [query, "dimensions"]),
        "five-dimensions": (spoil(query, dims=(1, 1, 1, 1, 1)), [query, "dimensions"]),
        "dimension-product": (spoil(query, dims=(2 ** 32, 2 ** 32)), [query, "overflow"]),
        "dimension-bytes": (spoil(query, dims=(256, 2 ** 42 + 1)), ["truncated"]),
        "dimension-negative": (spoil(query, dims=(64, 2 ** 64 - 1)), [query, "overflow"]),
        "empty-key": (empty_key.bytes(), ["entry 3", "empty key"]),
        "key-length": (raw_entry(struct.pack("<Q", 2 ** 40)), ["key of metadata entry 0"]),
        "value-length": (raw_entry(string("a") + struct.pack("<IQ", STRING, 2 ** 63)), ["'a'"]),
        "array-count": (raw_entry(string("a") + struct.pack("<IIQ", ARRAY, U8, 2 ** 36)), ["'a'"]),
        "string-array-count": (raw_entry(string("a") + struct.pack("<IIQ", ARRAY, STRING, 2 ** 32)),
                               ["'a'"]),
        "array-of-arrays": (raw_entry(string("a") + struct.pack("<IIQ", ARRAY, ARRAY, 1)),
                            ["'a'", "inside an array"]),
        "value-type": (raw_entry(string("a") + struct.pack("<I", 13)), ["'a'", "type 13"]),
        "tensor-count": (Gguf(base().metadata, base().tensors, tensor_count=2 ** 60).bytes(),
                         ["number of tensors"]),
        "entry-count": (Gguf(base().metadata, base().tensors, entry_count=2 ** 63).bytes(),
                        ["number of metadata entries"]),
        "duplicate-tensor": (duplicate.bytes(), [query, "twice"]),
        "duplicate-key": (repeated.bytes(), ["general.name", "repeats"]),
        "alignment-0": (with_entry("general.alignment", 0), ["general.alignment", "0"]),
        "alignment-12": (with_entry("general.alignment", 12), ["general.alignment", "12"]),
        "alignment-i32": (with_entry("general.alignment", Typed(I32, 32)),
                          ["general.alignment", "i32"]),
        "offset-unaligned": (spoil(query, offset=3), [query, "alignment"]),
        "offset-wild": (spoil(query, offset=2 ** 63 - 32), [query]),
        "overlap": (overlapping.bytes(), [query, "overlap"]),
        "cut": (big[:len(big) - 33], ["truncated", str(len(big) - 33)]),
        "joined-parts": (joined, ["joined shards"]),
        "head-count-0": (with_entry("llama.attention.head_count", 0), ["head"]),
        "kv-head-count-0": (with_entry("llama.attention.head_count_kv", 0), ["head_count_kv"]),
        "kv-heads-wrong-length": (with_entry("llama.attention.head_count_kv", [2, 2, 2]),
                                  ["head_count_kv", "3 values"]),
        "layers-huge": (with_entry("llama.block_count", 2 ** 31 - 1), ["block_count"]),
        "layers-missing-tensor": (with_entry("llama.block_count", 3), ["blk.2.attn_norm.weight"]),
        "width-text": (with_entry("llama.embedding_length", "64"), ["embedding_length", "string"]),
        "rope-odd": (with_entry("llama.rope.dimension_count", 3), ["dimension_count"]),
        "architecture": (with_entry("general.architecture", "no-such"), ["no-such", "unsupported"]),
    }
    for type_id in (4, 39, 139, 2 ** 31):
        cases["type-%d" % type_id] = (spoil(query, type=type_id),
                                      [query, str(type_id), "unsupported"])
    return cases


# Models that must compute the same, and other single questions --------------------------------------


def fuse_qkv(model):
    """The same model with attn_q, attn_k and attn_v of every layer in one attn_qkv."""
    for blk in sorted({t["name"].rsplit(".", 2)[0] for t in model.tensors if "attn_q" in t["name"]}):
        parts = [model.tensor("%s.attn_%s.weight" % (blk, x)) for x in "qkv"]
        for part in parts:
            model.remove(part["name"])
        model.add(blk + ".attn_qkv.weight",
                  (sum(p["shape"][0] for p in parts), parts[0]["shape"][1]),
                  b"".join(p["data"] for p in parts), parts[0]["encoding"])
    return model


def phi3_model(fused):
    """A phi3 whose ffn_up holds gate and up; or, not fused, a qwen2 that computes the same."""
    model = random_model(arch="phi3" if fused else "qwen2")
    for i in range(2 if fused else 0):
        gate, up = (model.tensor("blk.%d.ffn_%s.weight" % (i, x)) for x in ("gate", "up"))
        model.remove(gate["name"])
        up["shape"] = (2 * up["shape"][0], up["shape"][1])
        up["data"] = gate["data"] + up["data"]
    return model


def llama3_factors(dims, base, factor, low=1.0, high=4.0, context=8192):
    """rope_freqs as Llama 3.1 writes them."""
    factors = []
    for i in range(dims // 2):
        turns = context * base ** (-2 * i / dims) / (2 * math.pi)
        smooth = min(1.0, max(0.0, (turns - low) / (high - low)))
        factors.append(1 / ((1 - smooth) / factor + smooth))
    return factors


def variants():
    """{name: Gguf}: F-rand written in other ways."""
    def yarn(**entries):
        return random_model(rope__scaling__type="yarn", rope__scaling__factor=4.0,
                            rope__scaling__original_context_length=64, **entries)

    def with_factors(value):
        return random_model().add("rope_freqs.weight", (8,), [value] * 8)

    llama3 = random_model(heads=1, kv_heads=1)
    llama3.set("llama.rope.freq_base", 500000.0)
    llama3.add("rope_freqs.weight", (32,), llama3_factors(64, 500000.0, 32.0))
    no_pre = random_model(vocabulary=256, tokenizer=bpe_vocabulary(pre="no-such"))
    return {
        "rand": random_model(), "rand-other": random_model(seed=2),
        "rand-untied": random_model(tied=False), "rand-fused-qkv": fuse_qkv(random_model()),
        "phi3": phi3_model(True), "phi3-as-qwen2": phi3_model(False),
        "kv-array": random_model().set("llama.attention.head_count_kv", [2, 2]),
        "kv-scalar-mha": random_model(kv_heads=4),
        "kv-absent-mha": random_model(kv_heads=4).set("llama.attention.head_count_kv", None),
        "rope-ones": with_factors(1.0), "rope-twos": with_factors(2.0),
        "rope-linear2": random_model(rope__scaling__type="linear", rope__scaling__factor=2.0),
        "rope-yarn4": yarn(), "rope-llama3": llama3,
        "rope-yarn4-explicit": yarn(rope__scaling__yarn_attn_factor=1.0),
        "rope-yarn4-log": yarn(rope__scaling__yarn_log_multiplier=1.0),
        "longrope": random_model(rope__scaling__original_context_length=64,
                                 rope__scaling__attn_factor=1.5)
        .add("rope_factors_short.weight", (8,), [1.0] * 8)
        .add("rope_factors_long.weight", (8,), [4.0] * 8),
        "temperature": random_model(arch="mistral3", attention__temperature_scale=0.1,
                                    rope__scaling__original_context_length=64),
        "mixture": random_model(expert_count=8),
        "rope-unknown": random_model(rope__scaling__type="no-such"),
        "pre-unknown": no_pre,
        "pre-qwen2": random_model(vocabulary=256, tokenizer=bpe_vocabulary(pre="qwen2")),
    }


def three_tensors(alignment, name_length, pad_last=True):
    """Three tensors of 16 bytes holding ones, twos and threes. `name_length` moves the header's
    end."""
    model = Gguf({"general.alignment": alignment, "general.name": "n" * name_length},
                 alignment=alignment, pad_last=pad_last)
    for i in (1, 2, 3):
        model.add("t%d" % i, (4,), [float(i)] * 4)
    return model


def write_all(folder):
    folder = pathlib.Path(folder)
    (folder / "three").mkdir(parents=True, exist_ok=True)
    for name, model in variants().items():
        model.write(folder / (name + ".gguf"))
    for alignment in (16, 64, 4096):
        for length in range(32):
            for pad in (True, False):
                three_tensors(alignment, length, pad).write(
                    folder / "three" / ("%d-%d-%d.gguf" % (alignment, length, pad)))
    bpe = bpe_vocabulary(merges=["a b", "no-such x", "ab c"], special=["<s>", "<|im_end|>"],
                         eos_token_id=259)
    random_model(vocabulary=261, tokenizer=bpe).write(folder / "rand-bpe.gguf")
    spm = spm_vocabulary(pieces=["▁", "a", "b", "▁a", "ab"], size=320)
    random_model(vocabulary=320, tokenizer=spm).write(folder / "rand-spm.gguf")
    for encoding in ENCODINGS:
        random_model(width=256, mlp=256, encoding=encoding).write(
            folder / ("rand-%s.gguf" % encoding))
    chain_model([(t + 1) % 64 for t in range(64)]).write(folder / "chain.gguf")
    uniform_model().write(folder / "unif.gguf")
    uniform_model(window=4).write(folder / "unif-window4.gguf")
    write_split(split(random_model(), 3), folder / "split")
    spoiled = spoiled_headers()
    for name, (data, _) in spoiled.items():
        (folder / ("spoiled-%s.gguf" % name)).write_bytes(data)
    (folder / "spoiled.json").write_text(
        json.dumps({name: texts for name, (_, texts) in spoiled.items()}, indent=1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_all(sys.argv[1])
