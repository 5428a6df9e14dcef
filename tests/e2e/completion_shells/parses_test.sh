#!/bin/bash
# The completion script of another shell parses there; exits 77 where the shell is not installed.
# Usage: parses_test.sh DOVETAIL SHELL
set -euo pipefail
command -v "$2" >/dev/null || { echo "completion: skipped, $2 is not installed" >&2; exit 77; }
"$1" completion "$2" | "$2" -n
