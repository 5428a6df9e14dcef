#!/bin/sh
# usage: isa_symbols_test.sh LIBRARY.a
# An object built for AVX2 or AVX-512 may define no weak symbol: the linker could keep its copy of an inline
# function for the whole program, and a machine without them would stop there.
objects=$(nm -A "$1" | grep -E '_avx(2|512)\.cpp\.o:')
if ! echo "$objects" | grep -q ' T '; then
  echo "isa_symbols_test: no such object defines anything in $1"
  exit 1
fi
if echo "$objects" | grep ' [uVW] '; then
  echo "isa_symbols_test: weak symbols above, expected none"
  exit 1
fi
