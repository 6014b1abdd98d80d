#!/usr/bin/env python3
"""Writes the seeds of fuzz-gguf: small sound files of every kind, and spoiled ones.

    python3 make_corpus.py          into corpus/ beside this file
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "e2e"))
import fixtures as f  # noqa: E402


def tiny(**entries):
    options = dict(layers=1, width=32, heads=2, kv_heads=1, mlp=32, vocabulary=4, context=16,
                   encoding="q4_0")
    options.update(entries)
    return f.random_model(**options)


def with_vocabulary(tokenizer):
    return tiny(vocabulary=len(tokenizer["tokenizer.ggml.tokens"].value),
                tokenizer=tokenizer)


def add_norms(model, per_head):
    head = 16
    for name, size in (("attn_q_norm", head if per_head else 32),
                       ("attn_k_norm", head if per_head else 16),
                       ("post_attention_norm", 32), ("post_ffw_norm", 32)):
        model.add("blk.0.%s.weight" % name, (size,), [1.0] * size)
    return model


def seeds():
    bpe = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
           "tokenizer.ggml.tokens": f.Typed(f.ARRAY, ["a", "b", "ab", "<|im_end|>"], f.STRING),
           "tokenizer.ggml.token_type": f.Typed(f.ARRAY, [1, 1, 1, 3], f.I32),
           "tokenizer.ggml.merges": f.Typed(f.ARRAY, ["a b"], f.STRING),
           "tokenizer.ggml.eos_token_id": 3, "tokenizer.chat_template": "{{ messages }}"}
    spm = f.spm_vocabulary(pieces=["▁", "a"], bytes_=False)
    yield "llama", tiny()
    for encoding in ("f32", "q8_0", "iq4_nl"):
        yield encoding, tiny(encoding=encoding)
    yield "untied", tiny(tied=False)
    yield "fused", f.fuse_qkv(tiny())
    yield "bpe", with_vocabulary(bpe)
    yield "spm", with_vocabulary(spm)
    yield "vocabulary", f.Gguf(bpe)
    yield "yarn", tiny(rope__scaling__type="yarn", rope__scaling__factor=4.0)
    yield "rope-freqs", tiny().add("rope_freqs.weight", (8,), [2.0] * 8)
    yield "per-layer", tiny().set("llama.attention.head_count_kv", [1])
    yield "gemma3", add_norms(tiny(arch="gemma3", attention__sliding_window=4), True)
    yield "gemma2", add_norms(tiny(arch="gemma2"), True)
    yield "granite", tiny(arch="granite", logit_scale=2.0, residual_scale=0.5)
    yield "qwen3", add_norms(tiny(arch="qwen3"), True)
    scaled = tiny()
    for name in ("attn_q", "ffn_up"):
        scaled.add("blk.0.%s.scale" % name, (1,), [0.5])
        scaled.add("blk.0.%s.bias" % name, (32,), [0.5] * 32)
    yield "scales", scaled
    yield "split", f.split(tiny(), 2)[0]


if __name__ == "__main__":
    corpus = HERE / "corpus"
    corpus.mkdir(exist_ok=True)
    for name, model in seeds():
        model.write(corpus / name)
    for name, (data, _) in f.spoiled_headers().items():
        if len(data) < 8192:
            (corpus / ("spoiled-" + name)).write_bytes(data)
