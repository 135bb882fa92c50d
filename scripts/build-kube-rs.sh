#!/usr/bin/env bash
# Builds the program of tests/clients/rust, which uses the server through kube-rs, once, into target/test-tools/kube-rs.
set -euo pipefail
cd "$(dirname "$0")/.."

source=tests/clients/rust
version="$(cat $source/Cargo.toml $source/Cargo.lock $source/src/main.rs | sha256sum | cut -c1-16)"
tools="$(realpath "${CARGO_TARGET_DIR:-target}")/test-tools"
[ ! -x "$tools/kube-rs" ] || [ "$(cat "$tools/kube-rs.version" 2>/dev/null)" != "$version" ] || exit 0

echo "building the kube-rs program"
cargo build --quiet --locked --manifest-path $source/Cargo.toml --target-dir "$tools/kube-rs-target"
# Whole when it is there: the name appears only once the build has succeeded.
cp "$tools/kube-rs-target/debug/kube-rs" "$tools/kube-rs.new"
mv "$tools/kube-rs.new" "$tools/kube-rs"
echo "$version" >"$tools/kube-rs.version"
