"""Adds up test results and prints `N passed, N failed[, N skipped]`: summary.py FOLDER.

Reads from FOLDER:
    *.xml     JUnit files of lit, ctest and gtest; a gtest binary's cases stand for its ctest entry
    *.log     output of `python3 -m unittest`
    checks    lines of `pass NAME` or `fail NAME`
Every failure is named. The exit status is 1 if anything failed or nothing ran.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


class Counts:
    def __init__(self):
        self.passed, self.skipped, self.failed = 0, 0, []

    def read_junit(self, path, known=()):
        """Counts test cases, but those whose name is in `known`."""
        for case in ElementTree.parse(path).iter("testcase"):
            name = case.get("name")
            state = case.get("status") or ""
            if case.find("failure") is not None or case.find("error") is not None:
                # A binary with failed cases says which; one that died says nothing else.
                if name not in known or not known[name]:
                    self.failed.append("%s: %s" % (path.stem, name))
            elif name in known:
                pass
            elif (case.find("skipped") is not None or case.get("result") == "skipped"
                  or state in ("notrun", "disabled")):
                self.skipped += 1
            else:
                self.passed += 1

    def read_unittest(self, path):
        text = path.read_text(errors="replace")
        ran = re.search(r"^Ran (\d+) tests? in ", text, re.M)
        # A test fails once, however many of its subtests do.
        bad = sorted(set(re.findall(r"^(?:FAIL|ERROR): (\w+ \([^)]*\))", text, re.M)))
        if not ran:
            self.failed.append("%s: did not finish" % path.stem)
            return
        skipped = sum(map(int, re.findall(r"skipped=(\d+)", text)))
        self.failed += ["%s: %s" % (path.stem, name) for name in bad]
        self.skipped += skipped
        self.passed += max(0, int(ran[1]) - skipped - len(bad))

    def read_checks(self, path):
        for line in path.read_text().splitlines():
            verdict, name = line.split(" ", 1)
            if verdict == "pass":
                self.passed += 1
            else:
                self.failed.append(name)


def failures(path):
    root = ElementTree.parse(path).getroot()
    return int(root.get("failures", 0)) + int(root.get("errors", 0))


def main(folder):
    counts = Counts()
    folder = pathlib.Path(folder)
    binaries = {}
    for path in sorted(folder.glob("gtest*/*.xml")):
        counts.read_junit(path)
        binaries[path.stem] = failures(path)
    for path in sorted(folder.glob("*.xml")):
        counts.read_junit(path, binaries if path.stem.startswith("ctest") else ())
    for path in sorted(folder.glob("*.log")):
        counts.read_unittest(path)
    if (folder / "checks").exists():
        counts.read_checks(folder / "checks")
    for name in counts.failed:
        print("FAILED " + name)
    line = "%d passed, %d failed" % (counts.passed, len(counts.failed))
    print(line + (", %d skipped" % counts.skipped if counts.skipped else ""))
    return 1 if counts.failed or not counts.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
