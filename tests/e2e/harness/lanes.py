"""The suite in parallel lanes, resumable.

Specs are run in batches, each one process of e2e.test; a lane takes the next batch when it has done one. Verdicts are
appended to results.tsv as batches end, so a run that was ended continues where it was. Serial and disruptive specs have
a cluster, and a lane, of their own.
"""
import glob
import os
import queue
import re
import signal
import subprocess
import threading
import time

from . import cache, cluster, gobuild, images, verdicts

SERIAL = re.compile(r"\[(Serial|Disruptive)\]")
BATCH = 10
BATCH_TIMEOUT = "25m"
# Specs that wait without a limit of their own, where what they wait for does not come: each alone, for so long.
UNBOUNDED = re.compile(r"(Validating|Mutating)AdmissionPolicy")
UNBOUNDED_TIMEOUT = "4m"
# Specs with a long floor start first, each alone.
SLOW = re.compile(
    "chunking|should not schedule jobs when suspended|conflict between pods with same hostPort|should \\*not\\* be restarted"
    "|same hostPort|remove from active list|fallback to local terminating|have ready and unready"
    "|Should fail non-optional|back-off at MaxContainerBackOff|auto-restart back-off",
    re.I,
)
ESCAPE = re.compile(r"([.^$*+?()\[\]{}|\\])")


def all_specs():
    """The name of every spec of the suite, sorted; found by a dry run once."""
    path = cache.path("specs.txt")
    if not os.path.exists(path):
        report = cache.path("dry-run.json")
        flags = ["--provider=skeleton", "--kubeconfig=/dev/null", "--ginkgo.dry-run", f"--ginkgo.json-report={report}"]
        cache.run([gobuild.program("e2e.test"), *flags, "--ginkgo.silence-skips"])
        names = sorted(verdicts.name_of(spec) for spec in verdicts.specs_of(report))
        with open(path + ".new", "w") as file:
            file.writelines(f"{name}\n" for name in names)
        os.rename(path + ".new", path)
    return open(path).read().splitlines()


