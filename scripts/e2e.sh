#!/usr/bin/env bash
# Installs what upstream's e2e suite needs and runs it: see tests/e2e/README.md. Environment: CORACLE, CORACLE_E2E_CACHE.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
if [ "$1" = smoke ]; then
    exec python3 tests/e2e/main.py "$@"
fi
if ! command -v go >/dev/null || ! printf 'go1.26\n%s\n' "$(go env GOVERSION)" | sort --version-sort --check=quiet; then
    echo "upstream's suite is built with Go 1.26 or newer, which is not here (Debian's is older): see https://go.dev/dl" >&2
    exit 1
fi
scripts/install.sh cc=build-essential python3=python3 ip=iproute2 nsenter=util-linux nft=nftables bzip2=bzip2 openssl=openssl
if [ "$1" = ecosystem ]; then
    scripts/install.sh skopeo=skopeo docker-registry=docker-registry curl=curl
fi
if [ "$1" != build ] && [ -z "${CORACLE:-}" ]; then
    cargo build --locked --release -p coracle
fi
exec python3 tests/e2e/main.py "$@"
