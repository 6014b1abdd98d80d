#!/usr/bin/env bash
# Installs what building and testing llmc needs, on Debian bookworm or newer. Packages that are
# already there are left alone; with all of them there, nothing is downloaded and root is not needed.
#
#   tools/install-deps.sh            everything
#   tools/install-deps.sh --runtime  only what the runtime and llmc-run need (no LLVM)
#   tools/install-deps.sh --aarch64  what the preset runtime-aarch64 builds against: Debian's arm64
#                                    packages, unpacked into $LLMC_AARCH64_SYSROOT (by default
#                                    ~/.cache/llmc-sysroots/aarch64). Nothing of it is installed:
#                                    no root, no second architecture for this machine's dpkg.
set -euo pipefail

# The libraries of `runtime` below with what they and a C++ program need.
sysroot_packages=(libc6 libc6-dev libcrypt-dev linux-libc-dev libgcc-s1 libgcc-12-dev libstdc++6
  libstdc++-12-dev libpcre2-8-0 libpcre2-dev libutf8proc2 libutf8proc-dev libflatbuffers-dev
  nlohmann-json3-dev libcli11-dev libxxhash-dev libgtest-dev libgmock-dev)

make_sysroot() {
  local sysroot=${LLMC_AARCH64_SYSROOT:-$HOME/.cache/llmc-sysroots/aarch64}
  # The list of packages is written last: a sysroot that has it is whole.
  if [ "$(cat "$sysroot/packages" 2>/dev/null)" = "${sysroot_packages[*]}" ]; then
    return
  fi
  local scratch
  scratch=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$scratch'" EXIT
  mkdir -p "$scratch"/{state/lists/partial,cache/archives/partial,debs,tree}
  : >"$scratch/state/status"
  local apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o "Dir::State=$scratch/state" -o "Dir::State::status=$scratch/state/status"
    -o "Dir::Cache=$scratch/cache" -o "APT::Sandbox::User=$(id -un)")
  echo "fetching ${#sysroot_packages[@]} arm64 packages to $sysroot" >&2
  # A source without arm64 may fail; what is really missing shows in the download.
  "${apt[@]}" update >&2 || true
  (cd "$scratch/debs" && "${apt[@]}" download "${sysroot_packages[@]}" >&2)
  local deb
  for deb in "$scratch"/debs/*.deb; do dpkg-deb -x "$deb" "$scratch/tree"; done
  # libm.so and others are links to /lib/..., which means this machine's.
  local link
  find "$scratch/tree" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$scratch/tree$(readlink "$link")" "$link"
  done
  echo "${sysroot_packages[*]}" >"$scratch/tree/packages"
  rm -rf "$sysroot"
  mkdir -p "$(dirname "$sysroot")"
  mv "$scratch/tree" "$sysroot"
  chmod 755 "$sysroot"
}
if [ "${1:-}" = --aarch64 ]; then
  make_sysroot
  exit
fi

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
