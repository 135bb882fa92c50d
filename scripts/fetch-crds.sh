#!/usr/bin/env bash
# Copies the CustomResourceDefinitions and examples of gateway-api and argo-workflows from their Go modules, for the tests of the
# server, once, into target/test-tools/crds.
set -euo pipefail
cd "$(dirname "$0")/.."

gateway=v1.4.1
argo=v4.0.5
# Its checksum is not in every checksum database, so it is here.
argo_sum=h1:/1lru5oXUd+k6KEDUps6rLX5OKfi1jTfabgXTly/VFU=
version="gateway-api $gateway argo-workflows $argo"
tools="${CARGO_TARGET_DIR:-target}/test-tools"
[ "$(cat "$tools/crds.version" 2>/dev/null)" != "$version" ] || exit 0

echo "fetching definitions ($version)"
member() { sed -n "s/^\t\"$1\": \"\(.*\)\",\$/\1/p"; }
fetched="$(cd / && go mod download -json "sigs.k8s.io/gateway-api@$gateway")"
gateway_folder="$(member Dir <<<"$fetched")"
fetched="$(cd / && GONOSUMDB=github.com/argoproj/argo-workflows/v4 go mod download -json "github.com/argoproj/argo-workflows/v4@$argo")"
argo_folder="$(member Dir <<<"$fetched")"
[ "$(member Sum <<<"$fetched")" = "$argo_sum" ] || { echo "argo-workflows $argo has another checksum than $argo_sum" >&2; exit 1; }

rm -rf "$tools/crds"
mkdir -p "$tools/crds/gateway-api" "$tools/crds/argo-workflows"
copy() { cp -r --no-preserve=mode "$1" "$2"; }
copy "$gateway_folder/config/crd" "$tools/crds/gateway-api/crd"
copy "$gateway_folder/examples" "$tools/crds/gateway-api/examples"
copy "$gateway_folder/hack/invalid-examples" "$tools/crds/gateway-api/invalid-examples"
copy "$argo_folder/manifests/base/crds/full" "$tools/crds/argo-workflows/crd"
copy "$argo_folder/examples" "$tools/crds/argo-workflows/examples"
echo "$version" >"$tools/crds.version"
