#!/usr/bin/env bash
# Installs what the build and the tests need from the distribution's packages; says nothing when all
# of it is there. Debian 12 and Ubuntu 24.04.
set -euo pipefail

. /etc/os-release
case "${ID:-} ${VERSION_ID:-}" in
  "debian 12") boost="libboost1.81-dev libboost-json1.81-dev" ;;
  "ubuntu 24.04") boost="libboost-dev libboost-json-dev" ;;
  *) boost="libboost-dev libboost-json-dev"
     echo "setup: $PRETTY_NAME is not tried; going on with the package names of Debian and Ubuntu" >&2 ;;
esac
packages="g++ cmake ninja-build pkg-config python3 xz-utils binutils $boost libyaml-cpp-dev libspdlog-dev
  libcli11-dev libpcre2-dev libutf8proc-dev libgtest-dev libbenchmark-dev"

missing=""
for p in $packages; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi
if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
  echo "setup: these packages are missing and there is neither root nor sudo to install them:$missing" >&2
  exit 1
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
# Debian's Boost 1.81 headers take the place of 1.74's: never remove a package of the user's unasked.
removed=$(apt-get install -s --no-install-recommends $missing 2>/dev/null | sed -n 's/^Remv \([^ ]*\).*/\1/p' | tr '\n' ' ')
if [ -n "$removed" ] && [ "${CI:-}" != true ]; then
  echo "setup: installing these would remove: $removed" >&2
  echo "setup: to allow it, run: CI=true make $(basename "${MAKECMDGOALS:-run}")" >&2
  exit 1
fi
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
