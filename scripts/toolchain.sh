# Sourced by the other scripts: checks for a Rust toolchain, and says how to get one. Installs nothing.

if ! command -v cargo >/dev/null && [ -x "${HOME:-}/.cargo/bin/cargo" ]; then
    PATH="$HOME/.cargo/bin:$PATH"
fi

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! command -v cargo >/dev/null || ! found=$(rustc --version); then
    echo "Coracle is built with Rust $needed or newer, and none was found: install rustup (https://rustup.rs)," \
        "then run: rustup toolchain install stable" >&2
    exit 1
fi
found=$(echo "$found" | cut -d' ' -f2)
if ! printf '%s\n' "$needed" "${found%%-*}" | sort --version-sort --check=quiet; then
    echo "Coracle is built with Rust $needed or newer, and this is $found; run: rustup update stable" >&2
    exit 1
fi
