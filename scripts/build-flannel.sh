#!/usr/bin/env bash
# Builds flannel, which Debian lacks, for the benchmark of the network between nodes, once, into
# target/test-tools/flanneld.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v0.28.4
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/flanneld" ] || [ "$(cat "$tools/flanneld.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building flannel $version"
mkdir -p "$tools"
# Without its UDP backend, which is the only part in C.
GOBIN="$(cd "$tools" && pwd)/flannel-new" CGO_ENABLED=0 go install -trimpath -ldflags='-s -w' "github.com/flannel-io/flannel@$version"
mv "$tools/flannel-new/flannel" "$tools/flanneld"
rmdir "$tools/flannel-new"
echo "$version" >"$tools/flanneld.version"
