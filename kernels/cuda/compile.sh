#!/bin/sh
# usage: compile.sh OBJECT COMMAND...    runs nvcc; what ptxas reports goes to OBJECT.ptxas, all else is shown
object=$1
shift
mkdir -p "$(dirname "$object")"
if "$@" >"$object.log" 2>&1; then
  grep -v '^ptxas info\|^    [0-9]* bytes stack frame' "$object.log"
  mv "$object.log" "$object.ptxas"
else
  code=$?
  cat "$object.log"
  exit $code
fi
