#!/usr/bin/env bash
# Each ABI header compiles alone, as C11 and as C++20, with no warning and no implicit padding.
#   abi_alone.sh INCLUDE_DIR COMPILER...
set -euo pipefail
include=$1; shift
count=0
for header in "$include"/dovetail/abi/*.h; do
  name=$(basename "$header")
  for cc in "$@"; do
    command -v "$cc" >/dev/null || continue
    printf '#define DVT_ABI_HASH "x"\n#include <dovetail/abi/%s>\nint dvt_unused;\n' "$name" |
      "$cc" -x c -std=c11 -pedantic -Wall -Wextra -Wpadded -Werror -fsyntax-only -I"$include" -
    printf '#define DVT_ABI_HASH "x"\n#include <dovetail/abi/%s>\n' "$name" |
      "$cc" -x c++ -std=c++20 -Wall -Wextra -Wpadded -Werror -fsyntax-only -I"$include" -
    count=$((count + 1))
  done
done
[ "$count" -ge 10 ] || { echo "only $count compilations" >&2; exit 1; }
echo "abi: ok ($count compilations)"
