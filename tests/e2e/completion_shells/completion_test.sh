#!/bin/bash
# bash's completion script parses, and offers commands and options; there is one for zsh and fish. Usage: completion_test.sh DOVETAIL
set -eu
dovetail=$1
script=$("$dovetail" completion bash)
bash -n <<<"$script"
[ -n "$("$dovetail" completion zsh)" ] && [ -n "$("$dovetail" completion fish)" ]
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
