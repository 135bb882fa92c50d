"""tests/e2e/ledger.tsv: what is known of every spec of the suite.

state           reason
passes          –
fails           the cause
not applicable  why: cloud, Windows, hardware, kernel, or what the spec itself says when it skips
owed            the feature it needs

tests/e2e/rules.tsv gives state and reason for specs that are not worth running, and the cause for those that fail: the
first rule whose regular expression matches counts. What passes needs no rule. `fails` and `owed` may only shrink: a run
never takes `passes` away, it reports a regression; and `check` compares with the committed ledger.
"""
import collections
import os
import re
import subprocess

from . import cache

FILE = os.path.join(cache.REPOSITORY, "tests/e2e/ledger.tsv")
RULES = os.path.join(cache.REPOSITORY, "tests/e2e/rules.tsv")
STATES = ("passes", "fails", "not applicable", "owed")
NOT_RUN = ("owed", "not run yet")
# What specs say when they skip themselves, and what would make them run.
OWED_BY_MESSAGE = (
    (re.compile(r"(>=|at least|minimum of) (2|two|3)\b|more than one zone", re.I), "several nodes"),
    (re.compile("storageClass"), "persistent volume claims"),
)


def parse(text):
    """{spec: (state, reason)}; raises on a line that is none."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        state, reason, spec = (line.split("\t") + ["", ""])[:3]
        if state not in STATES or not spec or (state != "passes" and not reason):
            raise ValueError(f"ledger.tsv, line {number}: STATE, REASON and SPEC are expected, separated by tabs: {line}")
        if spec in found:
            raise ValueError(f"ledger.tsv, line {number}: a second line for {spec}")
        found[spec] = (state, reason)
    return found


def load():
    return parse(open(FILE).read()) if os.path.exists(FILE) else {}


def save(ledger):
    with open(FILE, "w") as file:
        for spec in sorted(ledger):
            file.write("\t".join([*ledger[spec], spec]) + "\n")


def rules():
    """[(state, reason, expression)] of rules.tsv."""
    rows = [line.split("\t") for line in open(RULES).read().splitlines() if line and not line.startswith("#")]
    return [(state, reason, re.compile(expression)) for state, reason, expression in rows]


def rule_for(spec, known):
    return next(((state, reason) for state, reason, expression in known if expression.search(spec)), None)


def worth_running(spec, known):
    """Whether a run can tell more than the rules: those that only explain a failure do not exclude a spec."""
    rule = rule_for(spec, known)
    return rule is None or rule[0] == "fails"


def classify(spec, before, verdict, known):
    """The new line of one spec. `before`: its line or None. `verdict`: of the run, or None where it did not run."""
    rule = rule_for(spec, known)
    if verdict is None:
        if before and before[0] in ("passes", "fails") or before and rule is None:
            return before
        return rule if rule and rule[0] != "fails" else before or NOT_RUN

    outcome, _, message = verdict
    if outcome == "passed":
        return ("passes", "")
    if outcome == "skipped":
        owed = next((reason for expression, reason in OWED_BY_MESSAGE if expression.search(message)), None)
        return rule or (("owed", owed) if owed else ("not applicable", clean(message) or "skips itself"))
    if before and before[0] == "passes":
        return before
    return rule if rule else ("fails", clean(message) or "no message")


def clean(message):
    """A message as one short line that is the same in every run."""
    line = " ".join(message.split())
    line = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|0x[0-9a-f]+|\b[0-9a-f]{32,}\b", "…", line)
    return line[:160].strip()


def update(specs, verdicts):
    """Writes what a run found. Returns the regressions: specs marked as passing that failed."""
    before, known = load(), rules()
    after = {spec: classify(spec, before.get(spec), verdicts.get(spec), known) for spec in specs}
    save(after)
    return [spec for spec, row in verdicts.items() if row[0] == "failed" and before.get(spec, ("",))[0] == "passes"]


def grown(before, after):
    """Specs that are `fails` or `owed` now and were better before."""
    bad = ("fails", "owed")
    return [spec for spec, row in after.items() if row[0] in bad and spec in before and before[spec][0] not in bad]


def committed():
    """The last committed ledger that differs from the one in the folder."""
    for revision in ("HEAD", "HEAD~1"):
        command = ["git", "show", f"{revision}:tests/e2e/ledger.tsv"]
        done = subprocess.run(command, cwd=cache.REPOSITORY, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout != open(FILE).read():
            return parse(done.stdout)
    return {}


def counts(ledger):
    """{area: Counter of states}"""
    found = collections.defaultdict(collections.Counter)
    for spec, (state, _) in ledger.items():
        found[area(spec)][state] += 1
    return found


def area(spec):
    return re.match(r"\[(sig-[a-z-]+)", spec).group(1)
