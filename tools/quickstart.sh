#!/usr/bin/env bash
# From a fresh Debian bookworm to a model that answers: installs packages, builds llmc, fetches
# SmolLM2-135M, compiles it for this machine and asks it a question.
#
#   tools/quickstart.sh ["a question"]
set -euo pipefail
cd "$(dirname "$0")/.."

question=${1:-Explain in two sentences what a compiler does.}
step() { printf '\n\033[1m== %s\033[0m\n' "$*" >&2; }

step "packages"
tools/install-deps.sh
step "build"
cmake --preset release
cmake --build --preset release --target llmc llmc-run
step "model"
models=$(tools/fetch-models.sh smollm2)
step "llmc compile $models/smollm2-135m.gguf -o build/smollm2-135m.llmc"
build/bin/llmc compile "$models/smollm2-135m.gguf" -o build/smollm2-135m.llmc
step "llmc-run build/smollm2-135m.llmc --chat -n 200 -p \"$question\""
build/bin/llmc-run build/smollm2-135m.llmc --chat -n 200 -p "$question"
step "llmc-run build/smollm2-135m.llmc --bench 512,128"
build/bin/llmc-run build/smollm2-135m.llmc --bench 512,128
