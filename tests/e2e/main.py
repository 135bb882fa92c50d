#!/usr/bin/env python3
"""Upstream's e2e suite against this checkout.

  main.py build                           programs and images, into the cache
  main.py e2e [--focus RE] [--skip RE]    specs by name; verdicts go into the ledger
  main.py conformance                     the 446 conformance specs; writes docs/conformance.md
  main.py ledger [--part N/M]             what the ledger marks as passing
  main.py smoke                           some thirty specs of all areas, where the suite is built
  main.py ecosystem [NAME …]              programs of other projects; writes docs/compatibility.md
  main.py check                           the ledger against rules, the suite and the committed ledger

A run that was ended continues when it is started again with the same arguments; --fresh begins anew. The binary under
test is CORACLE, or the newest build of this checkout. Root is needed.
"""
import argparse
import hashlib
import os
import re
import sys
import time

sys.dont_write_bytecode = True

import ecosystem as programs  # noqa: E402
from harness import cache, gobuild, images, lanes, ledger, report  # noqa: E402

SMOKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "smoke.txt")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=list(VERBS))
    parser.add_argument("names", nargs="*", help="of programs of the ecosystem; none: all that need nothing more")
    parser.add_argument("--focus", default="", help="regular expression: only these specs")
    parser.add_argument("--skip", default="", help="regular expression: not these specs")
    parser.add_argument("--part", default="1/1", help="N/M: the Nth of M parts")
    parser.add_argument("--lanes", type=int, default=4, help="parallel lanes on one cluster (4)")
    parser.add_argument("--serial-clusters", type=int, default=1, help="clusters for serial specs (1)")
    parser.add_argument("--not-run", action="store_true", help="e2e: only specs that the ledger calls not run yet")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run found")
    parser.add_argument("--again", action="store_true", help="run once more what failed in an earlier run")
    options = parser.parse_args()
    try:
        sys.exit(VERBS[options.verb](options))
    except cache.Failed as failed:
        sys.exit(f"e2e: {failed}")
    except KeyboardInterrupt:
        sys.exit("e2e: ended; it continues where it was when it is started again")


def build(_options):
    started = time.monotonic()
    make_suite()
    print(f"programs and images are in {cache.ROOT}; took {time.monotonic() - started:.0f} s")
    return 0


def e2e(options):
    chosen = [spec for spec in suite_specs() if re.search(options.focus, spec)]
    if options.skip:
        chosen = [spec for spec in chosen if not re.search(options.skip, spec)]
    if options.not_run:
        rows = ledger.load()
        chosen = [spec for spec in chosen if rows.get(spec) == ledger.NOT_RUN]
    known = ledger.rules()
    chosen = part([spec for spec in chosen if ledger.worth_running(spec, known)], options.part)
    key = hashlib.sha256(f"{options.focus}\t{options.skip}\t{options.part}\t{options.not_run}".encode()).hexdigest()[:8]
    return finish(run(f"e2e-{key}", chosen, options))


def conformance(options):
    specs = [spec for spec in suite_specs() if "[Conformance]" in spec]
    running = new_run("conformance", specs, options)
    verdicts = running.go()
    rc = finish(verdicts)
    report.write_conformance(specs, verdicts, ledger.load(), running.seconds())
    return rc


def passing(options):
    suite_specs()
    chosen = [spec for spec, row in sorted(ledger.load().items()) if row[0] == "passes"]
    return finish(run(f"ledger-{options.part.replace('/', 'of')}", part(chosen, options.part), options))


def smoke(options):
    """For `make test`: only where the suite is built and may be run, and with the newest build as it is."""
    if not (gobuild.built("e2e.test", "kubectl") and images.made()):
        print("e2e smoke: skipped, because upstream's suite is not in the cache; `make e2e-build` builds it")
        return 0
    if os.geteuid() != 0:
        print("e2e smoke: skipped, because it needs root")
        return 0
    chosen = [line for line in open(SMOKE).read().splitlines() if line and not line.startswith("#")]
    unknown = sorted(set(chosen) - set(lanes.all_specs()))
    if unknown:
        print(*(f"smoke.txt names a spec that the suite does not have: {spec}" for spec in unknown), sep="\n")
        return 1

    started = time.monotonic()
    verdicts = lanes.Run("smoke", chosen, options.lanes, fresh=True, batch=-(-len(chosen) // options.lanes)).go()
    failed = [spec for spec in chosen if verdicts.get(spec, ("",))[0] != "passed"]
    for spec in failed:
        print(f"FAILED: {spec}\n    {verdicts.get(spec, ('', 0, 'no verdict'))[2][:300]}")
    print(f"e2e smoke: {len(chosen) - len(failed)} of {len(chosen)} specs pass; took {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def ecosystem(options):
    known = programs.programs()
    if unknown := [name for name in options.names if name not in known]:
        raise SystemExit(f"no such program: {', '.join(unknown)}; there are: {', '.join(known)}")
    chosen = options.names or [name for name, program in known.items() if not program.OWED]
    with cache.building():
        gobuild.kubectl()

    results = {}
    for name, program in known.items():
        if name in chosen:
            result, seconds = programs.run(name, program)
            print(f"{name}: {result}; took {seconds:.0f} s", flush=True)
        elif program.OWED and not options.names:
            result, seconds = f"needs {program.OWED}", 0
        else:
            continue
        results[name] = (program.VERSION, program.DOES, result, seconds)
    programs.write_page(results)
    return 1 if any(result.startswith("fails") for _, _, result, _ in results.values()) else 0


def check(_options):
    now = ledger.load()
    wrong = [f"worse than committed: {spec}" for spec in ledger.grown(ledger.committed(), now)]
    if gobuild.built("e2e.test"):
        suite = set(lanes.all_specs())
        wrong += [f"not in the ledger: {spec}" for spec in sorted(suite - set(now))]
        wrong += [f"not in the suite: {spec}" for spec in sorted(set(now) - suite)]
    print(*wrong, f"ledger: {len(now)} specs, {len(wrong)} mistakes", sep="\n")
    return 1 if wrong else 0


def make_suite():
    if gobuild.suite_is_built() and images.made():
        return
    with cache.building():
        gobuild.suite()
        images.make()


def suite_specs():
    make_suite()
    return lanes.all_specs()


def part(specs, which):
    number, of = map(int, which.split("/"))
    return specs[number - 1 :: of]


def new_run(name, specs, options):
    return lanes.Run(name, specs, options.lanes, options.serial_clusters, options.fresh, again=options.again)


def run(name, specs, options):
    running = new_run(name, specs, options)
    try:
        return running.go()
    except KeyboardInterrupt:
        ledger.update(lanes.all_specs(), running.verdicts())
        raise


def finish(verdicts):
    regressions = ledger.update(lanes.all_specs(), verdicts)
    report.print_table(verdicts)
    for spec in regressions:
        print(f"REGRESSION, the ledger says that it passes: {spec}\n    {verdicts[spec][2][:300]}")
    return 1 if regressions else 0


VERBS = {
    "build": build,
    "e2e": e2e,
    "conformance": conformance,
    "ledger": passing,
    "smoke": smoke,
    "ecosystem": ecosystem,
    "check": check,
}

if __name__ == "__main__":
    main()
