#!/usr/bin/env bash
# Builds llmc and runs every test; the last line is `N passed, N failed` (and `N skipped`).
#
#   tools/test.sh          everything, as CI does
#   tools/test.sh --fast   after a change: incremental build, lit, unit tests, lint
#
# LLMC_FUZZ_SECONDS  time per fuzzer (60)
# LLMC_SHARED        folder with further test data (../shared beside the checkout); what needs it is
#                    skipped where it is missing
set -uo pipefail
cd "$(dirname "$0")/.."

fast=
for option; do
  case $option in
  --fast) fast=1 ;;
  *)
    sed -n '2,/^set/s/^# \?//p' "$0" >&2
    exit 1
    ;;
  esac
done

export LLMC_SHARED=${LLMC_SHARED:-$PWD/../shared}
export LLMC_BUILD=$PWD/build
lit=/usr/lib/llvm-22/bin/lit
jobs=$(nproc)
results=$LLMC_BUILD/test-results
rm -rf "$results"
mkdir -p "$results"

step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
# check NAME COMMAND...: one test, passed if the command succeeds.
check() {
  local name=$1 verdict=pass
  shift
  "$@" || verdict=fail
  echo "$verdict $name" >>"$results/checks"
  [ $verdict = pass ]
}
finish() {
  step "result"
  python3 tests/summary.py "$results"
  exit $?
}

# build PRESET
build() {
  cmake --preset "$1" -Wno-dev >"$results/configure-$1.out" 2>&1 || {
    cat "$results/configure-$1.out"
    return 1
  }
  cmake --build --preset "$1"
}
# unit PRESET: ctest, with a report per gtest binary
unit() {
  GTEST_OUTPUT=xml:$results/gtest-$1/ ctest --preset "$1" -j "$jobs" --output-on-failure \
    --output-junit "$results/ctest-$1.xml"
}
# python NAME FOLDER: the unittest modules of a folder
python() {
  PYTHONPATH=tests/e2e python3 -m unittest discover -v -s "$2" -p 'test_*.py' -t "$2" 2>&1 |
    tee "$results/$1.log"
}
# fuzz TARGET: starts from the seeds in the tree; a finding is left in build-sanitize/findings
fuzz() {
  local name=$1 found
  found=$(mktemp -d)
  mkdir -p build-sanitize/findings
  build-sanitize/bin/fuzz-"$name" -max_total_time="${LLMC_FUZZ_SECONDS:-60}" -timeout=10 \
    -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix=build-sanitize/findings/"$name"- "$found" tests/fuzz/"$name"/corpus \
    >build-sanitize/fuzz-"$name".out 2>&1
  local status=$?
  rm -rf "$found"
  if [ $status -eq 0 ]; then
    grep -h number_of_executed_units build-sanitize/fuzz-"$name".out | sed "s/^/fuzz-$name: /"
  else
    tail -40 build-sanitize/fuzz-"$name".out
  fi
  return $status
}

step "packages"
check "install packages" tools/install-deps.sh || finish
step "build"
check "build" build release || finish
step "lint"
python lint tests/lint
step "lit"
$lit -s -j "$jobs" --xunit-xml-output "$results/lit.xml" build/tests
step "unit tests"
unit release
[ -z "$fast" ] || finish

step "runtime for AArch64"
if tools/install-deps.sh --aarch64; then
  check "build for AArch64" build runtime-aarch64 && unit runtime-aarch64
else
  echo "no arm64 packages: the tests that need them are skipped"
fi
step "end to end"
tools/fetch-models.sh || echo "no models: the tests that need them are skipped"
python e2e tests/e2e
step "runtime without LLVM"
check "build of the runtime alone" build runtime && unit runtime
step "sanitizers"
# LLVM's libraries are not sanitized: what inlined code of theirs poisons they do not unpoison.
export ASAN_OPTIONS=detect_leaks=1:allow_user_poisoning=0 UBSAN_OPTIONS=print_stacktrace=1
export ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-22/bin/llvm-symbolizer
if check "sanitized build" build sanitize; then
  unit sanitize
  step "fuzzers, ${LLMC_FUZZ_SECONDS:-60} s each"
  targets=$(cd tests/fuzz && ls -d -- */ | tr -d /)
  for target in $targets; do
    while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do wait -n; done
    check "fuzz-$target" fuzz "$target" &
  done
  wait
fi
finish
