#!/usr/bin/env bash
# Builds the operator of tests/clients/operator, written with controller-runtime, once, into target/test-tools/operator.
set -euo pipefail
cd "$(dirname "$0")/.."

version="v0.24.1 $(cat tests/clients/operator/*.go | sha256sum | cut -c1-16)"
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/operator" ] || [ "$(cat "$tools/operator.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building the operator (controller-runtime ${version% *})"
mkdir -p "$tools/operator-src"
cp tests/clients/operator/*.go "$tools/operator-src/"
cd "$tools/operator-src"
cat >go.mod <<MOD
module operator

go 1.26

require sigs.k8s.io/controller-runtime ${version% *}
MOD
rm -f go.sum
# Whole when it is there: the name appears only once the build has succeeded.
go build -mod=mod -trimpath -ldflags='-s -w' -o ../operator.new .
mv ../operator.new ../operator
echo "$version" >../operator.version
