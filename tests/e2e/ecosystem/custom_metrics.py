"""The test adapter of custom-metrics-apiserver from its manifest: three groups of one aggregated server."""
import json
import os

from harness import gobuild, images, wait

VERSION = "v1.36.0"
DOES = "a metric that is written to it is read back in both versions of its API, and lists as discovery says"
OWED = ""
MODULE = f"sigs.k8s.io/custom-metrics-apiserver@{VERSION}"
IMAGE = "REGISTRY/k8s-test-metrics-adapter-amd64:latest"


def build():
    gobuild.stock("custom-metrics-adapter", MODULE, "./test-adapter")
    return [images.of_program("custom-metrics-adapter", IMAGE.replace("REGISTRY", "registry.k8s.io"))]


def run(c):
    manifest = os.path.join(gobuild.source("custom-metrics-adapter"), "test-adapter-deploy/testing-adapter.yaml")
    # The manifest leaves the registry to its reader.
    text = open(manifest).read().replace("image: REGISTRY/", "image: registry.k8s.io/")
    c.kubectl("apply", "-f", "-", stdin=text)
    c.kubectl("-n", "custom-metrics", "rollout", "status", "deploy/custom-metrics-apiserver", "--timeout=120s")
    services = ["v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"]
    for name in services:
        c.kubectl("wait", f"apiservice/{name}", "--for=condition=Available", "--timeout=60s")

    ip = c.pod_ip("custom-metrics", "app=custom-metrics-apiserver")
    path = "namespaces/default/services/kubernetes/test-metric"
    write = f"http://{ip}:8080/write-metrics/{path}"
    c.curl("-X", "POST", "-H", "Content-Type: application/json", "-d", '"300m"', write)
    read = lambda version: json.loads(c.kubectl("get", "--raw", f"/apis/custom.metrics.k8s.io/{version}/{path}"))
    for version in ("v1beta1", "v1beta2"):
        value = lambda: read(version)["items"][0]["value"] == "300m"
        wait.until(f"the metric in {version}", value, 30)

    preferred = json.loads(c.kubectl("get", "--raw", "/apis/custom.metrics.k8s.io"))["preferredVersion"]["version"]
    assert preferred == "v1beta2", f"preferred: {preferred}"
    external = json.loads(c.kubectl("get", "--raw", "/apis/external.metrics.k8s.io/v1beta1"))
    assert external["groupVersion"] == "external.metrics.k8s.io/v1beta1", external
