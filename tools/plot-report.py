#!/usr/bin/env python3
"""Plots what `llmc report --json` says: plot-report.py OUT.svg TITLE REPORT.json..."""

import json
import pathlib
import sys

from svgplot import stacked_bars

PARTS = ("memory", "issue beyond it", "latency beyond both", "launch")


def parts(row):
    """Microseconds of a token, by what they are spent on."""
    memory, issue, latency = row["memory_us"], row["issue_us"], row["latency_us"]
    beyond = max(0, issue - memory)
    rest = max(0, latency - max(memory, issue))
    return [row["count"] * us for us in (memory, beyond, rest, row["launch_us"])]


def main(output, title, *reports):
    bars = {}
    for path in reports:
        report = json.loads(pathlib.Path(path).read_text())
        ops = {}
        for row in report["kernels"]:
            sums = ops.setdefault(row["op"], [0] * len(PARTS))
            ops[row["op"]] = [a + b for a, b in zip(sums, parts(row))]
        name = report["gpu"]["name"]
        for op, sums in ops.items():
            if sum(sums) >= 0.01 * report["token"]["all_us"]:
                bars["%s, %s" % (name, op) if len(reports) > 1 else op] = sums
    pathlib.Path(output).write_text(stacked_bars(title, "us of a token", PARTS, bars))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
