"""Programs of other projects, as judges: each is built from its module, packed as an image under the name its own
manifests ask for, installed from these manifests unchanged, and must show a result that can be observed.

A program is a module of this folder with

    DOES      what it must show, in a few words: the row of docs/compatibility.md
    OWED      "" or the feature that it waits for: then it is expected to fail, and is not run unless named
    SHARED_MOUNTS  (optional) its volumes have mount propagation
    build()   builds programs and images; returns the paths of the archives that are preloaded
    run(c)    installs it on the cluster `c` (harness/cluster.py), and raises where the result is wrong
"""
import importlib
import os
import pkgutil
import time
import traceback

from harness import cache, cluster

PAGE = os.path.join(cache.REPOSITORY, "docs/compatibility.md")


def programs():
    """{name: module}, sorted."""
    found = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}") for name in found}


def run(name, program):
    """Runs one program on a cluster of its own. Returns (result, seconds)."""
    print(f"== {name}: {program.DOES}", flush=True)
    with cache.building():
        archives = program.build()
    started = time.monotonic()
    try:
        shared = getattr(program, "SHARED_MOUNTS", False)
        with cluster.Cluster(f"eco-{name}"[:40], archives, shared) as running:
            program.run(running)
    except Exception:
        return "fails: " + traceback.format_exc().strip().splitlines()[-1][:200], time.monotonic() - started
    return "works", time.monotonic() - started


def write_page(results):
    """Replaces the rows of the programs that ran; the others stay."""
    begin, end = "<!-- begin: written by make ecosystem -->\n", "<!-- end -->\n"
    text = open(PAGE).read()
    before, rest = text.split(begin)
    old, after = rest.split(end)
    rows = {row.split("|")[1].strip(): row for row in old.splitlines()[2:]}
    for name, (version, does, result, seconds) in results.items():
        took = f"{seconds:.0f} s" if seconds else ""
        rows[name] = f"| {name} | {version} | {does} | {result.replace('|', ' ')} | {took} |"
    head = ["| program | version | what it must show | result | time |", "|---|---|---|---|---|"]
    table = "\n".join([*head, *(rows[name] for name in sorted(rows))])
    with open(PAGE, "w") as file:
        file.write(f"{before}{begin}{table}\n{end}{after}")
