#!/usr/bin/env bash
# Builds the suite of tests/clients/envtest, written with controller-runtime, once, into target/test-tools/envtest.
set -euo pipefail
cd "$(dirname "$0")/.."

version="v0.24.1 $(cat tests/clients/envtest/*.go | sha256sum | cut -c1-16)"
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/envtest" ] || [ "$(cat "$tools/envtest.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building the envtest suite (controller-runtime ${version% *})"
mkdir -p "$tools/envtest-src"
cp tests/clients/envtest/*.go "$tools/envtest-src/"
cd "$tools/envtest-src"
cat >go.mod <<MOD
module envtest

go 1.26

require sigs.k8s.io/controller-runtime ${version% *}
MOD
rm -f go.sum
# A package of tests alone: what it needs is found only with -mod=mod, while it is built.
go test -mod=mod -trimpath -ldflags='-s -w' -c -o ../envtest.new .
# Whole when it is there: the name appears only once the build has succeeded.
mv ../envtest.new ../envtest
echo "$version" >../envtest.version
