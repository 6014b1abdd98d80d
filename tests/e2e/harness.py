"""What the end-to-end tests share: the programs, the models, compiled artifacts, references.

Environment:
    LLMC_BIN      folder of llmc and llmc-run        (default: build/bin)
    LLMC_MODELS   folder of the two real models      (default: ~/.cache/llmc-models)
    LLMC_SHARED   folder of third-party data         (default: ../shared beside the checkout)
    LLMC_PACKAGES folder for packages of PyPI        (default: ~/.cache/llmc-packages)
    LLMC_AARCH64_BIN      folder of llmc-run for AArch64   (default: build-aarch64/bin)
    LLMC_AARCH64_SYSROOT  the libraries that it needs      (default:
                          ~/.cache/llmc-sysroots/aarch64)

What cannot be had is skipped by name. Artifacts are kept in <build>/e2e-cache, under a name made of
everything they depend on.
"""

import array
import ast
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LLMC_BIN", ROOT / "build/bin")).resolve()
MODELS = pathlib.Path(os.environ.get("LLMC_MODELS", pathlib.Path.home() / ".cache/llmc-models"))
SHARED = pathlib.Path(os.environ.get("LLMC_SHARED", ROOT / "../shared"))
PACKAGES = pathlib.Path(os.environ.get("LLMC_PACKAGES",
                                       pathlib.Path.home() / ".cache/llmc-packages"))
AARCH64_BIN = pathlib.Path(os.environ.get("LLMC_AARCH64_BIN", ROOT / "build-aarch64/bin"))
AARCH64_SYSROOT = pathlib.Path(os.environ.get(
    "LLMC_AARCH64_SYSROOT", pathlib.Path.home() / ".cache/llmc-sysroots/aarch64"))
DATA = ROOT / "tests/data"
LLMC, LLMC_RUN = str(BIN / "llmc"), str(BIN / "llmc-run")
REAL_MODELS = ("smollm2-135m", "gemma3-270m")


class Finished:
    """A process that has ended. `code` is negative after a signal; of measured(), `peak_kb` is its
    largest RSS."""

    def __init__(self, code, stdout, stderr, seconds, peak_kb=None):
        self.code, self.stdout, self.stderr = code, stdout, stderr
        self.seconds, self.peak_kb = seconds, peak_kb

    @property
    def text(self):
        return self.stdout.decode()

    @property
    def json(self):
        return json.loads(self.stdout)

    @property
    def error(self):
        return self.stderr.decode(errors="replace").strip()


def run(*command, input=b"", env=None, timeout=300):
    """Runs a command to its end."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, \
            tempfile.TemporaryFile() as stderr:
        stdin.write(input)
        stdin.seek(0)
        start = time.monotonic()
        process = subprocess.Popen([str(c) for c in command], stdin=stdin, stdout=stdout,
                                   stderr=stderr, env={**os.environ, **(env or {})})
        # The kill of a hanging process must not race with its end: it is reaped here.
        deadline = start + timeout
        while True:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                os.waitpid(process.pid, 0)
                process.returncode = -9
                raise AssertionError("no end after %d s: %s" % (timeout, command))
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        return Finished(process.returncode, stdout.read(), stderr.read(),
                        time.monotonic() - start)


# A process counts the memory that it had before exec: that of the one that started it. So what is
# measured is started by a small one.
MEASURE = """
import os, signal, sys
_, status, usage = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
with open(sys.argv[1], "w") as f:
    f.write(str(usage.ru_maxrss))
