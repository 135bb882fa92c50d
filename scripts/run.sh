#!/usr/bin/env bash
# Installs what the build needs, builds Coracle, and shows what it can do today.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/install.sh cc=build-essential
cargo build --locked --release -p coracle

coracle="${CARGO_TARGET_DIR:-target}/release/coracle"
manifest='apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replica: 3
  template:
    spec:
      containers: [{name: web, image: nginx, resources: {limits: {cpu: 1000m}}}]'

cat <<EOF

Coracle is built: $coracle
There is no server to start yet. What works is \`coracle decode\`: an object in any form, shown in another. From

$manifest

it makes this, and names what Kubernetes does not know:

EOF
echo "$manifest" | "$coracle" decode -o protobuf 2>/dev/null | "$coracle" decode -o yaml
echo
echo "$manifest" | "$coracle" decode 2>&1 >/dev/null
cat <<EOF

It read YAML, wrote the protobuf that Kubernetes keeps in etcd, and read that back. Try it on your own:

    kubectl get pod NAME -o json | $coracle decode -o yaml
    etcdctl get /registry/pods/default/NAME --print-value-only | $coracle decode
EOF
