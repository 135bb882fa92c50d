#!/usr/bin/env bash
# Installs Debian packages for missing commands: install.sh COMMAND=PACKAGE… Prints nothing if all are there.
set -euo pipefail

missing=()
for need in "$@"; do
    command -v "${need%%=*}" >/dev/null || missing+=("${need#*=}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "missing packages, and no apt-get to install them: ${missing[*]} (names of Debian packages)" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "missing packages; run: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
