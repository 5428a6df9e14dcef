#!/bin/sh
# usage: aarch64_test.sh SOURCE BUILD
# Builds kernels/ and its tests for AArch64 in the folder BUILD and runs them under qemu. Gives 77 where the cross
# compiler or qemu is missing.
set -eu
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  if ! command -v "$program" >/dev/null; then
    echo "SKIP: no $program here; tools/setup.sh installs it for make test"
    exit 77
  fi
done
cd "$1"
cmake --preset aarch64 -B "$2"
cmake --build "$2" -j 2
exec ctest --test-dir "$2" -j 2 --no-tests=error --output-on-failure
