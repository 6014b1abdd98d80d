"""Counts the instructions of the innermost loops of a function that hold dot products:

    python3 count_loops.py OUT.0.so gemv_q4_1_k512_int8      (extract_code.py makes OUT.0.so)

One line per loop: instructions, dot products among them, loads and stores of the stack.
"""

import re
import subprocess
import sys

OBJDUMP = "/usr/lib/llvm-22/bin/llvm-objdump"
BRANCH = re.compile(r"(?:b\.\w+|cbn?z|tbn?z|j\w+)\s.*?0x([0-9a-f]+) <")
DOT = re.compile(r"(?:sdot|usdot|vpdpbusd|vpmaddubsw)\b")
STACK = re.compile(r"\[sp|\(%rsp")


def instructions(path, function):
    listing = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn",
                              "--disassemble-symbols=" + function, path],
                             check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^\s*([0-9a-f]+):\s+(\S.*)$", listing, re.M)
    return [(int(address, 16), text) for address, text in found]


def main(path, function):
    code = instructions(path, function)
    index = {address: i for i, (address, _) in enumerate(code)}
    loops = []
    for end, (_, text) in enumerate(code):
        target = BRANCH.match(text)
        begin = index.get(int(target[1], 16)) if target else None
        if begin is not None and begin <= end:
            loops.append((begin, end))
    for begin, end in loops:
        body = [text for _, text in code[begin:end + 1]]
        dots = sum(1 for text in body if DOT.match(text))
        inner = any((b, e) != (begin, end) and begin <= b and e <= end for b, e in loops)
        if dots and not inner:
            print("%s: %d instructions, %d dot products, %d on the stack" %
                  (function, len(body), dots, sum(1 for text in body if STACK.search(text))))


if __name__ == "__main__":
    main(*sys.argv[1:])
