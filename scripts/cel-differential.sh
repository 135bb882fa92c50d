#!/usr/bin/env bash
# Asks the CEL crate and upstream's modules the same expressions: cel-differential.sh [COUNT] [SEED], a million by default.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/build-cel-oracle.sh

export CORACLE_CEL_EXPRESSIONS=${1:-1000000} CORACLE_SEED=${2:-$RANDOM}
cargo test --locked --release -p coracle-cel --test cel generated_expressions -- --nocapture
