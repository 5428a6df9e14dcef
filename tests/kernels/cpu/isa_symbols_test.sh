#!/bin/sh
# usage: isa_symbols_test.sh NM LIBRARY.a
# An object built for AVX2, AVX-512 or dot products of ARMv8.2 may define no weak function: the linker could keep its
# copy of an inline function for the whole program, and a machine without them would stop there. Tables are data.
objects=$("$1" -A "$2" | grep -E '_avx(2|512)\.cpp\.o:|linear_(gguf|quantized)_neon\.cpp\.o:')
if ! echo "$objects" | grep -q ' T '; then
  echo "isa_symbols_test: no such object defines anything in $2"
  exit 1
fi
if echo "$objects" | grep ' W '; then
  echo "isa_symbols_test: weak functions above, expected none"
  exit 1
fi
