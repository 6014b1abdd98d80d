"""What a process does before its first token: counts, since times depend on the machine."""

import pathlib
import re
import shutil
import sys
import unittest

from harness import LLMC_RUN, REAL_MODELS, TestCase, compiled, model, run, succeed

# Loads a model and prints what that has put on the heap, in bytes.
LOADER = """
import ctypes, sys
sys.path.insert(0, %r)
import harness
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]
libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
def heap():
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd
harness._library()
before = heap()
loaded = harness.Model(sys.argv[1])
print(heap() - before)
""" % str(pathlib.Path(__file__).parent)


class Start(TestCase):
    def test_loading_builds_no_tables(self):
        """The hash tables over a vocabulary of hundreds of thousands of tokens are in the file."""
        for name in REAL_MODELS:
            with self.subTest(model=name):
                heap = int(succeed(sys.executable, "-c", LOADER, compiled(model(name))).text)
                self.assertLess(heap, 256 << 10)

    def test_system_calls(self):
        """A few hundred, whatever the size of the model; futexes are the threads' affair."""
        if not shutil.which("strace"):
            self.skipTest("no strace")
        for name in REAL_MODELS:
            with self.subTest(model=name):
                log = self.folder / "calls"
                traced = run("strace", "-f", "-qq", "-o", log, "-e", "trace=!futex,sched_yield",
                             LLMC_RUN, compiled(model(name)), "-p", "Once upon a time", "-n", "1",
                             "--threads", "2")
                if "ptrace" in traced.error.lower():
                    self.skipTest("no right to trace: " + traced.error)
                self.assertEqual(traced.code, 0, traced.error)
                lines = log.read_text().splitlines()
                calls = [line for line in lines if re.match(r"\d+ +\w+\(", line)]
                self.assertGreater(len(calls), 20)
                self.assertLess(len(calls), 300)
                # The artifact is mapped, not read.
                opened = [line for line in calls if ".llmc" in line and "open" in line]
                self.assertEqual(len(opened), 1)
                reads = sum(int(line.rsplit("= ", 1)[1]) for line in calls
                            if re.search(r" p?read(64)?\(", line) and re.search(r"= \d+$", line))
                self.assertLess(reads, 1 << 20)


if __name__ == "__main__":
    unittest.main()
