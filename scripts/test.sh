#!/usr/bin/env bash
# All checks before a change is merged: format, lints, the repository's own rules, licences, tests.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/test-prereqs.sh

step() {
    echo "== $*"
    "$@"
}
step cargo fmt --all --check
step cargo clippy --locked --workspace --all-targets -- -D warnings
step cargo xtask tidy
step cargo xtask licences
step cargo test --locked --workspace
step scripts/e2e.sh smoke