class Run:
    def __init__(self, name, specs, lanes=4, serial_clusters=1, fresh=False, batch=BATCH, again=False):
        """`fresh`: forgets what an earlier run found. `again`: runs once more what failed in it."""
        self.claim = cache.claim(name)
        self.folder = cache.fresh_folder("runs", name) if fresh else cache.folder("runs", name)
        self.results = os.path.join(self.folder, "results.tsv")
        self.lock, self.stopping, self.running = threading.Lock(), threading.Event(), set()
        self.name, self.count, self.specs = name, 0, list(specs)
        self.lanes, self.serial_clusters, self.batch, self.again = lanes, serial_clusters, batch, again

    def verdicts(self):
        """{spec: (verdict, seconds, message)}, the last of each."""
        found = {}
        if os.path.exists(self.results):
            for line in open(self.results):
                name, verdict, seconds, message = line.rstrip("\n").split("\t")
                found[name] = (verdict, float(seconds), message)
        return found

    def go(self):
        done = {spec for spec, row in self.verdicts().items() if not (self.again and row[0] == "failed")}
        left = [spec for spec in self.specs if spec not in done]
        print(f"{len(self.specs)} specs, {len(self.specs) - len(left)} done before; logs in {self.folder}", flush=True)
        serial = batches([spec for spec in left if SERIAL.search(spec)], self.batch)
        parallel = batches([spec for spec in left if not SERIAL.search(spec)], self.batch)
        threads = []
        if not parallel.empty():
            threads.append(threading.Thread(target=self._cluster, args=("parallel", parallel, self.lanes)))
        for number in range(self.serial_clusters if not serial.empty() else 0):
            threads.append(threading.Thread(target=self._cluster, args=(f"serial{number}", serial, 1)))

        signal.signal(signal.SIGTERM, signal.default_int_handler)
        started = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self._stop()
            for thread in threads:
                thread.join()
            raise
        finally:
            with open(os.path.join(self.folder, "seconds"), "a") as file:
                file.write(f"{time.monotonic() - started:.0f}\n")
        return self.verdicts()

    def seconds(self):
        """How long the run took, with what was run of it before it was continued."""
        return sum(map(int, open(os.path.join(self.folder, "seconds"))))

    def _stop(self):
        """Ends the specs that run; the clusters go with them."""
        print("stopping", flush=True)
        self.stopping.set()
        with self.lock:
            for process in self.running:
                process.kill()

    def _cluster(self, name, work, lanes):
        with cluster.Cluster(f"{self.name}-{name}", images.archives(), pulled=images.pulled()) as running:
            threads = [threading.Thread(target=self._lane, args=(running, work)) for _ in range(lanes)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def _lane(self, running, work):
        while not self.stopping.is_set():
            try:
                batch = work.get_nowait()
            except queue.Empty:
                return
            left = self._batch(running, batch)
            if self.stopping.is_set():
                return
            # Without a verdict: the batch was cut short by its timeout. One by one, and alone at fault.
            for spec in left if len(batch) > 1 else []:
                work.put([spec])
            if left and len(batch) == 1:
                self._record([(batch[0], "failed", 0.0, "no verdict: the suite ended before the spec did")])

    def _batch(self, running, batch):
        with self.lock:
            self.count += 1
            out = os.path.join(self.folder, f"{int(time.time())}-{self.count:04}")
        os.makedirs(out)
        report = os.path.join(out, "report.json")
        with open(os.path.join(out, "e2e.log"), "w") as log:
            environment = {**os.environ, "KUBECONFIG": running.kubeconfig, "HOME": out}
            environment["PATH"] = os.path.dirname(gobuild.program("kubectl")) + ":" + os.environ["PATH"]
            command = running.inside([gobuild.program("e2e.test"), *flags(running, out, report, batch)])
            options = {"stdout": log, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "env": environment}
            with self.lock:
                process = subprocess.Popen(command, **options)
                self.running.add(process)
            process.wait()
            self.running.discard(process)
        found = list(verdicts.read(report)) if os.path.exists(report) else []
        # Reports name all specs of the suite, some 14 MB each time.
        for path in [report, *glob.glob(f"{out}/artifacts/*")]:
            if os.path.isfile(path):
                os.remove(path)
        found = [row for row in found if row[0] in batch]
        self._record(found)
        return [spec for spec in batch if spec not in {row[0] for row in found}]

    def _record(self, rows):
        with self.lock, open(self.results, "a") as file:
            for name, verdict, seconds, message in rows:
                file.write(f"{name}\t{verdict}\t{seconds:.1f}\t{message}\n")
                print(f"{verdict:7} {seconds:5.0f} s  {name}", flush=True)


def batches(specs, size=BATCH):
    work = queue.Queue()
    alone = [spec for spec in specs if SLOW.search(spec) or UNBOUNDED.search(spec)]
    for spec in alone:
        work.put([spec])
    rest = [spec for spec in specs if spec not in set(alone)]
    for start in range(0, len(rest), size):
        work.put(rest[start : start + size])
    return work


def flags(running, out, report, batch):
    focus = "|".join(ESCAPE.sub(r"\\\1", spec) + "$" for spec in batch)
    return [
        "--provider=skeleton",
        f"--kubeconfig={running.kubeconfig}",
        f"--kubectl-path={gobuild.program('kubectl')}",
        f"--repo-root={gobuild.kubernetes()}",
        f"--ginkgo.focus={focus}",
        "--ginkgo.v",
        "--ginkgo.no-color",
        f"--ginkgo.timeout={UNBOUNDED_TIMEOUT if UNBOUNDED.search(batch[0]) else BATCH_TIMEOUT}",
        "--ginkgo.poll-progress-after=120s",
        "--ginkgo.poll-progress-interval=60s",
        "--ginkgo.silence-skips",
        f"--ginkgo.json-report={report}",
        "--ginkgo.seed=1",
        f"--report-dir={out}/artifacts",
        "--num-nodes=1",
        "--allowed-not-ready-nodes=0",
        "--disable-log-dump",
        "--dump-logs-on-failure=true",
        f"--kubelet-root-dir={running.data}/kubelet",
        "--node-schedulable-timeout=2m",
        "--system-pods-startup-timeout=2m",
        "--system-daemonsets-startup-timeout=1m",
        f"--e2e-output-dir={out}",
    ]
