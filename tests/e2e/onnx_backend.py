"""The ONNX project's own backend node tests, with llmc.

    python3 tests/e2e/onnx_backend.py                    all; prints what passed and names the rest
    python3 tests/e2e/onnx_backend.py --filter softmax   those whose name has the text
    python3 tests/e2e/onnx_backend.py --json OUT.json    the verdict of every case

The cases come from the installed `onnx` package (or from the folder onnx/backend/test/data/node of
--package DIR): a model, inputs, and the outputs that the ONNX project expects, compared within its
own tolerance. Every case is two processes, `llmc compile` and `llmc-run`.

Verdicts:
    pass      right outputs; the model was compiled as it is (sizes that it leaves open are given)
    constant  right outputs, where an input that is a size or an axis was made a constant (--set)
    refused   one clear error
    wrong     other outputs
    crash     a signal, a hang, or an error that is not one line
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

import harness

TIMEOUT = 120
VERDICTS = ("pass", "constant", "refused", "wrong", "crash")


def package():
    """The modules numpy and onnx; raises unittest.SkipTest where they cannot be had."""
    import unittest
    try:
        import numpy
        import onnx
        import onnx.numpy_helper
        return numpy, onnx
    except ImportError:
        pass
    folder = pathlib.Path.home() / ".cache/llmc-onnx/site"
    if not (folder / "onnx").exists():
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", folder,
                               "onnx"], capture_output=True)
        if done.returncode:
            raise unittest.SkipTest("no package onnx, and pip cannot install it")
    sys.path.insert(0, str(folder))
    import numpy
    import onnx
    import onnx.numpy_helper
    return numpy, onnx


class Case:
    """`inputs` and `outputs` are TensorProtos, or None where they are no tensors."""

    def __init__(self, name, model, inputs, outputs, rtol=1e-3, atol=1e-7):
        self.name, self.model = name, model
        self.inputs, self.outputs = inputs, outputs
        self.rtol, self.atol = rtol, atol


def _as_proto(onnx, value, name):
    if isinstance(value, onnx.TensorProto):
        return value
    if hasattr(value, "dtype"):
        return onnx.numpy_helper.from_array(value, name)
    return None  # a sequence, an optional


def generated_cases(onnx):
    """The cases that the package computes itself."""
    warnings.filterwarnings("ignore")
    import onnx.backend.test.loader as loader
    for case in loader.load_node_model_tests():
        inputs, outputs = case.data_sets[0]
        graph = case.model.graph
        yield Case(case.name, case.model,
                   [_as_proto(onnx, v, graph.input[i].name) for i, v in enumerate(inputs)],
                   [_as_proto(onnx, v, graph.output[i].name) for i, v in enumerate(outputs)],
                   case.rtol, case.atol)


def stored_cases(onnx, folder):
    """The cases of a folder: NAME/model.onnx, NAME/test_data_set_0/input_0.pb, ..."""
    def tensors(folder, kind, infos):
        found = []
        for i, info in enumerate(infos):
            path = folder / ("%s_%d.pb" % (kind, i))
            if info.type.WhichOneof("value") == "tensor_type" and path.exists():
                found.append(onnx.TensorProto.FromString(path.read_bytes()))
            else:
                found.append(None)
        return found
    for path in sorted(folder.iterdir()):
        if (path / "model.onnx").exists():
            graph = (model := onnx.load(path / "model.onnx")).graph
            data = path / "test_data_set_0"
            yield Case(path.name, model, tensors(data, "input", graph.input),
                       tensors(data, "output", graph.output))


def cases(numpy, onnx, folder=None):
    if folder:
        return list(stored_cases(onnx, pathlib.Path(folder)))
    stored = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
    return list(stored_cases(onnx, stored) if stored.exists() else generated_cases(onnx))


# Arrays -------------------------------------------------------------------------------------------

# How a type is written: the type that NumPy has, of the same bytes.
RAW = {"bfloat16": "uint16", "int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}
NPY_TYPE = {"bfloat16": "<V2"}


def stored_array(numpy, array):
    """An array as llmc-run reads it: NumPy's own types."""
    name = array.dtype.name
    if name in ("int4", "uint4", "int2", "uint2"):
        return array.astype(RAW[name])
    if name == "bfloat16":
        return array.view(numpy.uint16)
    if name.startswith("float8") or name.startswith("float4"):
        return array.view(numpy.uint8)
    return array


