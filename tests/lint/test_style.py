"""Form of the sources: banners, length, formatting, nothing unfinished, nothing of one machine."""

import re
import subprocess
import unittest

import repository

MAX_LINES = 800
CLANG_FORMAT = "clang-format-22"

LICENSE_LINES = ("Part of llmc, under the Apache License v2.0 with LLVM Exceptions.",
                 "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE = re.compile(r"/(?:work|root|home/\w+)/")


class Style(unittest.TestCase):
    def written_by_hand(self):
        """Sources, build files, scripts and pages; data is none of these."""
        suffixes = (*repository.CXX, ".td", ".fbs", ".py", ".sh", ".txt", ".cmake", ".in", ".json",
                    ".md", ".mlir", ".test")
        return [p for p in repository.files(*suffixes)
                if not str(p).startswith(("tests/data/", "docs/dialects/", "docs/passes/"))
                and "corpus" not in p.parts
                and not (p.suffix == ".json" and p.parts[0] == "tests")]

    def test_banners(self):
        for path in repository.files(*repository.CXX, ".td"):
            if path.parts[:2] == ("tests", "data"):
                continue
            with self.subTest(path=str(path)):
                head = repository.read(path)[:600]
                self.assertRegex(head, r"\A(//|/\*)===-+ " + re.escape(path.name) + " - ")
                for line in LICENSE_LINES:
                    self.assertIn(line, head)

    def test_length(self):
        for path in self.written_by_hand():
            with self.subTest(path=str(path)):
                lines = repository.read(path).count("\n")
                self.assertLessEqual(lines, MAX_LINES, "it is two things")

    def test_nothing_unfinished(self):
        for path in self.written_by_hand():
            if path.name == "test_style.py":
                continue
            with self.subTest(path=str(path)):
                self.assertNotRegex(repository.read(path), UNFINISHED)

    def test_no_machine_paths(self):
        for path in self.written_by_hand():
            if path.name == "test_style.py":
                continue
            with self.subTest(path=str(path)):
                self.assertNotRegex(repository.read(path), MACHINE)

    def test_clang_format(self):
        sources = [str(p) for p in repository.files(*repository.CXX)]
        done = subprocess.run([CLANG_FORMAT, "--dry-run", "-Werror", *sources],
                              cwd=repository.ROOT, capture_output=True, text=True)
        unformatted = sorted({line.split(":")[0] for line in done.stderr.splitlines()
                              if "clang-format-violations" in line})
        self.assertEqual(unformatted, [], f"run {CLANG_FORMAT} -i on these")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
