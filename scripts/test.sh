#!/usr/bin/env bash
# All checks before a change is merged: format, lints, the repository's own rules, licences, tests. Prints at the end
# how long each took, and how much processor time.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/toolchain.sh
scripts/test-prereqs.sh

times=()
step() {
    echo "== $*"
    local began=$EPOCHREALTIME before result=0
    before=$(spent)
    "$@" || result=$?
    local seconds processor
    seconds=$(difference "$EPOCHREALTIME" "$began")
    processor=$(difference "$(spent)" "$before")
    times+=("$(printf '%8.1f s %8.1f s  %s' "$seconds" "$processor" "$*")")
    [ "$result" = 0 ] || exit "$result"
}

# Processor seconds of all that this script has run.
spent() {
    awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($14 + $15) / ticks }' "/proc/$$/stat"
}

difference() {
    awk -v later="$1" -v earlier="$2" 'BEGIN { print later - earlier }'
}

report() {
    [ ${#times[@]} -gt 0 ] || return 0
    printf '\n    elapsed  processor  step\n'
    printf '%s\n' "${times[@]}"
}
trap report EXIT

step cargo fmt --all --check
step cargo clippy --locked --workspace --all-targets -- -D warnings
step cargo xtask tidy
step cargo xtask licences
step cargo test --locked --workspace --no-run
step cargo test --locked --workspace
step scripts/e2e.sh smoke
