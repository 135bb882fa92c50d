#!/usr/bin/env bash
# Builds the program of tests/clients/go, which uses the server through client-go, once, into target/test-tools/client-go.
set -euo pipefail
cd "$(dirname "$0")/.."

version="v0.36.0 $(sha256sum tests/clients/go/main.go | cut -c1-16)"
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/client-go" ] || [ "$(cat "$tools/client-go.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building the client-go program (${version% *})"
mkdir -p "$tools/client-go-src"
cp tests/clients/go/main.go "$tools/client-go-src/"
cd "$tools/client-go-src"
cat >go.mod <<MOD
module clientgo

go 1.26

require (
	k8s.io/api ${version% *}
	k8s.io/apimachinery ${version% *}
	k8s.io/client-go ${version% *}
)
MOD
rm -f go.sum
# Whole when it is there: the name appears only once the build has succeeded.
go build -mod=mod -trimpath -ldflags='-s -w' -o ../client-go.new .
mv ../client-go.new ../client-go
echo "$version" >../client-go.version
