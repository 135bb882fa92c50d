#!/usr/bin/env bash
# Installs the Python client of Kubernetes for the tests of the server, once, into target/test-tools/python-client.
set -euo pipefail
cd "$(dirname "$0")/.."

version=36.0.3
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ "$(cat "$tools/python-client.version" 2>/dev/null)" != "$version" ] || exit 0

echo "installing the Python client $version"
rm -rf "$tools/python-client"
mkdir -p "$tools/python-client"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
    --no-warn-conflicts --target "$tools/python-client" "kubernetes==$version"
# Whole when it is there: the version appears only once everything is installed.
echo "$version" >"$tools/python-client.version"
