#!/usr/bin/env bash
# Builds llama.cpp, the peer of the benchmarks, for this machine, from the source that the PyPI package
# llama-cpp-python carries. Prints the folder of its programs. Does nothing where they are there already.
#
#   LLMC_PEERS  where it is built (default: ~/.cache/llmc-peers)
set -euo pipefail

version=0.3.36
root=${LLMC_PEERS:-$HOME/.cache/llmc-peers}
bin=$root/llama.cpp/build/bin

if [ ! -x "$bin/llama-bench" ] || [ ! -x "$bin/llama-completion" ]; then
  mkdir -p "$root"
  cd "$root"
  python3 -m pip download -q --no-deps --no-binary :all: -d . "llama-cpp-python==$version" >&2
  tar xzf "llama_cpp_python-$version.tar.gz"
  rm -rf llama.cpp
  mv "llama_cpp_python-$version/vendor/llama.cpp" llama.cpp
  cmake -S llama.cpp -B llama.cpp/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
    -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_UI=OFF \
    -DCMAKE_C_COMPILER="${CC:-clang-22}" -DCMAKE_CXX_COMPILER="${CXX:-clang++-22}" >&2
  ninja -C llama.cpp/build llama-bench llama-completion >&2
fi
echo "$bin"
