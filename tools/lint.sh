#!/usr/bin/env bash
# usage: lint.sh [PATH...]
# Holds the tree's own files, or those below the paths, to .clang-format and .clang-tidy; fails on any
# find. Sources that this machine's build has not (NEON) are held to the format alone.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in cmake ninja clang-format run-clang-tidy; do
  command -v "$tool" >/dev/null && continue
  echo "lint: $tool is missing; on Debian and Ubuntu: make build, then apt-get install clang-format clang-tidy" >&2
  exit 1
done
[ $# -gt 0 ] || set -- core kernels plugins sdk tests tools

find "$@" \( -name '*.[ch]' -o -name '*.[ch]pp' \) -print0 | xargs -0 clang-format --dry-run -Werror

build=build/lint
cmake -S . -B $build -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
sed -i 's/ -fno-gnu-unique//' $build/compile_commands.json  # GCC's alone
nice run-clang-tidy -quiet -p $build -j "$(nproc)" "${@/#/^$PWD/}"
