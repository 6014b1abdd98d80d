"""Who may include whom. One row per room; docs/design/architecture.md gives the reasons."""

import re
import unittest

import repository

LLVM = ["llvm", "mlir"]
IR = LLVM + ["compiler/ir", "compiler/support"]
WEIGHTS = IR + ["compiler/weights"]
# What a compiled model and its runtime agree on.
CONTRACT = ["runtime/schema", "llmc/kernel_abi.h", "llmc/cuda_abi.h"]
RUNTIME = ["runtime", "llmc"]

# Room: what it may include besides itself. The longest prefix of a file's path is its room.
MAY_INCLUDE = {
    "runtime/base": [],
    "runtime/schema": [],
    "runtime/include": ["llmc"],
    "runtime/device": ["runtime/base", *CONTRACT],
    "runtime/text": ["runtime/base", "runtime/schema"],
    "runtime/llm": RUNTIME,
    "compiler/support": LLVM,
    "compiler/ir": LLVM,
    "compiler/weights": IR,
    "compiler/codegen/kernels": [*LLVM, "compiler/weights"],
    "compiler/codegen/common": LLVM,
    "compiler/codegen/cuda": [*WEIGHTS, "compiler/codegen/common", *CONTRACT],
    "compiler/codegen/cpu": [*WEIGHTS, "lld", "compiler/codegen/common", "compiler/codegen/kernels",
                             *CONTRACT],
    "compiler/analysis": LLVM,
    "compiler/artifact": [*WEIGHTS, *CONTRACT],
    "compiler/reference": WEIGHTS,
    "compiler/driver": [*LLVM, "compiler", "frontends", "passes", *RUNTIME],
    "frontends/common": IR,
    "frontends/onnx": [*WEIGHTS, "frontends/common"],
    "frontends/gguf": [*WEIGHTS, "frontends/common"],
    "frontends/tokenizer": [*IR, "frontends/common"],
    "passes/fuse": IR,
    "passes/kv": IR,
    "passes/quantize": WEIGHTS,
    "passes/schedule": WEIGHTS,
    "passes/tensor": IR,
    "tools/llmc": [*LLVM, "compiler", "frontends", *RUNTIME],
    "tools/llmc-opt": [*LLVM, "compiler/driver"],
    "tools/llmc-run": RUNTIME,
}

# Headers of these roots are the project's or LLVM's; all others are third parties'.
ROOTS = ("compiler/", "frontends/", "lld/", "llmc/", "llvm/", "mlir/", "passes/", "runtime/",
         "tests/", "tools/")
INCLUDE = re.compile(r'^\s*#?include\s+["<]([^">]+)[">]', re.M)


def is_under(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


def room_of(path):
    rooms = [room for room in MAY_INCLUDE if is_under(path, room)]
    return max(rooms, key=len, default=None)


def violations(path, text):
    """Includes of the file that its room does not allow."""
    room = room_of(path)
    allowed = [room, *MAY_INCLUDE[room]]
    return [f"{path} includes {header}, which {room} may not"
            for header in INCLUDE.findall(text)
            if header.startswith(ROOTS) and not any(is_under(header, a) for a in allowed)]


class Layering(unittest.TestCase):
    def sources(self):
        return [str(p) for p in repository.files(*repository.CXX, ".td")
                if not str(p).startswith("tests/")]

    def test_every_file_has_a_room(self):
        self.assertEqual([p for p in self.sources() if room_of(p) is None], [])

    def test_includes(self):
        found = [v for p in self.sources() for v in violations(p, repository.read(p))]
        self.assertEqual(found, [])

    def test_pass_groups_do_not_know_each_other(self):
        groups = [room for room in MAY_INCLUDE if room.startswith("passes/")]
        for group in groups:
            for allowed in MAY_INCLUDE[group]:
                self.assertFalse(allowed.startswith("passes"), group)

    def test_violations_are_seen(self):
        for path, text in [
            ("runtime/base/A.h", '#include "llvm/ADT/StringRef.h"'),
            ("runtime/text/A.h", '#include "runtime/llm/Model.h"'),
            ("tools/llmc-run/A.cpp", '#include "compiler/ir/Llm.h"'),
            ("passes/fuse/A.cpp", "#include <passes/kv/Passes.h>"),
            ("compiler/artifact/A.cpp", '#include "runtime/llm/Model.h"'),
            ("compiler/ir/A.td", 'include "passes/fuse/Passes.td"'),
            ("frontends/gguf/A.cpp", '#include "compiler/codegen/cpu/Emitter.h"'),
        ]:
            self.assertEqual(len(violations(path, text)), 1, path)
        self.assertEqual(violations("runtime/llm/A.h", '#include "runtime/base/Status.h"'), [])


if __name__ == "__main__":
    unittest.main()
