#!/bin/bash
# Runs the checks of CUDA code on a real GPU, compares it with the emulator, and measures it.
#
#   tests/gpu/run.sh [--json FILE] [--models N,...]
#
# Needs a build (build/bin, or $LLMC_BIN), NVIDIA's driver and the models of tools/fetch-models.sh.
# llama.cpp's CUDA build is measured beside it where $LLAMA_BENCH names its llama-bench, or PATH has it.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${LLMC_BIN:-build/bin}

# The same tests as in the emulator, on the driver of this machine.
export LLMC_TEST_CUDA=real
"$bin/llmc_device_tests"
PYTHONPATH=tests/e2e python3 -m unittest test_device test_cuda
unset LLMC_TEST_CUDA

PYTHONPATH=tests/e2e python3 tests/gpu/compare.py "$@"
