"""Copies an artifact's code objects out: extract_code.py IN.llmc OUT-PREFIX -> PREFIX.0.so, ...

Looks for ELF files at page borders, as the runtime's sections are placed, and knows nothing else of
the artifact.
"""

import pathlib
import struct
import sys

PAGE = 4096
SECTION_HEADER = 64


def code_objects(data):
    for at in range(0, len(data), PAGE):
        if data[at:at + 4] == b"\x7fELF":
            (headers,) = struct.unpack_from("<Q", data, at + 40)
            (count,) = struct.unpack_from("<H", data, at + 60)
            yield data[at:at + headers + count * SECTION_HEADER]


def main(artifact, prefix):
    data = pathlib.Path(artifact).read_bytes()
    for i, elf in enumerate(code_objects(data)):
        pathlib.Path("%s.%d.so" % (prefix, i)).write_bytes(elf)


if __name__ == "__main__":
    main(*sys.argv[1:])