def write_npy(numpy, path, array):
    numpy.save(path, numpy.ascontiguousarray(stored_array(numpy, array)).reshape(array.shape))


def read_npy(numpy, path, like):
    """The file as an array of the type of `like`, or a text that says why it is none."""
    raw = numpy.load(path)
    name = like.dtype.name
    if raw.dtype.kind == "V":
        raw = raw.view(numpy.uint16 if raw.dtype.itemsize == 2 else numpy.uint8).reshape(raw.shape)
    wanted = stored_array(numpy, like).dtype
    if name in ("int4", "int2"):
        raw = raw.view(numpy.int8)
    if raw.dtype != wanted:
        return "has type %s instead of %s" % (raw.dtype, wanted)
    return raw.astype(like.dtype) if name in RAW and name != "bfloat16" else raw.view(like.dtype)


def difference(numpy, case, got, expected):
    """What is wrong with an output, in a few words; empty if nothing is."""
    if isinstance(got, str):
        return got
    if got.shape != expected.shape:
        return "has shape %s instead of %s" % (got.shape, expected.shape)
    rtol = case.rtol
    if expected.dtype.name == "bfloat16":
        rtol = max(rtol, 2 ** -6)  # as the package's own runner has it
    try:
        double = numpy.float64
        if expected.dtype.kind in "iub":
            numpy.testing.assert_array_equal(got, expected)
        else:
            numpy.testing.assert_allclose(got.astype(double), expected.astype(double), rtol=rtol,
                                          atol=case.atol)
    except AssertionError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return "; ".join(lines[1:4])[:160]
    return ""


# Running ------------------------------------------------------------------------------------------


def _process(*command):
    try:
        return subprocess.run([str(c) for c in command], capture_output=True, timeout=TIMEOUT,
                              env={**os.environ, "LLMC_THREADS": "1"})
    except subprocess.TimeoutExpired:
        return None


def _failure(done, what):
    """(verdict, reason) of a process that did not succeed."""
    if done is None:
        return "crash", what + " hangs"
    if done.returncode < 0:
        return "crash", "%s: signal %d" % (what, -done.returncode)
    text = done.stderr.decode(errors="replace").strip()
    if done.returncode != 1 or len(text.splitlines()) != 1:
        return "crash", "%s: status %d: %s" % (what, done.returncode, text[:300])
    return "refused", text


def _sizes(case, constants):
    """--shape for every input of which the model does not say all sizes."""
    arguments = []
    for info, proto in zip(case.model.graph.input, case.inputs):
        tensor = info.type.tensor_type
        open_ = not tensor.HasField("shape") or any(not d.HasField("dim_value")
                                                     for d in tensor.shape.dim)
        if proto is not None and open_ and info.name not in constants:
            arguments += ["--shape", "%s=%s" % (info.name, "x".join(map(str, proto.dims)))]
    return arguments


