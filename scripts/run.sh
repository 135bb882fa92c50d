#!/usr/bin/env bash
# Installs build dependencies, builds Coracle, and starts a cluster. Environment: DATA_DIR (default /var/lib/coracle), HTTPS_PORT.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/install.sh cc=build-essential
cargo build --locked --profile quick -p coracle

coracle="${CARGO_TARGET_DIR:-target}/quick/coracle"
cat <<EOF

Coracle is built: $coracle
Starting a cluster on this machine. Ctrl-C ends the server and leaves pods running; "$coracle stop" ends both.

EOF
[ "$(id -u)" = 0 ] || {
    echo "A node needs root. Run this as root, or start a control plane without a node: $coracle server --no-node --data-dir data" >&2
    exit 1
}
exec "$coracle" server ${DATA_DIR:+--data-dir "$DATA_DIR"} ${HTTPS_PORT:+--https-port "$HTTPS_PORT"}
