"""metrics-server from its own chart, behind the API server's aggregation."""
import os

from harness import cache, gobuild, images, wait

VERSION = "v0.9.0"
DOES = "`kubectl top` shows a node and a pod, and the CPU of a pod that is busy"
OWED = ""
MODULE = f"sigs.k8s.io/metrics-server@{VERSION}"


def build():
    gobuild.stock("metrics-server", MODULE, "./cmd/metrics-server")
    gobuild.stock("helm", "helm.sh/helm/v3@v3.22.0", "./cmd/helm")
    name = f"registry.k8s.io/metrics-server/metrics-server:{VERSION}"
    images.make()
    return [images.of_program("metrics-server", name, User="65534"), images.archive("busybox")]


def run(c):
    chart = os.path.join(gobuild.source("metrics-server"), "charts/metrics-server")
    environment = {**os.environ, "KUBECONFIG": c.kubeconfig, "HOME": c.folder}
    install = [gobuild.program("helm"), "install", "metrics-server", chart, "-n", "kube-system", "--set", f"image.tag={VERSION}"]
    cache.run(c.inside([*install, "--wait", "--timeout=3m"]), cwd=c.folder, env=environment)
    c.kubectl("wait", "apiservice/v1beta1.metrics.k8s.io", "--for=condition=Available", "--timeout=60s")
    resources = c.kubectl("api-resources", "--api-group=metrics.k8s.io", "-o", "name").split()
    assert resources == ["nodes.metrics.k8s.io", "pods.metrics.k8s.io"], f"api-resources: {resources}"

    busy = ["--", "sh", "-c", "while :; do :; done"]
    c.kubectl("run", "busy", f"--image={images.REGISTRY}/busybox:1.37.0-1", "--command", *busy)
    rows = lambda *of: [row.split() for row in c.kubectl("top", *of, "--no-headers").splitlines()]
    cores = lambda row: int(row[1].removesuffix("m"))

    top = lambda: wait_free(lambda: rows("node")[0])
    wait.until("usage of the node", lambda: top() and top()[0] == "node-1" and cores(top()) > 0, 120)
    pods = lambda: wait_free(lambda: {row[0]: row for row in rows("pod")}) or {}
    wait.until("CPU of the busy pod", lambda: "busy" in pods() and cores(pods()["busy"]) > 50, 120)
    system = {row[0] for row in rows("pod", "-n", "kube-system")}
    assert any(name.startswith("metrics-server-") for name in system), f"pods of kube-system: {system}"


def wait_free(ask):
    """What `ask` answers; None while metrics are not there yet, which kubectl takes for an error."""
    try:
        return ask()
    except (RuntimeError, IndexError):
        return None
