#!/usr/bin/env bash
# Installs what the build needs, builds Coracle, and starts it. What it keeps is in DATA_DIR, or /var/lib/coracle.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/install.sh cc=build-essential
cargo build --locked --release -p coracle

coracle="${CARGO_TARGET_DIR:-target}/release/coracle"
cat <<EOF

Coracle is built: $coracle
Starting a cluster on this machine. End it with Ctrl-C: its pods go on then, and $coracle stop ends them.

EOF
[ "$(id -u)" = 0 ] || {
    echo "A node needs root: run this as root, or as yourself: $coracle server --no-node --data-dir data" >&2
    exit 1
}
exec "$coracle" server ${DATA_DIR:+--data-dir "$DATA_DIR"} ${HTTPS_PORT:+--https-port "$HTTPS_PORT"}