code = os.waitstatus_to_exitcode(status)
os.kill(os.getpid(), -code) if code < 0 else sys.exit(code)
"""


def measured(*command, **options):
    """run(), and how much memory the command had."""
    with tempfile.NamedTemporaryFile("r") as peak:
        result = run(sys.executable, "-S", "-c", MEASURE, peak.name, *command, **options)
        result.peak_kb = int(peak.read())
    return result


def succeed(*command, **options):
    """Runs a command that must succeed."""
    result = run(*command, **options)
    if result.code != 0:
        raise AssertionError("status %d of %s: %s" % (result.code, command, result.error))
    return result


def model(name):
    """The path of a real model; skips the test where there is none."""
    path = MODELS / (name + ".gguf")
    if not path.exists():
        raise unittest.SkipTest("no %s; tools/fetch-models.sh gets it" % path)
    return path


def shared(name):
    """A path in the folder of third-party data; skips the test where it is missing."""
    path = SHARED / name
    if not path.exists():
        raise unittest.SkipTest("no %s (see LLMC_SHARED)" % path)
    return path


def package(requirement, dependencies=True):
    """The folder of a PyPI package that was unpacked with what it needs (or alone, where its files are
    all that is wanted), fetched when it is first asked for; skips the test where it cannot be had."""
    folder = PACKAGES / requirement.replace("==", "-")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
            fetched = run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                          "--only-binary", ":all:", "--target", partial + "/files",
                          *([] if dependencies else ["--no-deps"]), requirement)
            if fetched.code != 0:
                raise unittest.SkipTest("pip cannot get " + requirement)
            try:
                os.rename(partial + "/files", folder)
            except OSError:
                pass  # another test was faster
    return folder


def emulated(architecture, cpu):
    """The command that runs llmc-run on an emulated CPU; skips the test where there is none."""
    name = "qemu-" + architecture
    emulator = shutil.which(name) or shutil.which(name + "-static")
    if not emulator:
        raise unittest.SkipTest("no " + name)
    if architecture == "x86_64":
        return (emulator, "-cpu", cpu, LLMC_RUN)
    program = AARCH64_BIN / "llmc-run"
    if not program.exists():
        raise unittest.SkipTest("no %s; the preset runtime-aarch64 builds it" % program)
    return (emulator, "-L", AARCH64_SYSROOT, "-cpu", cpu, program)


def reference(name):
    """What PyTorch computes for a real model in float32 on its dequantized weights.

    prompts: ids, top20_ids and top20_logits of the next token, greedy64; eval: mean_nll_per_window
    and ppl over eval.txt, as `llmc eval` scores it.
    """
    return json.loads((DATA / "reference" / (name + ".json")).read_text())


@functools.lru_cache(maxsize=None)
def _digest(path, large=64 << 20):
    status = os.stat(path)
    hash = hashlib.blake2b(digest_size=8)
    if status.st_size > large:
        hash.update(b"%d %d" % (status.st_size, status.st_mtime_ns))
    else:
        hash.update(pathlib.Path(path).read_bytes())
    return hash.hexdigest()


def _cache():
    """The folder of artifacts made by this very compiler; those of others are removed."""
    folder = BIN.parent / "e2e-cache" / _digest(LLMC)
    if not folder.exists():
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.mkdir(parents=True)
    return folder


def compiled(source, *arguments):
    """The artifact of a model file, made when it is first asked for."""
    key = hashlib.blake2b(repr(arguments).encode(), digest_size=4).hexdigest()
    path = _cache() / ("%s-%s-%s.llmc" % (pathlib.Path(source).stem, _digest(str(source)), key))
    if not path.exists():
        # Tests in parallel may both make it; the name appears when the file is complete.
        succeed(LLMC, "compile", source, "-o", path, *arguments)
    return path


def compiled_fixture(gguf, *arguments):
    """The artifact of a fixture (fixtures.py), in the cache."""
    data = gguf.bytes()
    source = _cache() / (hashlib.blake2b(data, digest_size=8).hexdigest() + ".gguf")
    if not source.exists():
        source.write_bytes(data)
    return compiled(source, *arguments)


def ids(tokens):
    return ",".join(map(str, tokens))


def generate(artifact, prompt, count, *arguments, env=None, program=(LLMC_RUN,)):
    """Greedy tokens after a prompt of token ids: llmc-run's JSON."""
    return succeed(*program, artifact, "--tokens", ids(prompt), "-n", count, "--temp", "0",
                   "--json", *arguments, env=env).json


def has_cuda():
    """Whether the emulator of tests/ptx was built, or a real GPU is to be used."""
    return on_gpu() or (BIN.parent / "mockcuda/libcuda.so.1").exists()


def on_gpu():
    """Whether tests of CUDA devices run on a real one (tests/gpu/run.sh)."""
    return os.environ.get("LLMC_TEST_CUDA") == "real"


def on_cuda(settings, emulated=False, **others):
    """The environment of a process that uses a CUDA device: the emulator with these settings
    (tests/ptx/README.md), or the GPU of this machine."""
    if on_gpu() and not emulated:
        return {}
    text = ",".join([settings, *("%s=%s" % item for item in others.items())])
    return {"LD_LIBRARY_PATH": str(BIN.parent / "mockcuda"), "LLMC_MOCK_CUDA": text}


def read_npy(path):
    """(rows, columns, array of float32) of a matrix that llmc-run wrote."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", "not an .npy file of version 1.0"
    length = int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"]
    values = array.array("f")
    values.frombytes(data[10 + length:])
    rows, columns = header["shape"]
    assert len(values) == rows * columns
    return rows, columns, values


def prompt_logits(artifact, prompt, *arguments, program=(LLMC_RUN,)):
    """The logits of every position of a prompt, a list of rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "logits.npy")
        succeed(*program, artifact, "--tokens", ids(prompt), "--logits", path, *arguments)
        rows, columns, values = read_npy(path)
    return [values[r * columns:(r + 1) * columns] for r in range(rows)]


def argmax(row):
    return max(range(len(row)), key=row.__getitem__)


