"""Writes GGUF files byte by byte, for tests; Python's standard library only.

    Gguf(metadata, tensors)            a file in the making; every field can be spoiled
    encode(values, encoding)           floats as a tensor's bytes
    random_weight(rng, ...)            a weight of any encoding

The format is described in frontends/gguf/GgufFile.h.
"""

import pathlib
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_PACK = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?",
         U64: "Q", I64: "q", F64: "d"}

# Encoding: ggml type id, elements and bytes of a block, offsets of its float16 scales.
ENCODINGS = {
    "f32": (0, 1, 4, ()), "f16": (1, 1, 2, ()), "bf16": (30, 1, 2, ()),
    "q4_0": (2, 32, 18, (0,)), "q4_1": (3, 32, 20, (0, 2)), "q5_0": (6, 32, 22, (0,)),
    "q5_1": (7, 32, 24, (0, 2)), "q8_0": (8, 32, 34, (0,)), "q2_k": (10, 256, 84, (80, 82)),
    "q3_k": (11, 256, 110, (108,)), "q4_k": (12, 256, 144, (0, 2)), "q5_k": (13, 256, 176, (0, 2)),
    "q6_k": (14, 256, 210, (208,)), "iq4_nl": (20, 32, 18, (0,)), "iq4_xs": (23, 256, 136, (0,)),
}


class Typed:
    """A metadata value of a stated type; `element` is the element type of an array."""

    def __init__(self, type, value, element=None):
        self.type, self.value, self.element = type, value, element


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value):
    if isinstance(value, Typed):
        return value
    if isinstance(value, bool):
        return Typed(BOOL, value)
    if isinstance(value, int):
        return Typed(U32 if value >= 0 else I32, value)
    if isinstance(value, float):
        return Typed(F32, value)
    if isinstance(value, (str, bytes)):
        return Typed(STRING, value)
    return Typed(ARRAY, value, _typed(value[0]).type if len(value) else U32)


def _scalar(type, value):
    return string(value) if type == STRING else struct.pack("<" + _PACK[type], value)


