# Configuration of the lit tests: text in, a command, and FileCheck on what it prints.
import os
import sys

import lit.formats

config.name = "llmc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.llmc_build, "tests")
config.excludes = ["data", "e2e", "fuzz", "lint", "unit"]

# llmc and its siblings first, then FileCheck and the other LLVM tools.
tools = [os.path.join(config.llmc_build, "bin"), config.llvm_tools]
config.environment["PATH"] = os.pathsep.join(tools + [config.environment["PATH"]])

# %make-model OUT.gguf [key=value...]: a tiny random model (tests/make_model.py).
make_model = os.path.join(config.test_source_root, "make_model.py")
config.substitutions.append(("%make-model", "'%s' '%s'" % (sys.executable, make_model)))
# %make-bert OUT.onnx [FORM] [POOLING]: a tiny sentence encoder (tests/e2e/bertmodels.py).
make_bert = os.path.join(config.test_source_root, "e2e/bertmodels.py")
config.substitutions.append(("%make-bert", "'%s' '%s'" % (sys.executable, make_bert)))
# %extract-code IN.llmc PREFIX: the code objects of an artifact, PREFIX.0.so and so on.
extract_code = os.path.join(config.test_source_root, "extract_code.py")
config.substitutions.append(("%extract-code", "'%s' '%s'" % (sys.executable, extract_code)))
config.substitutions.append(("%python", "'%s'" % sys.executable))
