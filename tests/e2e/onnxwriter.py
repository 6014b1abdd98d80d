"""Writes ONNX files byte by byte, for tests; Python's standard library only.

    model(graph(nodes, inputs, outputs, initializers), opsets={"": 18})    the bytes of a file

A message is a bytes object; the format is described in frontends/onnx/ModelReader.h. Any field can be
spoiled by writing it with `field`.
"""

import struct

(FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, UINT32,
 UINT64) = range(1, 14)
BFLOAT16, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, UINT4, INT4 = range(16, 23)
_PACK = {FLOAT: "f", UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", INT32: "i", INT64: "q",
         BOOL: "?", FLOAT16: "e", DOUBLE: "d", UINT32: "I", UINT64: "Q"}


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """One field: int (varint), float (fixed32), bytes or str."""
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(number, values):
    return b"".join(field(number, v) for v in values)


def raw(type, values):
    """Numbers as a tensor's raw data."""
    if type in (UINT4, INT4):
        nibbles = [v & 15 for v in values] + [0] * (len(values) % 2)
        return bytes(a | b << 4 for a, b in zip(nibbles[::2], nibbles[1::2]))
    if type == BFLOAT16:
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    if type in (FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ):
        return bytes(values)
    return struct.pack("<%d%s" % (len(values), _PACK[type]), *values)


def tensor(name, type, dims, values=None, external=None, extra=b""):
    """`values`: numbers, or bytes as they are. `external`: dict of location, offset, length."""
    out = fields(1, dims) + field(2, type) + field(8, name)
    if external is not None:
        for key, value in external.items():
            out += field(13, field(1, key) + field(2, str(value)))
        out += field(14, 1)
    elif type == STRING:
        out += fields(6, values)
    elif values is not None:
        out += field(9, values if isinstance(values, (bytes, bytearray)) else raw(type, values))
    return out + extra


def attribute(name, value):
    """From a Python value: int, float, str, bytes (a tensor), Graph, or a list of one kind."""
    out = field(1, name)
    if isinstance(value, Reference):
        return out + field(21, value.name) + field(20, value.kind)
    if isinstance(value, Graph):
        return out + field(6, bytes(value)) + field(20, 5)
    if isinstance(value, bytes):
        return out + field(5, value) + field(20, 4)
    if isinstance(value, str):
        return out + field(4, value) + field(20, 3)
    if isinstance(value, (bool, int)):
        return out + field(3, int(value)) + field(20, 2)
    if isinstance(value, float):
        return out + field(2, value) + field(20, 1)
    if value and isinstance(value[0], float):
        return out + fields(7, value) + field(20, 6)
    if value and isinstance(value[0], str):
        return out + fields(9, value) + field(20, 8)
    return out + fields(8, value) + field(20, 7)


class Reference:
    """In a function: the attribute of the call."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind


class Graph(bytes):
    """A GraphProto that `attribute` knows from a tensor."""


def node(op, inputs, outputs, domain="", name="", **attributes):
    out = fields(1, inputs) + fields(2, outputs) + field(4, op)
    if name:
        out += field(3, name)
    if domain:
        out += field(7, domain)
    return out + b"".join(field(5, attribute(k, v)) for k, v in attributes.items())


def value(name, type, dims=None):
    """A ValueInfoProto; a dimension is an int, a str (symbol) or None."""
    shape = b""
    if dims is not None:
        for d in dims:
            shape += field(1, b"" if d is None else field(2 if isinstance(d, str) else 1, d))
        shape = field(2, shape)
    return field(1, name) + field(2, field(1, field(1, type) + shape))


def graph(nodes, inputs=(), outputs=(), initializers=(), name="g", extra=b""):
    return Graph(fields(1, nodes) + field(2, name) + fields(5, initializers) + fields(11, inputs) +
                 fields(12, outputs) + extra)


def function(name, inputs, outputs, nodes, domain="local", attributes=(), defaults=None,
             opsets=None, extra=b""):
    out = field(1, name) + fields(4, inputs) + fields(5, outputs) + fields(6, attributes)
    out += b"".join(field(11, attribute(k, v)) for k, v in (defaults or {}).items())
    out += fields(7, nodes) + field(10, domain)
    for d, version in (opsets or {"": 18}).items():
        out += field(9, field(1, d) + field(2, version))
    return out + extra


def model(graph, opsets=None, functions=(), ir_version=10, producer="llmc-tests", extra=b""):
    out = field(1, ir_version) + field(2, producer)
    for d, version in (opsets or {"": 18}).items():
        out += field(8, (field(1, d) if d else b"") + field(2, version))
    return out + field(7, bytes(graph)) + fields(25, functions) + extra