class Repeated:
    """Bytes of a large tensor: a pattern, over and over. They are not held in memory."""

    def __init__(self, pattern, size):
        self.pattern, self.size = pattern, size

    def __len__(self):
        return self.size

    def pieces(self):
        piece = self.pattern * max(1, (1 << 22) // len(self.pattern))
        for start in range(0, self.size, len(piece)):
            yield piece[:self.size - start]


class Gguf:
    """A file in the making. `metadata` is a dict or, to repeat a key, a list of pairs.

    Tensors are dicts with name, shape (rows first), encoding and data (bytes); the keys `dims`,
    `type` and `offset` override what is written for them. `version`, `tensor_count`,
    `entry_count`, `alignment` and `magic` override the header.
    """

    def __init__(self, metadata=(), tensors=(), **header):
        self.metadata = list(metadata.items() if isinstance(metadata, dict) else metadata)
        self.tensors = list(tensors)
        self.header = header
        self.pad_last = header.pop("pad_last", True)

    def set(self, key, value):
        """Sets an entry in its place, or adds it; None removes it."""
        for i, (known, _) in enumerate(self.metadata):
            if known == key:
                if value is None:
                    del self.metadata[i]
                else:
                    self.metadata[i] = (key, value)
                return self
        if value is not None:
            self.metadata.append((key, value))
        return self

    def get(self, key):
        return dict(self.metadata)[key]

    def add(self, name, shape, data, encoding="f32", **overrides):
        """Adds a tensor of floats (encoded here) or bytes."""
        if not isinstance(data, (bytes, bytearray, Repeated)):
            data = encode(data, encoding)
        self.tensors.append(dict(name=name, shape=tuple(shape), encoding=encoding,
                                 data=data if isinstance(data, Repeated) else bytes(data),
                                 **overrides))
        return self

    def tensor(self, name):
        return next(t for t in self.tensors if t["name"] == name)

    def remove(self, name):
        self.tensors = [t for t in self.tensors if t["name"] != name]
        return self

    def header_bytes(self):
        """All before the data, not padded."""
        h = self.header
        alignment = h.get("alignment", 32)
        out = [h.get("magic", b"GGUF"),
               struct.pack("<IQQ", h.get("version", 3), h.get("tensor_count", len(self.tensors)),
                           h.get("entry_count", len(self.metadata)))]
        for key, value in self.metadata:
            value = _typed(value)
            out += [string(key), struct.pack("<I", value.type)]
            if value.type == ARRAY:
                out.append(struct.pack("<IQ", value.element, len(value.value)))
                out += [_scalar(value.element, v) for v in value.value]
            else:
                out.append(_scalar(value.type, value.value))
        offset = 0
        for t in self.tensors:
            dims = t.get("dims", tuple(reversed(t["shape"])))
            out += [string(t["name"]), struct.pack("<I", len(dims)),
                    struct.pack("<%dQ" % len(dims), *dims),
                    struct.pack("<IQ", t.get("type", ENCODINGS[t["encoding"]][0]),
                                t.get("offset", offset))]
            offset = align(offset + len(t["data"]), alignment)
        return b"".join(out)

    def pieces(self):
        """The file, one piece of bytes after the other."""
        alignment = self.header.get("alignment", 32)
        header = self.header_bytes()
        yield header
        size = len(header)
        for t in self.tensors:
            padding = align(size, alignment) - size
            yield bytes(padding)
            if isinstance(t["data"], Repeated):
                yield from t["data"].pieces()
            else:
                yield t["data"]
            size += padding + len(t["data"])
        if self.pad_last and self.tensors:
            yield bytes(align(size, alignment) - size)

    def bytes(self):
        return b"".join(self.pieces())

    def write(self, path):
        with open(path, "wb") as file:
            for piece in self.pieces():
                file.write(piece)
        return path


def align(n, to):
    return (n + to - 1) // to * to


# Weights ------------------------------------------------------------------------------------------


def half(x):
    return struct.pack("<e", x)


def _quantize_blocks(values, block):
    for i in range(0, len(values), block):
        yield values[i:i + block]


def encode(values, encoding):
    """Floats in f32, f16, bf16, q8_0, q4_0 or q4_1 (nearest code; good enough for tests)."""
    if encoding == "f32":
        return struct.pack("<%df" % len(values), *values)
    if encoding == "f16":
        return struct.pack("<%de" % len(values), *values)
    out = bytearray()
    if encoding == "bf16":
        for v in values:
            bits, = struct.unpack("<I", struct.pack("<f", v))
            out += struct.pack("<H", (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
    elif encoding == "q8_0":
        for b in _quantize_blocks(values, 32):
            d = max(abs(v) for v in b) / 127 or 1.0
            out += half(d) + struct.pack("<32b", *(round(v / d) for v in b))
    elif encoding in ("q4_0", "q4_1"):
        for b in _quantize_blocks(values, 32):
            if encoding == "q4_0":
                d = max(abs(v) for v in b) / 7 or 1.0
                codes = [min(15, max(0, round(v / d) + 8)) for v in b]
                out += half(d)
            else:
                low = min(b)
                d = (max(b) - low) / 15 or 1.0
                codes = [min(15, max(0, round((v - low) / d))) for v in b]
                out += half(d) + half(low)
            out += bytes(codes[i] | codes[i + 16] << 4 for i in range(16))
    else:
        raise ValueError("no encoder for " + encoding)
    return bytes(out)


def random_weight(rng, rows, columns, encoding, scale, distinct=None):
    """A weight of about that magnitude; block encodings are random bits with a small scale. With
    `distinct`, so many elements are random, and the others repeat them."""
    if distinct and distinct < rows * columns:
        _, elements, size, _ = ENCODINGS[encoding]
        return Repeated(random_weight(rng, 1, align(distinct, elements), encoding, scale),
                        rows * columns // elements * size)
    if encoding in ("f32", "f16", "bf16"):
        return encode([rng.gauss(0, scale) for _ in range(rows * columns)], encoding)
    _, elements, size, scales = ENCODINGS[encoding]
    out = bytearray()
    # The largest code, with its sub-scale where there is one, comes to about three sigma.
    reach = {"q8_0": 128, "iq4_nl": 128, "q4_0": 8, "q4_1": 16, "q5_0": 16, "q5_1": 32,
             "q2_k": 3 * 15, "q3_k": 4 * 32, "q4_k": 15 * 63, "q5_k": 31 * 63, "q6_k": 32 * 128,
             "iq4_xs": 128 * 32}[encoding]
    for _ in range(rows * columns // elements):
        block = bytearray(rng.randbytes(size))
        d = 3 * scale / reach * rng.uniform(0.5, 1)
        for i, offset in enumerate(scales):
            # The second is a min: chosen so that values lie about zero.
            value = d if i == 0 else (d * reach / 2 / 63 if encoding[-1] == "k" else -d * reach / 2)
            block[offset:offset + 2] = half(value)
        out += block
    return bytes(out)
