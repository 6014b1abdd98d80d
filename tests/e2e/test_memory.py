"""Field report h6: weights are used in place, in few bytes more than the artifact's own."""

import os
import pathlib
import re
import shutil
import sys
import unittest

import harness
from harness import LLMC, LLMC_RUN, REAL_MODELS, TestCase, compiled, measured, model, reference, succeed

MB = 1 << 20
WIDTH = {"f16": 2, "f32": 4}  # bytes of an element of the KV cache

# Loads a model, takes a step, and prints the growth of this process' private dirty memory in bytes.
LOADER = """
import re, sys
sys.path.insert(0, %r)
import harness
def private_dirty():
    text = open("/proc/self/smaps_rollup").read()
    return 1024 * int(re.search(r"Private_Dirty: *([0-9]+) kB", text)[1])
harness._library()
before = private_dirty()
loaded = harness.Model(sys.argv[1])
print(private_dirty() - before)
with loaded.session(threads=2) as session:
    session.prefill([1, 2, 3, 4])
    session.decode(5)
    print(private_dirty() - before)
""" % str(pathlib.Path(__file__).parent)

# Files of this kind cannot be mapped, as on a file system that has no mmap.
NO_MMAP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
  static void *(*next)(void *, size_t, int, int, int, off_t);
  char link[64], path[4096] = "";
  if (!next)
    *(void **)&next = dlsym(RTLD_NEXT, "mmap");
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (file >= 0 && readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".llmc")) {
    errno = ENODEV;
    return MAP_FAILED;
  }
  return next(address, length, protection, flags, file, offset);
}
"""


class Load(TestCase):
    def test_private_dirty_memory(self):
        """Below a tenth of the artifact after load; the step's buffers come on top."""
        for name in REAL_MODELS:
            with self.subTest(model=name):
                artifact = compiled(model(name))
                # Pages that are not on disk yet count as dirty, whoever wrote them.
                with open(artifact, "rb") as file:
                    os.fsync(file.fileno())
                loaded, stepped = map(int, succeed(sys.executable, "-c", LOADER, artifact)
                                      .text.split())
                size = artifact.stat().st_size
                self.assertLess(loaded, size / 10)
                self.assertLess(stepped, size / 10 + 32 * MB)

    def test_without_mmap(self):
        compiler = shutil.which("clang-22") or shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        source, library = self.folder / "nommap.c", self.folder / "nommap.so"
        source.write_text(NO_MMAP)
        succeed(compiler, "-shared", "-fPIC", "-o", library, source, "-ldl")
        artifact = compiled(model("smollm2-135m"))
        prompt = reference("smollm2-135m")["prompts"][0]["ids"]
        expected = harness.generate(artifact, prompt, 8)
        preload = {"LD_PRELOAD": str(library)}
        config = succeed(LLMC_RUN, artifact, "--print-config", "--json", env=preload).json
        self.assertFalse(config["mapped"])
        self.assertEqual(harness.generate(artifact, prompt, 8, env=preload)["tokens"],
                         expected["tokens"])


class Run(TestCase):
    def test_peak_memory(self):
        """The artifact, which is shared, the KV cache as far as it is used, and 40 MB."""
        for name in REAL_MODELS:
            for prompt, generated in ((8, 8), (512, 64)):
                with self.subTest(model=name, prompt=prompt):
                    artifact = compiled(model(name))
                    layers = succeed(LLMC, "inspect", "--json", artifact).json["kv"]
                    kv = sum(2 * layer["heads"] * layer["head_dim"] * WIDTH[layer["encoding"]] *
                             min(layer["capacity"], prompt + generated) for layer in layers)
                    result = measured(LLMC_RUN, artifact, "--tokens",
                                      ",".join(str(3 + i % 500) for i in range(prompt)),
                                      "-n", generated, "--ignore-end", "--json")
                    self.assertEqual(result.code, 0, result.error)
                    self.assertEqual(len(result.json["tokens"]), generated)
                    self.assertLess(result.peak_kb * 1024,
                                    artifact.stat().st_size + kv + 40 * MB)


class LimitedMemory(TestCase):
    """A control group with 0.6 of the artifact's size; needs the right to make one."""

    def test_tokens_are_equal(self):
        artifact = compiled(model("gemma3-270m"))
        prompt = reference("gemma3-270m")["prompts"][0]["ids"]
        expected = harness.generate(artifact, prompt, 4)["tokens"]
        limit = artifact.stat().st_size * 6 // 10
        enter = self.in_control_group(("/sys/fs/cgroup/memory", "memory.limit_in_bytes", limit),
                                      ("/sys/fs/cgroup", "memory.max", limit))
        result = succeed(*enter, LLMC_RUN, artifact, "--tokens", harness.ids(prompt), "-n", "4",
                         "--temp", "0", "--json")
        self.assertEqual(result.json["tokens"], expected)


class Compile(TestCase):
    def test_peak_memory(self):
        """At most 1.5 times the largest layer and 500 MB, however large the model."""
        for name in REAL_MODELS:
            with self.subTest(model=name):
                source = model(name)
                tensors = succeed(LLMC, "inspect", "--json", source).json["tensors"]
                layers = {}
                for tensor in tensors:
                    layer = re.match(r"blk\.\d+|.*", tensor["name"])[0]
                    layers[layer] = layers.get(layer, 0) + tensor["bytes"]
                result = measured(LLMC, "compile", source, "-o", self.folder / "model.llmc")
                self.assertEqual(result.code, 0, result.error)
                self.assertLess(result.peak_kb * 1024, 1.5 * max(layers.values()) + 500 * MB)


class Dependencies(TestCase):
    def test_runtime_links_no_compiler(self):
        if not shutil.which("readelf"):
            self.skipTest("no readelf")
        text = succeed("readelf", "-d", LLMC_RUN).text
        needed = re.findall(r"NEEDED.*\[(.*)\]", text)
        self.assertTrue(needed)
        for library in needed:
            self.assertNotRegex(library, "LLVM|MLIR|cuda")


if __name__ == "__main__":
    unittest.main()
