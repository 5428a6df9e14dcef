#!/usr/bin/env bash
# Every plugin exports one symbol, imports nothing from the host, and is hardened.
#   check_symbols.sh PLUGIN_DIR...
set -euo pipefail
count=0
fail() { echo "$1" >&2; exit 1; }
while IFS= read -r so; do
  count=$((count + 1))
  got=$(nm -D --defined-only "$so" | awk '{print $3}' | tr '\n' ' ')
  [ "$got" = "dvt_plugin_query " ] || fail "$so exports \"$got\", expected only dvt_plugin_query"
  readelf -dW "$so" | grep -q 'TEXTREL' && fail "$so has text relocations"
  readelf -dW "$so" | grep -q 'STATIC_TLS' && fail "$so needs static thread-local storage"
  readelf -dW "$so" | grep -Eq 'NOW' || fail "$so is not linked with -z now"
  readelf -lW "$so" | grep -q 'GNU_RELRO' || fail "$so has no RELRO"
  readelf -lW "$so" | grep 'GNU_STACK' | grep -q 'RWE' && fail "$so has an executable stack"
  readelf -nW "$so" | grep -q DOVETAIL || fail "$so has no manifest note"
  readelf -sW --dyn-syms "$so" | grep -q 'UNIQUE' && fail "$so has GNU_UNIQUE symbols"
done < <(find "$@" -name '*.so' | sort)
[ "$count" -ge 5 ] || fail "found only $count plugins in $*"
echo "symbols: ok ($count plugins)"
