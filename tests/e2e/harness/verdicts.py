"""What a report of the suite (Ginkgo's JSON) says about each spec."""
import json

BAD = ("failed", "timedout", "panicked", "interrupted", "aborted")


def name_of(spec):
    return " ".join([*(spec.get("ContainerHierarchyTexts") or []), spec["LeafNodeText"]])


def specs_of(path):
    """All specs of a report, with those that did not run."""
    for suite in json.load(open(path)):
        for spec in suite["SpecReports"] or []:
            if spec["LeafNodeType"] == "It":
                yield spec


def read(path):
    """Yields (name, passed | failed | skipped, seconds, message) of each spec that ran."""
    for spec in specs_of(path):
        state, failure = spec["State"], spec.get("Failure") or {}
        message = " ".join(failure.get("Message", "").split())[:600]
        seconds = spec.get("RunTime", 0) / 1e9
        if state == "passed" or state in BAD:
            yield name_of(spec), "passed" if state == "passed" else "failed", seconds, message
        elif state == "skipped" and failure:
            yield name_of(spec), "skipped", seconds, message
