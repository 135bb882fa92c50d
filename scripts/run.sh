#!/usr/bin/env bash
# Installs what the build needs, builds Coracle, and starts it. What it keeps is in DATA_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/install.sh cc=build-essential
cargo build --locked --release -p coracle

coracle="${CARGO_TARGET_DIR:-target}/release/coracle"
data="${DATA_DIR:-$PWD/data}"
cat <<EOF

Coracle is built: $coracle
Starting a cluster without nodes: API server, controllers and scheduler. Pods do not run yet. End it with Ctrl-C.

EOF
exec "$coracle" server --no-node --data-dir "$data" --https-port "${HTTPS_PORT:-6443}"
