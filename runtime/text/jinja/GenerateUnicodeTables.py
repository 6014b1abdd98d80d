#!/usr/bin/env python3
"""Writes UnicodeTables.inc: the character classes and case mappings of Python's str.

Usage: GenerateUnicodeTables.py > UnicodeTables.inc
"""

import unicodedata

SURROGATES = range(0xD800, 0xE000)
POINTS = [c for c in range(0x110000) if c not in SURROGATES]


def ranges(predicate):
    found = []
    for c in POINTS:
        if not predicate(chr(c)):
            continue
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def case_ranges(mapping):
    """Runs of equal distance and stride: [first, last, stride, delta]."""
    found = []
    for c in POINTS:
        mapped = mapping(chr(c))
        if len(mapped) != 1 or mapped == chr(c):
            continue
        delta = ord(mapped) - c
        if found:
            first, last, stride, previous = found[-1]
            step = c - last
            if delta == previous and (step == stride or (first == last and step in (1, 2))):
                found[-1] = [first, c, step, delta]
                continue
        found.append([c, c, 1, delta])
    return found


def emit(name, kind, rows):
    print(f"\nconstexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        cell = " " + row + ","
        if len(line) + len(cell) > 100:
            print(line)
            line = "   "
        line += cell
    print(line)
    print("};")


def literal(text):
    return '"' + "".join(f"\\x{b:02x}" for b in text.encode()) + '"'


def main():
    print("// Made by GenerateUnicodeTables.py from Unicode " + unicodedata.unidata_version + ".")
    classes = {
        "kAlpha": str.isalpha,
        "kDecimal": str.isdecimal,
        "kDigit": str.isdigit,
        "kNumeric": str.isnumeric,
        "kUnprintable": lambda c: not c.isprintable(),
    }
    for name, predicate in classes.items():
        emit(name, "Range", [f"{{0x{a:x}, 0x{b:x}}}" for a, b in ranges(predicate)])
    for name, mapping in {"kLower": str.lower, "kUpper": str.upper}.items():
        rows = [f"{{0x{a:x}, 0x{b:x}, {s}, {d}}}" for a, b, s, d in case_ranges(mapping)]
        emit(name, "CaseRange", rows)
    specials = {
        "kSpecialLower": (str.lower, lambda c: len(c.lower()) > 1),
        "kSpecialUpper": (str.upper, lambda c: len(c.upper()) > 1),
        "kSpecialTitle": (str.title, lambda c: c.title() != c.upper()),
    }
    for name, (mapping, wanted) in specials.items():
        rows = [f"{{0x{c:x}, {literal(mapping(chr(c)))}}}" for c in POINTS if wanted(chr(c))]
        emit(name, "SpecialCase", rows)


if __name__ == "__main__":
    main()