# The C API ----------------------------------------------------------------------------------------


class _SessionOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_uint32),
                ("context_limit", ctypes.c_uint32), ("prefill_chunk", ctypes.c_uint32)]


class _ModelOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("variant", ctypes.c_char_p)]


@functools.lru_cache(maxsize=None)
def _library():
    for folder in (BIN.parent / "lib", BIN.parent / "runtime/llm"):
        path = folder / "libllmc.so"
        if path.exists():
            library = ctypes.CDLL(str(path))
            library.llmc_last_error.restype = ctypes.c_char_p
            library.llmc_logits.restype = ctypes.POINTER(ctypes.c_float)
            return library
    raise unittest.SkipTest("no libllmc.so beside %s" % BIN)


def _check(status):
    if status != 0:
        raise RuntimeError(_library().llmc_last_error().decode())


class Model:
    """A loaded artifact, through runtime/include/llmc/llmc.h."""

    def __init__(self, path, variant=None):
        self._handle = ctypes.c_void_p()
        options = _ModelOptions(ctypes.sizeof(_ModelOptions), variant and variant.encode())
        _check(_library().llmc_model_load(str(path).encode(), ctypes.byref(options),
                                          ctypes.byref(self._handle)))
        self.vocabulary = _library().llmc_model_vocab_size(self._handle)

    def tokenize(self, text, special=False, add_special=False):
        """Token ids of bytes."""
        flags = (1 if add_special else 0) | (2 if special else 0)
        room, count = 4 * len(text) + 16, ctypes.c_size_t()
        ids = (ctypes.c_int32 * room)()
        _check(_library().llmc_tokenize(self._handle, text, ctypes.c_size_t(len(text)), flags, ids,
                                        ctypes.c_size_t(room), ctypes.byref(count)))
        return ids[:count.value]

    def detokenize(self, ids, special=False):
        """The text of token ids, as bytes."""
        room, length = 1 << 20, ctypes.c_size_t()
        text = ctypes.create_string_buffer(room)
        _check(_library().llmc_detokenize(self._handle, (ctypes.c_int32 * len(ids))(*ids),
                                          ctypes.c_size_t(len(ids)), 2 if special else 0, text,
                                          ctypes.c_size_t(room), ctypes.byref(length)))
        return text.raw[:length.value]

    def session(self, threads=0, chunk=0, context=0):
        return Session(self, _SessionOptions(ctypes.sizeof(_SessionOptions), threads, context,
                                             chunk))

    def close(self):
        _library().llmc_model_free(self._handle)


class Session:
    def __init__(self, model, options):
        self._model = model
        self._handle = ctypes.c_void_p()
        _check(_library().llmc_session_create(model._handle, ctypes.byref(options),
                                              ctypes.byref(self._handle)))

    def prefill(self, tokens):
        """Computes prompt tokens; gives the logits after the last, as bytes."""
        _check(_library().llmc_prefill(self._handle, (ctypes.c_int32 * len(tokens))(*tokens),
                                       ctypes.c_size_t(len(tokens))))
        return self.logits()

    def decode(self, token):
        """Computes a generated token; gives the logits after it, as bytes."""
        _check(_library().llmc_decode(self._handle, ctypes.c_int32(token)))
        return self.logits()

    def logits(self):
        return ctypes.string_at(_library().llmc_logits(self._handle), 4 * self._model.vocabulary)

    def reset(self):
        _library().llmc_reset(self._handle)

    def close(self):
        _library().llmc_session_free(self._handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# Test cases ---------------------------------------------------------------------------------------


class TestCase(unittest.TestCase):
    """A test with a folder of its own, `self.folder`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="llmc-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assertRefused(self, result, *texts, program="llmc: "):
        """Exit status 1 and one line that has all of `texts`, in any case."""
        self.assertEqual(result.code, 1, result.error)
        self.assertEqual(len(result.error.splitlines()), 1, result.error)
        self.assertTrue(result.error.startswith(program), result.error)
        for text in texts:
            self.assertIn(str(text).lower(), result.error.lower())
        return result

    def in_control_group(self, *limits):
        """A command prefix that enters a new control group with the first of `limits` that this
        machine knows: (folder of the hierarchy, file of the limit, value). Skips without the right
        to make one."""
        for root, control, value in limits:
            group = pathlib.Path(root, "llmc-e2e-%d" % os.getpid())
            try:
                group.mkdir()
            except OSError:
                continue
            self.addCleanup(group.rmdir)
            if (group / control).exists():
                (group / control).write_text(str(value))
                return ("sh", "-c", 'echo $$ > %s/cgroup.procs && exec "$@"' % group, "sh")
        self.skipTest("no right to make a control group with such a limit")

    def load(self, path, variant=None):
        loaded = Model(path, variant)
        self.addCleanup(loaded.close)
        return loaded
