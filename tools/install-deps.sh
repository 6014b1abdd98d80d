#!/usr/bin/env bash
# Installs what building and testing llmc needs, on Debian bookworm or newer. Packages that are
# already there are left alone; with all of them there, nothing is downloaded and root is not needed.
#
#   tools/install-deps.sh            everything
#   tools/install-deps.sh --runtime  only what the runtime and llmc-run need (no LLVM)
set -euo pipefail

runtime=(cmake ninja-build pkg-config ccache clang-22 lld-22 flatbuffers-compiler
  libflatbuffers-dev libpcre2-dev libutf8proc-dev nlohmann-json3-dev libcli11-dev libxxhash-dev
  libgtest-dev libgmock-dev)
compiler=(llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools liblld-22-dev
  zlib1g-dev libzstd-dev libxml2-dev)
testing=(clang-format-22 libclang-rt-22-dev qemu-user strace binutils git python3 python3-pip ca-certificates)

wanted=("${runtime[@]}")
[ "${1:-}" = --runtime ] || wanted+=("${compiler[@]}" "${testing[@]}")

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install-deps.sh: run as root, or install sudo; missing: ${missing[*]}" >&2
    exit 1
  }
  root=(sudo)
fi
echo "installing ${#missing[@]} packages: ${missing[*]}" >&2
"${root[@]}" apt-get update -q
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
