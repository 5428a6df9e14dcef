#!/usr/bin/env bash
# Each ABI header compiles alone, as C11 and as C++20, with no warning and no implicit padding.
# Exits 77 where there is no such compiler.
#   abi_alone.sh INCLUDE_DIR COMPILER
set -euo pipefail
include=$1 cc=$2
command -v "$cc" >/dev/null || { echo "abi: skipped, $cc is not installed" >&2; exit 77; }
count=0
for header in "$include"/dovetail/abi/*.h; do
  name=$(basename "$header")
  printf '#define DVT_ABI_HASH "x"\n#include <dovetail/abi/%s>\nint dvt_unused;\n' "$name" |
    "$cc" -x c -std=c11 -pedantic -Wall -Wextra -Wpadded -Werror -fsyntax-only -I"$include" -
  printf '#define DVT_ABI_HASH "x"\n#include <dovetail/abi/%s>\n' "$name" |
    "$cc" -x c++ -std=c++20 -Wall -Wextra -Wpadded -Werror -fsyntax-only -I"$include" -
  count=$((count + 1))
done
[ "$count" -ge 10 ] || { echo "only $count compilations" >&2; exit 1; }
echo "abi: ok ($count headers with $cc)"
