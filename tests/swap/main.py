#!/usr/bin/env python3
"""Our programs in upstream's places, and upstream's in ours, with the same command lines.

  main.py ours-on-upstream      our controller manager, scheduler and proxy; upstream's API server and etcd
  main.py upstream-on-ours      upstream's controller manager, scheduler and proxy; our API server and etcd
  main.py kubeadm               our programs with what kubeadm writes: certificates, static pods, add-ons
  main.py kubelet               upstream's kubelet, with a certificate that it signed itself, on our server
  main.py upstream, main.py ours   one side alone, to see what a check is worth
  main.py                       the first four

Options: --only RE: checks by name. --keep: the folder with the logs stays. The binary under test is CORACLE, or the
newest build of this checkout; upstream's programs are those of scripts/build-upstream.sh and scripts/build-etcd.sh.
Everything runs in a network and a mount namespace of its own. Root is needed.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
INSIDE = "CORACLE_SWAP_INSIDE"

import checks  # noqa: E402
import kubeadm  # noqa: E402
import stock_kubelet  # noqa: E402
from plane import ADDRESS, ROOT, Failed, Plane  # noqa: E402

PARTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"]
SERVER = PARTS[:2]
# Which parts are upstream's.
SWAPS = {
    "upstream-on-ours": lambda part: part not in SERVER,
    "ours-on-upstream": lambda part: part in SERVER,
    "upstream": lambda part: True,
    "ours": lambda part: False,
}
WAYS = [*SWAPS, "kubeadm", "kubelet"]
DEFAULT = ["upstream-on-ours", "ours-on-upstream", "kubeadm", "kubelet"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", default=DEFAULT)
    parser.add_argument("--only", default="", help="regular expression: only these checks")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    parser.add_argument("--workers", type=int, default=6, help="checks at a time (6)")
    options = parser.parse_args()
    unknown = [way for way in options.ways if way not in WAYS]
    if unknown:
        parser.error(f"{', '.join(unknown)}: expected {', '.join(WAYS)}")

    if INSIDE not in os.environ:
        inside = dict(os.environ, **{INSIDE: "1"})
        os.execvpe("unshare", ["unshare", "--net", "--mount", sys.executable] + sys.argv, inside)
    for command in ["ip link set lo up", "ip link add swap0 type bridge", f"ip addr add {ADDRESS}/24 dev swap0",
                    "ip link set swap0 up", "ip route add default dev swap0"]:
        subprocess.run(command.split(), check=True)

    failed = 0
    for way in options.ways:
        failed += run(way, options)
    sys.exit(1 if failed else 0)


def run(way, options):
    plane, possible, workers = make(way, options)
    chosen = [check for check in possible if re.search(options.only, check.__name__)]
    print(f"{way}: {len(chosen)} checks", flush=True)
    failures = []
    try:
        plane.start()
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            running = {pool.submit(timed, check, plane): check for check in chosen if not alone(check)}
            for done in concurrent.futures.as_completed(running):
                report(running[done], done.result(), failures)
        for check in filter(alone, chosen):
            report(check, timed(check, plane), failures)
        plane.assert_running()
    finally:
        plane.stop()
    print(f"{way}: {len(chosen) - len(failures)} of {len(chosen)} passed", flush=True)
    return len(failures)


def make(way, options):
    """What a way starts, its checks, and how many of them may run at a time."""
    common = {"coracle": coracle(), "kubectl": kubectl(), "keep": options.keep}
    match way:
        case "kubeadm":
            programs = {part: ours(part) for part in PARTS}
            plane = kubeadm.Kubeadm(upstream("kubeadm"), programs=programs, **common)
            return plane, kubeadm.CHECKS, 1
        case "kubelet":
            plane = stock_kubelet.StockKubelet(upstream("kubelet"), programs={}, **common)
            return plane, stock_kubelet.CHECKS, 1
        case _:
            is_upstream = SWAPS[way]
            programs = {part: [upstream(part)] if is_upstream(part) else ours(part) for part in PARTS}
            return Plane(programs=programs, **common), checks.ALL, options.workers


def alone(check):
    """Whether a check changes what others need, and so runs after them."""
    return getattr(check, "alone", False)


def timed(check, plane):
    began = time.monotonic()
    try:
        check(plane)
        return "", time.monotonic() - began
    except Failed as why:
        return str(why), time.monotonic() - began


def report(check, result, failures):
    why, took = result
    print(f"  {'FAILED' if why else 'passed'} {check.__name__} ({took:.1f} s)" + (f": {why}" if why else ""), flush=True)
    if why:
        failures.append(check)


def ours(part):
    return [coracle(), part]


def upstream(part):
    tools = os.path.join(target(), "test-tools")
    path = os.path.join(tools, "etcd36") if part == "etcd" else os.path.join(tools, "upstream", part)
    if not os.path.exists(path):
        sys.exit(f"swap: {path} is missing: run scripts/build-upstream.sh and scripts/build-etcd.sh")
    return path


def target():
    return os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))


def kubectl():
    return os.path.join(target(), "test-tools", "kubectl")


def coracle():
    if os.environ.get("CORACLE"):
        return os.environ["CORACLE"]
    built = glob.glob(os.path.join(target(), "*", "coracle"))
    if not built:
        sys.exit("swap: there is no build of coracle")
    return max(built, key=os.path.getmtime)


if __name__ == "__main__":
    main()
