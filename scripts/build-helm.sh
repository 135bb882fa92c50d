#!/usr/bin/env bash
# Builds stock helm, which Debian lacks, for the tests of the server, once, into target/test-tools/helm.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v3.21.4
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ ! -x "$tools/helm" ] || [ "$(cat "$tools/helm.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building helm $version"
mkdir -p "$tools/helm-src"
cd "$tools/helm-src"
cat >go.mod <<EOF
module helm

go 1.26

require helm.sh/helm/v3 $version
EOF
rm -f go.sum
# Whole when it is there: the name appears only once the build has succeeded.
go build -mod=mod -trimpath -ldflags='-s -w' -o ../helm.new helm.sh/helm/v3/cmd/helm
mv ../helm.new ../helm
echo "$version" >../helm.version
