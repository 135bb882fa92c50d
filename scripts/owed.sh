#!/usr/bin/env bash
# Replays the recorded answers (tests/golden, tests/corpus) against this checkout's kube-apiserver.
#   scripts/owed.sh                           compare with the lists of known differences (owed.txt), as `make test` does
#   scripts/owed.sh golden|corpus [TEXT]      only these; only FILE:CASE with TEXT, every difference shown
#   scripts/owed.sh --rewrite [golden|corpus [TEXT]]   rewrite the lists (with TEXT: only those cases)
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --rewrite ]; then
    export CORACLE_OWED=rewrite
    shift
fi
[ $# -lt 2 ] || export CORACLE_ONLY="$2"
cargo test --quiet --locked -p coracle --test recorded_answers --no-fail-fast -- --nocapture ${1:+"$1::"}
