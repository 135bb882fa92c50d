#!/usr/bin/env bash
# Prints how many recorded cases of each kind pass exactly: all cases less those in owed.txt.
set -euo pipefail
cd "$(dirname "$0")/../tests/corpus"
for file in *.jsonl; do
    name=${file%.jsonl}
    all=$(($(wc -l <"$file") - 1))
    owed=$(grep -c "^$name:" owed.txt || true)
    printf '%s %d/%d %d%%\n' "$name" $((all - owed)) "$all" $(((all - owed) * 100 / (all > 0 ? all : 1)))
done
