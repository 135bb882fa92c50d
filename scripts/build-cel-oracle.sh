#!/usr/bin/env bash
# Builds the oracle of tests/tools/cel-oracle, which answers what Kubernetes' CEL does, once, into target/test-tools/cel-oracle.
set -euo pipefail
cd "$(dirname "$0")/.."

modules=v0.36.4
version="$modules $(cat tests/tools/cel-oracle/*.go tests/tools/cel-oracle/go.mod scripts/build-cel-oracle.sh | sha256sum | cut -c1-16)"
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/cel-oracle" ] || [ "$(cat "$tools/cel-oracle.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building the CEL oracle (Kubernetes' modules $modules)"
mkdir -p "$tools/cel-oracle-src"
rm -f "$tools"/cel-oracle-src/*
cp tests/tools/cel-oracle/*.go tests/tools/cel-oracle/go.mod "$tools/cel-oracle-src/"
cd "$tools/cel-oracle-src"
# Whole when it is there: the name appears only once the build has succeeded.
go build -mod=mod -trimpath -ldflags='-s -w' -o ../cel-oracle.new .
# Upstream's own tests: the texts in them, and the language's conformance tests.
folder() { go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }
../cel-oracle.new extract "$(folder github.com/google/cel-go@v0.26.0)" "$(folder "k8s.io/apiserver@$modules")" \
    "$(folder "k8s.io/apiextensions-apiserver@$modules")" "$(folder "k8s.io/dynamic-resource-allocation@$modules")" >../cel-extracted.jsonl
rm -rf ../cel-conformance
cp -r --no-preserve=mode "$(folder cel.dev/expr@v0.25.1)/tests/simple/testdata" ../cel-conformance
rm ../cel-conformance/README.md
mv ../cel-oracle.new ../cel-oracle
echo "$version" >../cel-oracle.version
