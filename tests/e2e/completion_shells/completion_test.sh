#!/bin/bash
# The completion scripts parse, and bash's offers commands and options. Usage: completion_test.sh DOVETAIL
set -eu
dovetail=$1
script=$("$dovetail" completion bash)
bash -n <<<"$script"
[ -n "$("$dovetail" completion zsh)" ] && [ -n "$("$dovetail" completion fish)" ]
if command -v zsh >/dev/null; then "$dovetail" completion zsh | zsh -n; fi
if command -v fish >/dev/null; then "$dovetail" completion fish | fish -n; fi
source /dev/stdin <<<"$script"

offers() {  # WORD_EXPECTED words of the command line...
  local expected=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _dovetail
  for word in "${COMPREPLY[@]}"; do [ "$word" != "$expected" ] || return 0; done
  echo "\"$*\" offers \"${COMPREPLY[*]}\", expected $expected" >&2
  exit 1
}
offers run dovetail ru
offers --set dovetail run --s
offers --tokenizer dovetail tokenize --t
offers list dovetail plugins l
offers --help dovetail --he
if "$dovetail" completion csh 2>/dev/null; then echo "csh was accepted" >&2; exit 1; fi
