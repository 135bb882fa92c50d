#!/usr/bin/env bash
# Our components in upstream's places and upstream's in ours, with the same command lines: see tests/swap/main.py.
# Environment: CORACLE, the binary under test.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/install.sh python3=python3 openssl=openssl ip=iproute2 unshare=util-linux nft=nftables go=golang-go
scripts/build-etcd.sh
scripts/build-kubectl.sh
scripts/build-upstream.sh
if [ -z "${CORACLE:-}" ]; then
    cargo build --locked --profile quick -p coracle
fi
exec python3 tests/swap/main.py "$@"
