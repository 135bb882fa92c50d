#!/usr/bin/env bash
# All benchmarks, one after the other. Where a benchmark compares with another program, it runs both: trust the ratios.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/test-prereqs.sh
scripts/install.sh crun=crun # a peer of the runtime
scripts/build-kube-apiserver.sh # the peer of the road
cargo bench --locked --workspace --bench '*' "$@"
