"""Tables of a run, and docs/conformance.md."""
import collections
import datetime
import os
import subprocess

from . import cache, ledger

PAGE = os.path.join(cache.REPOSITORY, "docs/conformance.md")


def by_area(verdicts):
    """{area: (passed, failed, skipped, seconds)}"""
    found = collections.defaultdict(lambda: [0, 0, 0, 0.0])
    for spec, (verdict, seconds, _) in verdicts.items():
        row = found[ledger.area(spec)]
        row[("passed", "failed", "skipped").index(verdict)] += 1
        row[3] += seconds
    return dict(sorted(found.items()))


def print_table(verdicts):
    print(f"{'area':24} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for area, (passed, failed, skipped, seconds) in by_area(verdicts).items():
        print(f"{area:24} {passed:7} {failed:7} {skipped:8} {seconds:8.0f}")


def write_conformance(specs, verdicts, known, seconds):
    """`seconds`: how long the run took."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=cache.REPOSITORY, capture_output=True, text=True)
    passed = sum(1 for spec in specs if verdicts.get(spec, ("",))[0] == "passed")
    missing = [spec for spec in specs if spec not in verdicts]
    own = sum(row[1] for row in verdicts.values())
    lines = [
        "# Upstream's conformance suite",
        "",
        "Written by `make conformance`; do not edit. How the suite is built and run: [tests/e2e](../tests/e2e/README.md).",
        "",
        f"Kubernetes v1.36.4, {datetime.date.today()}, commit {commit.stdout.strip()}, one node: **{passed} of {len(specs)}** "
        f"specs pass. The run took {seconds / 60:.0f} minutes in parallel lanes; the specs' own times add up to "
        f"{own / 60:.0f} minutes."
        + (f" **{len(missing)} have no verdict.**" if missing else ""),
        "",
        "| area | pass | fail | seconds |",
        "|---|---|---|---|",
    ]
    lines += [f"| {area} | {p} | {f} | {s:.0f} |" for area, (p, f, _, s) in by_area(verdicts).items()]
    lines += ["", "## What fails, and why", "", "| cause | specs |", "|---|---|"]
    causes = collections.defaultdict(list)
    for spec in specs:
        if verdicts.get(spec, ("",))[0] == "failed":
            state, reason = known.get(spec, ("fails", "no cause known"))
            cause = "passes in the ledger: a regression, or unstable" if state == "passes" else f"{state}: {reason}"
            causes[cause].append(spec)
    for cause, names in sorted(causes.items(), key=lambda row: -len(row[1])):
        shown = "<br>".join(cell(name) for name in names)
        lines.append(f"| {cell(cause)} ({len(names)}) | {shown} |")

    lines += ["", "## The ten slowest specs", "", "| seconds | verdict | spec |", "|---|---|---|"]
    slowest = sorted(verdicts.items(), key=lambda row: -row[1][1])[:10]
    lines += [f"| {row[1]:.0f} | {row[0]} | {cell(spec)} |" for spec, row in slowest]
    if missing:
        lines += ["", "## Without a verdict", "", *(f"- {cell(name)}" for name in missing)]
    lines += ["", *ledger_section(known)]
    with open(PAGE, "w") as file:
        file.write("\n".join(lines) + "\n")


def ledger_section(known):
    """Counts of the whole suite by area and state."""
    lines = [
        "## The whole suite",
        "",
        f"All {len(known)} specs of the suite, from [tests/e2e/ledger.tsv](../tests/e2e/ledger.tsv).",
        "",
        "| area | " + " | ".join(ledger.STATES) + " |",
        "|---|" + "---|" * len(ledger.STATES),
    ]
    counted = sorted(ledger.counts(known).items())
    lines += [f"| {area} | " + " | ".join(str(row[state]) for state in ledger.STATES) + " |" for area, row in counted]
    total = sum((row for _, row in counted), collections.Counter())
    return [*lines, "| all | " + " | ".join(str(total[state]) for state in ledger.STATES) + " |"]


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
