#!/usr/bin/env bash
# Builds stock kubectl, which Debian lacks, for the tests of the server, once, into target/test-tools/kubectl.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v0.36.0
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/kubectl" ] || [ "$(cat "$tools/kubectl.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building kubectl $version"
mkdir -p "$tools/kubectl-src"
cd "$tools/kubectl-src"
cat >main.go <<'EOF'
package main

import (
	"os"

	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	if cmd.NewDefaultKubectlCommand().Execute() != nil {
		os.Exit(1)
	}
}
EOF
cat >go.mod <<EOF
module kubectl

go 1.26

require k8s.io/kubectl $version
EOF
rm -f go.sum
# Whole when it is there: the name appears only once the build has succeeded.
go build -mod=mod -trimpath -ldflags='-s -w' -o ../kubectl.new .
mv ../kubectl.new ../kubectl
echo "$version" >../kubectl.version
