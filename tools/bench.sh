#!/usr/bin/env bash
# Measures llmc against llama.cpp on the same files and this machine, in turn, and writes docs/benchmarks.md
# and docs/plots/. Takes some minutes, which nothing else should share.
# Needs a finished build (tools/quickstart.sh makes one). Arguments go to tools/bench.py; see its --help.
set -euo pipefail
cd "$(dirname "$0")/.."
models=$(bash tools/fetch-models.sh)
peer=$(bash tools/build-peer.sh)
exec python3 tools/bench.py --models "$models" --peer "$peer" "$@"
