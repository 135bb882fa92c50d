#!/usr/bin/env bash
# Installs what the tests need beside the Rust toolchain: COMMAND=PACKAGE, one line each, with who needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

needs=(
    cc=build-essential # links; ring (TLS) compiles C
)
exec scripts/install.sh "${needs[@]}"
