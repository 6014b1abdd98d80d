#!/usr/bin/env python3
"""Writes the seeds of fuzz-onnx: small sound files of every kind, and spoiled ones.

    python3 make_corpus.py          into corpus/ beside this file
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "e2e"))
import fixtures  # noqa: E402
import onnxfixtures  # noqa: E402
from onnxmodels import from_gguf, merged  # noqa: E402
from onnxwriter import INT4, UINT8  # noqa: E402


def seeds():
    tiny = fixtures.random_model(layers=1, width=16, heads=2, kv_heads=1, mlp=16, vocabulary=4,
                                 context=4)
    seeds = {"model-" + style: from_gguf(tiny, style)
             for style in ("primitive", "tables", "opset23", "contrib")}
    seeds["model-packed"] = from_gguf(tiny, "contrib", packed=True)
    seeds["model-no-past"] = from_gguf(tiny, "primitive", past=False, softcap=2.0)
    seeds["model-fused"] = from_gguf(tiny, "fused")
    seeds["model-merged"] = merged(tiny, "primitive")
    seeds["model-codes-4"] = from_gguf(tiny, "primitive", qdq=(INT4, 16), zeros=True)
    seeds["model-codes-8"] = from_gguf(tiny, "opset23", qdq=(UINT8, "row"))
    for name, data in onnxfixtures.graphs().items():
        seeds["graph-" + name] = data
    for name, data in onnxfixtures.folded().items():
        seeds["fold-" + name] = data
    for name, (data, _) in onnxfixtures.refused().items():
        seeds["refused-" + name] = data
    return seeds


if __name__ == "__main__":
    folder = HERE / "corpus"
    folder.mkdir(exist_ok=True)
    for name, data in seeds().items():
        (folder / name).write_bytes(data)
