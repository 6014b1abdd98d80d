"""What the runtime's binaries depend on: no LLVM, no CUDA, as `readelf -d` tells."""

import re
import subprocess
import unittest

import repository

NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
FORBIDDEN = re.compile(r"LLVM|MLIR|lld|clang|cuda|cudart", re.I)


def needed(path):
    """Names of the shared libraries that the file asks the loader for."""
    dynamic = subprocess.run(["readelf", "-d", str(path)], check=True, capture_output=True,
                             text=True).stdout
    return NEEDED.findall(dynamic)


class Binaries(unittest.TestCase):
    def built(self, name):
        found = [p for p in repository.BUILD.rglob(name) if p.is_file()]
        if not found:
            self.skipTest(f"{name} is not built in {repository.BUILD}")
        return found[0]

    def check(self, name):
        libraries = needed(self.built(name))
        self.assertTrue(libraries, f"{name} has no dynamic section")
        self.assertEqual([lib for lib in libraries if FORBIDDEN.search(lib)], [])

    def test_llmc_run(self):
        self.check("llmc-run")

    def test_libllmc(self):
        self.check("libllmc.so")

    def test_the_check_sees_llvm(self):
        libraries = needed(self.built("llmc-opt"))
        self.assertTrue([lib for lib in libraries if FORBIDDEN.search(lib)])


if __name__ == "__main__":
    unittest.main()
