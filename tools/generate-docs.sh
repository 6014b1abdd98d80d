#!/usr/bin/env bash
# Writes the reference pages that TableGen files describe: docs/passes and docs/dialects.
#
#   tools/generate-docs.sh [FOLDER]     by default docs
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-docs}
llvm=/usr/lib/llvm-22
mkdir -p "$out/passes" "$out/dialects"

# page FILE TITLE COMMAND...: what the command prints, under a title of its own.
page() {
  local file=$1 title=$2
  shift 2
  {
    echo "<!-- Written by tools/generate-docs.sh; edit the TableGen file instead. -->"
    [ -z "$title" ] || printf '\n# %s\n' "$title"
    "$@" | sed -e '1d' -e '/^\[TOC\]$/,+1d' -e 's/^### `-/## `-/' -e 's/^#### Options/### Options/'
  } >"$file"
}
tblgen() { $llvm/bin/mlir-tblgen -I $llvm/include -I compiler/ir "$@"; }

for group in passes/*/; do
  name=$(basename "$group")
  page "$out/passes/$name.md" "Passes: $name" tblgen -gen-pass-doc "$group"Passes.td
done
page "$out/dialects/llm.md" "" tblgen -gen-dialect-doc -dialect=llm compiler/ir/LlmOps.td
page "$out/dialects/sched.md" "" tblgen -gen-dialect-doc -dialect=sched compiler/ir/SchedOps.td
