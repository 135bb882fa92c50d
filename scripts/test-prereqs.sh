#!/usr/bin/env bash
# Installs what the tests need beside the Rust toolchain: COMMAND=PACKAGE, one line each, with who needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

needs=(
    cc=build-essential # links; ring (TLS) compiles C
    etcd=etcd-server # store: the engine's peer, in the release without trustworthy progress (3.4)
    python3=python3 # plays the recorded answers
    etcdctl=etcd-client # store: the command line that the etcd face must satisfy
    ip=iproute2 # podnet: looks at the namespaces that the tests made
    nft=nftables # podnet: host ports
    go=golang-go # builds the etcd and the kubectl below
)
scripts/install.sh "${needs[@]}"
scripts/build-etcd.sh
scripts/build-kubectl.sh
