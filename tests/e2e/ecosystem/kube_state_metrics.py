"""kube-state-metrics from its examples/standard."""
from harness import gobuild, images, wait

VERSION = "v2.20.0"
DOES = "a metric for each object of the API, and one that follows a change"
OWED = ""
MODULE = f"k8s.io/kube-state-metrics/v2@{VERSION}"


def build():
    gobuild.stock("kube-state-metrics", MODULE, ".")
    name = f"registry.k8s.io/kube-state-metrics/kube-state-metrics:{VERSION}"
    return [images.of_program("kube-state-metrics", name, User="65534")]


def run(c):
    c.kubectl("apply", "-k", f"{gobuild.source('kube-state-metrics')}/examples/standard")
    c.kubectl("-n", "kube-system", "rollout", "status", "deploy/kube-state-metrics", "--timeout=120s")
    ip = c.pod_ip("kube-system", "app.kubernetes.io/name=kube-state-metrics")
    metrics = lambda: c.curl(f"http://{ip}:8080/metrics").splitlines()

    kinds = {"kube_namespace_created": "namespaces", "kube_service_info": "services", "kube_pod_info": "pods"}
    for metric, kind in kinds.items():
        names = {(item["metadata"].get("namespace"), item["metadata"]["name"]) for item in c.get(kind, "-A")["items"]}
        count = lambda: sum(line.startswith(metric + "{") for line in metrics())
        wait.until(f"{metric} for {len(names)} {kind}", lambda: count() == len(names), 60)

    c.kubectl("create", "deployment", "web", "--image=coracle.local/echo", "--replicas=2")
    sample = 'kube_deployment_spec_replicas{namespace="default",deployment="web"} '
    wait.until("the metric of a new Deployment", lambda: sample + "2" in metrics(), 60)
    c.kubectl("scale", "deployment", "web", "--replicas=3")
    wait.until("the metric of a changed Deployment", lambda: sample + "3" in metrics(), 60)
