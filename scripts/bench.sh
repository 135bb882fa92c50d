#!/usr/bin/env bash
# Runs all benchmarks in sequence. A benchmark that compares with another program runs both: trust the ratios.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/test-prereqs.sh
scripts/install.sh crun=crun # compared with the runtime
scripts/build-kube-apiserver.sh # compared with the API server
scripts/build-flannel.sh # compared with the network between nodes
cargo bench --locked --workspace --bench '*' "$@"
