#!/usr/bin/env bash
# Builds stock kube-apiserver for the benchmark `road`, once, into target/test-tools/kube-apiserver. Takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v1.36.3
parts="v0.${version#v1.}"
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/kube-apiserver" ] || [ "$(cat "$tools/kube-apiserver.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building kube-apiserver $version"
mkdir -p "$tools/kube-apiserver-src"
cd "$tools/kube-apiserver-src"
cat >main.go <<'EOF'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
EOF
# The parts that upstream's own tree replaces by folders of it are modules of their own here.
whole="$(cd / && GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')"
{
    printf 'module kube-apiserver\n\ngo 1.26\n\nrequire k8s.io/kubernetes %s\n\n' "$version"
    sed -n "s|^\t*\(replace \)\?\(k8s.io/[a-z-]*\) => ./staging/src/.*|replace \2 => \2 $parts|p" "$whole"
} >go.mod
rm -f go.sum
# Whole when it is there: the name appears only once the build has succeeded.
go build -mod=mod -trimpath -ldflags='-s -w' -o ../kube-apiserver.new .
mv ../kube-apiserver.new ../kube-apiserver
echo "$version" >../kube-apiserver.version
