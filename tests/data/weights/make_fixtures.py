#!/usr/bin/env python3
"""Writes dequant.bin: random source blocks of every encoding and what `gguf` makes of them.

Needs the PyPI packages gguf and numpy. Records, little-endian, until the end of the file:
  char name[16]; u32 rows, k, source_bytes; source bytes of all rows; f32 values [rows, k]
"""
import pathlib
import struct

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants

# Encoding -> byte offsets of the f16 fields of a block; all other bytes are random.
HALVES = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
    T.IQ4_NL: [0], T.IQ4_XS: [0],
}
ROWS, K = 2, 512


def random_rows(rng, kind):
    elements, size = quants.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (ROWS * K // elements, size), dtype=np.uint8)
    for offset in HALVES.get(kind, []):
        # Scales of all magnitudes and both signs; a few are subnormal or zero.
        values = rng.normal(0, 1, len(blocks)) * 2.0 ** rng.integers(-18, 3, len(blocks))
        values[0] = 0.0
        blocks[:, offset:offset + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)
    return blocks.reshape(ROWS, -1)


def main():
    rng = np.random.default_rng(1)
    out = bytearray()
    for kind in [T.F32, T.F16, T.BF16, *HALVES]:
        if kind in HALVES:
            source = random_rows(rng, kind)
        else:
            source = quants.quantize(rng.normal(0, 3, (ROWS, K)).astype(np.float32), kind)
        source = np.ascontiguousarray(source)
        values = quants.dequantize(source, kind).astype("<f4").reshape(ROWS, K)
        data = source.tobytes()
        out += struct.pack("<16sIII", kind.name.lower().encode(), ROWS, K, len(data))
        out += data + values.tobytes()
    (pathlib.Path(__file__).parent / "dequant.bin").write_bytes(out)


if __name__ == "__main__":
    main()
