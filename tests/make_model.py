"""Writes a random model, a tiny one by default: make_model.py OUT.gguf [key=value...].

Keys are the parameters of random_model() in tests/e2e/fixtures.py (layers, width, heads, kv_heads,
mlp, vocabulary, context, encoding, tied, seed, distinct) or entries of the architecture.
`shape=llama-8b` has the extents of Llama 3 8B in Q4_0, `layers` of its 32 (4.5 GB for all of them).
`broken=NAME` writes one of the spoiled headers instead.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "e2e"))
import fixtures  # noqa: E402


SHAPES = {
    "llama-8b": dict(layers=32, width=4096, heads=32, kv_heads=8, mlp=14336, vocabulary=128256,
                     context=8192, encoding="q4_0", tied=False, distinct=(1 << 17) + 32),
}


def value(text):
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


def main(path, *assignments):
    options = {k: value(v) for k, v in (a.split("=", 1) for a in assignments)}
    broken = options.pop("broken", None)
    if broken:
        data, _ = fixtures.spoiled_headers()[broken]
        pathlib.Path(path).write_bytes(data)
    else:
        fixtures.random_model(**{**SHAPES.get(options.pop("shape", None), {}),
                                 **options}).write(path)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