def run_case(numpy, onnx, case):
    """(verdict, reason, seconds of llmc compile)."""
    with tempfile.TemporaryDirectory(prefix="llmc-onnx-") as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        names = [info.name for info in case.model.graph.input]
        constants = {}
        start = time.monotonic()
        while True:
            fixed = [a for name, path in constants.items() for a in ("--set", name + "=" + path)]
            done = _process(harness.LLMC, "compile", folder / "model.onnx", "-o",
                            folder / "model.llmc", "--quick", "-q", *_sizes(case, constants), *fixed)
            if done is not None and done.returncode == 0:
                break
            verdict, reason = _failure(done, "compile")
            wanted = re.search(r"--set (\S+)=FILE", reason)
            name = wanted and wanted.group(1)
            if name not in names or name in constants or case.inputs[names.index(name)] is None:
                return verdict, reason, time.monotonic() - start
            path = folder / ("constant_%d.pb" % len(constants))
            path.write_bytes(case.inputs[names.index(name)].SerializeToString())
            constants[name] = str(path)
        seconds = time.monotonic() - start
        inputs = []
        for i, (name, proto) in enumerate(zip(names, case.inputs)):
            if proto is None or name in constants:
                continue
            path = folder / ("input_%d.npy" % i)
            write_npy(numpy, path, onnx.numpy_helper.to_array(proto))
            inputs += ["--input", "%s=%s" % (name, path)]
        done = _process(harness.LLMC_RUN, folder / "model.llmc", *inputs, "--output-dir",
                        folder / "out")
        if done is None or done.returncode != 0:
            return (*_failure(done, "run"), seconds)
        for info, proto in zip(case.model.graph.output, case.outputs):
            if proto is None:
                return "wrong", "output %s is no tensor" % info.name, seconds
            expected = onnx.numpy_helper.to_array(proto)
            got = read_npy(numpy, folder / "out" / (info.name.replace("/", "_") + ".npy"), expected)
            wrong = difference(numpy, case, got, expected)
            if wrong:
                return "wrong", "output %s: %s" % (info.name, wrong), seconds
        return ("constant" if constants else "pass",
                "with %s fixed" % ", ".join(constants) if constants else "", seconds)


def run_all(numpy, onnx, chosen, jobs, progress=None):
    """{name: (verdict, reason, seconds)}"""
    verdicts = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(run_case, numpy, onnx, case): case for case in chosen}
        for future in concurrent.futures.as_completed(futures):
            name = futures[future].name
            verdicts[name] = future.result()
            if progress:
                progress(name, verdicts[name], len(verdicts), len(chosen))
    return dict(sorted(verdicts.items()))


def operators(case):
    return sorted({(node.domain + "." if node.domain else "") + node.op_type
                   for node in case.model.graph.node})


def short(reason):
    """A reason without what differs from case to case."""
    reason = re.sub(r"^llmc(-run)?: ", "", reason)
    reason = re.sub(r"/\S*/model\.\w+:? ?", "", reason)
    return re.sub(r"node '[^']*' ", "node ", reason)[:150]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="a regular expression on names")
    parser.add_argument("--package", help="a folder of cases, .../onnx/backend/test/data/node")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", help="write the verdict of every case to this file")
    parser.add_argument("--verbose", action="store_true", help="name every case that did not pass")
    options = parser.parse_args()
    numpy, onnx = package()
    chosen = [c for c in cases(numpy, onnx, options.package) if re.search(options.filter, c.name)]
    show = sys.stderr.isatty()
    start = time.monotonic()

    def progress(name, verdict, done, total):
        if options.verbose and verdict[0] not in ("pass", "constant"):
            print("%s %s: %s" % (verdict[0], name, verdict[1]), flush=True)
        elif show:
            print("\r%d of %d" % (done, total), end="", file=sys.stderr)

    verdicts = run_all(numpy, onnx, chosen, options.jobs, progress)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"onnx": onnx.__version__, "cases": verdicts}, indent=1) + "\n")
    by_name = {case.name: case for case in chosen}
    reasons = collections.defaultdict(list)
    for name, (verdict, reason, _) in verdicts.items():
        if verdict not in ("pass", "constant"):
            reasons[verdict, short(reason) if verdict == "refused"
                    else "/".join(operators(by_name[name])[:3])].append(name)
    for (verdict, reason), names in sorted(reasons.items()):
        print("%-8s %4d  %s: %s%s" % (verdict, len(names), reason, ", ".join(names[:4]),
                                      ", ..." if len(names) > 4 else ""))
    count = collections.Counter(verdict for verdict, _, _ in verdicts.values())
    total = sum(seconds for _, _, seconds in verdicts.values())
    print("onnx %s: %d cases in %.0f s, %.2f s per compilation: %s" % (
        onnx.__version__, len(verdicts), time.monotonic() - start, total / max(len(verdicts), 1),
        ", ".join("%d %s" % (count[v], v) for v in VERDICTS)))
    return 1 if count["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
