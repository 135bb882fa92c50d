#!/usr/bin/env bash
# Builds the oracle of tests/tools/cel-oracle, which answers what Kubernetes' CEL does, once, into target/test-tools/cel-oracle.
set -euo pipefail
cd "$(dirname "$0")/.."

version="v0.36.4 $(cat tests/tools/cel-oracle/*.go tests/tools/cel-oracle/go.mod | sha256sum | cut -c1-16)"
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/cel-oracle" ] || [ "$(cat "$tools/cel-oracle.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building the CEL oracle (Kubernetes' modules ${version% *})"
mkdir -p "$tools/cel-oracle-src"
rm -f "$tools"/cel-oracle-src/*
cp tests/tools/cel-oracle/*.go tests/tools/cel-oracle/go.mod "$tools/cel-oracle-src/"
cd "$tools/cel-oracle-src"
# Whole when it is there: the name appears only once the build has succeeded.
go build -mod=mod -trimpath -ldflags='-s -w' -o ../cel-oracle.new .
mv ../cel-oracle.new ../cel-oracle
echo "$version" >../cel-oracle.version
