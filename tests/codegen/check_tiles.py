"""Where an x86-64 code object uses matrix tiles: check_tiles.py CODE.so

Prints the functions that do. Fails unless tiles are configured in the functions tiles_begin_* only
and released in tiles_end_* only, tile registers are used by products only, and every function that
calls the one calls the other as often, after it.
"""

import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
TILE = re.compile(r"\t(ldtilecfg|sttilecfg|tilerelease|tile\w+|tdp\w+)\b")
CALL = re.compile(r"\t(?:callq?|jmp) .*<(tiles_(?:begin|end)_\w+)>$")
PLACES = {"ldtilecfg": r"tiles_begin_\w+", "tilerelease": r"tiles_end_\w+"}
PRODUCT = r"(bf16_)?matmul_\w+"


def functions(path):
    """Name -> lines of its disassembly."""
    text = subprocess.run(["llvm-objdump", "-d", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout
    found, current = {}, None
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            current = found.setdefault(match[1], [])
        elif current is not None:
            current.append(line)
    return found


def main(path):
    users = {}
    for name, lines in functions(path).items():
        for line in lines:
            if match := TILE.search(line):
                place = PLACES.get(match[1], PRODUCT)
                assert re.fullmatch(place, name), "%s: %s" % (name, line.strip())
                users.setdefault(name, set()).add(match[1])
        calls = [m[1] for m in map(CALL.search, lines) if m]
        begins = [c for c in calls if c.startswith("tiles_begin")]
        ends = [c for c in calls if c.startswith("tiles_end")]
        assert len(begins) == len(ends), "%s: %s" % (name, calls)
        assert calls == [c for pair in zip(begins, ends) for c in pair], "%s: %s" % (name, calls)
    for name in sorted(users):
        print(name, *sorted(users[name]))


if __name__ == "__main__":
    main(*sys.argv[1:])
