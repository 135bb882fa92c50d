#!/usr/bin/env bash
# Builds etcd 3.6, which Debian lacks, for the tests of the store, once, into target/test-tools/etcd36.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v3.6.16
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/etcd36" ] || [ "$(cat "$tools/etcd36.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building etcd $version"
mkdir -p "$tools/etcd36-src"
cd "$tools/etcd36-src"
cat >main.go <<'EOF'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
EOF
cat >go.mod <<EOF
module etcd36

go 1.25

require go.etcd.io/etcd/server/v3 $version
EOF
rm -f go.sum
# Whole when it is there: the name appears only once the build has succeeded.
go build -mod=mod -trimpath -ldflags='-s -w' -o ../etcd36.new .
mv ../etcd36.new ../etcd36
echo "$version" >../etcd36.version
