"""A cluster of one node in a network namespace without a way out: no packet of it leaves the machine.

`nsenter --net` and not `ip netns exec`, which mounts a new /sys and hides the cgroups. The node's interface is a bridge,
because not every kernel has dummy links.
"""
import json
import os
import shutil
import signal
import subprocess

from . import cache, gobuild, origin, wait

PORT = 17452
ADDRESS, GATEWAY = "198.51.100.10", "198.51.100.1"


class Cluster:
    def __init__(self, name, images=(), shared_mounts=False, pulled=()):
        """`images`: archives to preload. `shared_mounts`: the server's mounts are shared ones, as systemd makes them; in a
        container they are not, and volumes with mount propagation are refused. `pulled`: archives that can also be pulled
        from registry.k8s.io; the mounts are shared then."""
        self.name, self.images, self.shared_mounts = name, list(images), shared_mounts
        self.namespace = f"coracle-{cache.IDENTITY}-{name}"
        self.folder = cache.folder("clusters", name)
        self.data = os.path.join(self.folder, "data")
        self.kubeconfig = os.path.join(self.data, "admin.kubeconfig")
        self.server = cache.server()
        self.origin = origin.Origin(os.path.join(self.folder, "origin"), pulled) if pulled else None
        self.process = None
        self.address = ADDRESS

    def __enter__(self):
        self.down()  # what a run that was killed has left
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def inside(self, command):
        return ["nsenter", f"--net=/run/netns/{self.namespace}", *command]

    def kubectl(self, *arguments, stdin=None, check=True):
        command = self.inside([gobuild.program("kubectl"), "--kubeconfig", self.kubeconfig, *arguments])
        done = subprocess.run(command, input=stdin, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def pod_ip(self, namespace, labels):
        """The address of the one pod with these labels."""
        pods = self.get("pods", "-n", namespace, "-l", labels)["items"]
        if len(pods) != 1:
            raise RuntimeError(f"{len(pods)} pods in {namespace} with {labels}")
        return pods[0]["status"]["podIP"]

    def curl(self, *arguments):
        return cache.run(self.inside(["curl", "--silent", "--show-error", "--fail", "--max-time", "10", *arguments]))

    def up(self):
        remove(self.folder)
        for command in (
            f"netns add {self.namespace}",
            f"-n {self.namespace} link set lo up",
            f"-n {self.namespace} link add eth0 type bridge",
            f"-n {self.namespace} addr add {ADDRESS}/24 dev eth0",
            f"-n {self.namespace} link set eth0 up",
            f"-n {self.namespace} route add default via {GATEWAY}",
        ):
            cache.run(["ip", *command.split()])
        preload = os.path.join(self.data, "preload")
        os.makedirs(preload, exist_ok=True)
        for image in self.images:
            os.link(image, os.path.join(preload, os.path.basename(image)))
        self.start()

    def start(self):
        log = open(os.path.join(self.folder, "server.log"), "w")
        command = [self.server, "server", "--data-dir", self.data, "--https-port", str(PORT), "--node-name", "node-1"]
        if self.origin:
            self.origin.start(self.inside)
            command = self.origin.command(command)
        elif self.shared_mounts:
            command = ["unshare", "--mount", "--propagation", "shared", *command]
        self.process = subprocess.Popen(
            self.inside(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        wait.until(f"node of {self.name} Ready", self._ready, 240)
        dns = lambda: self.kubectl("-n", "kube-system", "rollout", "status", "ds/coracle-dns", "--timeout=120s")
        wait.until(f"DNS of {self.name} available", dns, 180)

    def _ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server has ended: see {self.folder}/server.log")
        return " Ready " in self.kubectl("get", "nodes", "--no-headers")

    def down(self):
        """Ends pods and server, and removes all they made."""
        if self.origin:
            self.origin.end()
        if os.path.exists(f"/run/netns/{self.namespace}"):
            for command in (["stop", "--grace-period", "2"], ["reset", "--yes"]):
                full = self.inside([self.server, *command, "--data-dir", self.data])
                subprocess.run(full, capture_output=True, timeout=300)
                self._end_server()
            delete = lambda: cache.run(["ip", "netns", "del", self.namespace]) or True
            wait.until(f"the network namespace of {self.name} is removed", delete, 20)
        remove(self.data)

    def _end_server(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()


def remove(folder):
    """Removes a folder, but never what is mounted below it: that may be a folder of this machine."""
    mounted = [line.split()[4] for line in open("/proc/self/mountinfo")]
    if left := [place for place in mounted if place.startswith(folder + "/")]:
        raise cache.Failed(f"{folder} is not removed, because mounts are left below it: {' '.join(left[:5])}")
    shutil.rmtree(folder, ignore_errors=True)
