#!/usr/bin/env bash
# usage: setup.sh [test|fuzz]
# Installs what the build and the tests need from the distribution's packages; says nothing when all
# of it is there. With `test` also what builds and runs the kernels for another processor: where that
# cannot be had, its test is skipped. With `fuzz` also clang and its libFuzzer. Debian 12 and Ubuntu 24.04.
set -euo pipefail

. /etc/os-release
case "${ID:-} ${VERSION_ID:-}" in
  "debian 12") boost="libboost1.81-dev libboost-json1.81-dev" ;;
  "ubuntu 24.04") boost="libboost-dev libboost-json-dev" ;;
  *) boost="libboost-dev libboost-json-dev"
     echo "setup: $PRETTY_NAME is not tried; going on with the package names of Debian and Ubuntu" >&2 ;;
esac
packages="g++ cmake ninja-build pkg-config python3 xz-utils binutils $boost libyaml-cpp-dev libspdlog-dev
  libcli11-dev libpcre2-dev libutf8proc-dev libcurl4-openssl-dev libssl-dev
  ca-certificates libgtest-dev libbenchmark-dev"
[ "${1:-}" = fuzz ] && packages="$packages clang libclang-rt-dev"

cross=""
[ "${1:-}" = test ] && [ "$(uname -m)" = x86_64 ] && cross="g++-aarch64-linux-gnu qemu-user"

missing_of() {
  for p in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || printf ' %s' "$p"
  done
}
missing=$(missing_of $packages)
cross=$(missing_of $cross)
[ -z "$missing$cross" ] && exit 0

if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi
if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
  echo "setup: these packages are missing and there is neither root nor sudo to install them:$missing$cross" >&2
  [ -z "$missing" ] && exit 0
  exit 1
fi
echo "setup: installing$missing$cross"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq

# Debian's Boost 1.81 headers take the place of 1.74's, and its cross compilers that of gcc-multilib: never remove a
# package of the user's unasked.
removed_by() {
  [ "${CI:-}" = true ] || (apt-get install -s --no-install-recommends "$@" 2>/dev/null || true) |
    sed -n 's/^Remv \([^ ]*\).*/\1/p' | tr '\n' ' '
}
removed=$(removed_by $missing)
if [ -n "$removed" ]; then
  echo "setup: installing these would remove: $removed" >&2
  echo "setup: to allow it, run: CI=true make $(basename "${MAKECMDGOALS:-run}")" >&2
  exit 1
fi
removed=$(removed_by $missing $cross)
if [ -n "$removed" ]; then
  echo "setup: not installing$cross, which would remove: $removed" >&2
  cross=""
fi
[ -z "$missing$cross" ] || $sudo apt-get install -y -qq --no-install-recommends $missing $cross >/dev/null
