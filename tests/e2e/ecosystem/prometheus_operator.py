"""prometheus-operator from its bundle: definitions too large for `kubectl apply`, and a StatefulSet that follows an object."""
import json
import os
import subprocess

from harness import cache, gobuild, image, images, wait

VERSION = "v0.93.1"
DOES = "a Prometheus finds its targets by ServiceMonitors, evaluates a rule and is scaled; a wrong object is refused by CEL"
OWED = ""
PATH = "github.com/prometheus-operator/prometheus-operator"
MODULE = f"{PATH}@{VERSION}"
NESTED = tuple(f"{PATH}/{folder}@{VERSION}:{folder}" for folder in ("pkg/apis/monitoring", "pkg/client"))
PROGRAMS = {"prometheus-operator": "./cmd/operator", "prometheus-config-reloader": "./cmd/prometheus-config-reloader"}
PROMETHEUS = "v3.13.5"
PROMETHEUS_MODULE = "github.com/prometheus/prometheus@v0.313.5"


def build():
    for program, package in PROGRAMS.items():
        gobuild.stock(program, MODULE, package, nested=NESTED)
    # Of the many ways to find targets, the one that is asked for.
    gobuild.stock("prometheus", PROMETHEUS_MODULE, "./cmd/prometheus", tags="remove_all_sd,enable_kubernetes_sd")
    archives = [packed(program, f"quay.io/prometheus-operator/{program}:{VERSION}") for program in PROGRAMS]
    return [*archives, packed("prometheus", f"quay.io/prometheus/prometheus:{PROMETHEUS}")]


def packed(program, name):
    """The program in /bin: containers name it by its path, or mount a volume where it would be otherwise."""
    layer = images.program_layer(f"image-{program}", {f"bin/{program}": program})()
    images.add_system_files(layer)
    out = cache.path("images", "programs", f"{program}.tar")
    return image.pack(out, name, [layer], Entrypoint=[f"/bin/{program}"], User="65534")


def run(c):
    source = gobuild.source("prometheus-operator")
    bundle = os.path.join(source, "bundle.yaml")
    c.kubectl("apply", "--server-side", "-f", bundle)
    c.kubectl("rollout", "status", "deploy/prometheus-operator", "--timeout=180s")
    rights = os.path.join(source, "example/rbac/prometheus")
    for name in ("service-account", "cluster-role", "cluster-role-binding"):
        c.kubectl("apply", "-f", f"{rights}/prometheus-{name}.yaml")
    c.kubectl("apply", "-f", "-", stdin=OBJECTS)

    c.kubectl("wait", "prometheus/web", "--for=condition=Available", "--timeout=240s")
    wait.until("the targets are up", lambda: up(c) == {"prometheus-operator": 1, "prometheus-operated": 1}, 180)
    wait.until("the rule is evaluated", lambda: query(c, "targets:up:sum") == [2.0], 120)

    # The operator keeps the addresses of kubelets, with the old Endpoints.
    addresses = lambda: c.get("endpoints", "kubelet", "-n", "kube-system")["subsets"][0]["addresses"]
    wait.until("endpoints of kubelets", lambda: [it["ip"] for it in addresses()] == [c.address], 120)

    c.kubectl("patch", "prometheus/web", "--type=merge", "--patch", '{"spec":{"replicas":2}}')
    ready = lambda: c.get("statefulset", "prometheus-web")["status"].get("readyReplicas") == 2
    wait.until("two replicas", ready, 180)
    wait.until("both are targets", lambda: up(c).get("prometheus-operated") == 2, 120)

    command = c.inside([gobuild.program("kubectl"), "--kubeconfig", c.kubeconfig, "apply", "-f", "-"])
    done = subprocess.run(command, input=WRONG, capture_output=True, text=True)
    why = "at most one of basicAuth, authorization, or oauth2 can be configured"
    assert done.returncode != 0 and why in done.stderr, done.stderr

    c.kubectl("delete", "prometheus/web")
    left = lambda: c.kubectl("get", "statefulset,pods", "-l", "operator.prometheus.io/name=web", "-o", "name")
    wait.until("nothing of it is left", lambda: not left(), 120)


def query(c, text):
    """The values of a query to the first replica."""
    ip = c.get("pod", "prometheus-web-0")["status"]["podIP"]
    answer = json.loads(c.curl("--get", "--data-urlencode", f"query={text}", f"http://{ip}:9090/api/v1/query"))
    return [float(result["value"][1]) for result in answer["data"]["result"]]


def up(c):
    """How many targets of each Service are up."""
    ip = c.get("pod", "prometheus-web-0")["status"]["podIP"]
    targets = json.loads(c.curl(f"http://{ip}:9090/api/v1/targets"))["data"]["activeTargets"]
    counts = {}
    for target in targets:
        if target["health"] == "up":
            name = target["labels"]["service"]
            counts[name] = counts.get(name, 0) + 1
    return counts


OBJECTS = f"""apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {{name: web}}
spec:
  version: {PROMETHEUS}
  replicas: 1
  serviceAccountName: prometheus
  serviceMonitorSelector: {{matchLabels: {{team: web}}}}
  ruleSelector: {{matchLabels: {{team: web}}}}
  scrapeInterval: 5s
  evaluationInterval: 5s
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {{name: operator, labels: {{team: web}}}}
spec:
  selector: {{matchLabels: {{app.kubernetes.io/name: prometheus-operator}}}}
  endpoints: [{{port: http}}]
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {{name: itself, labels: {{team: web}}}}
spec:
  selector: {{matchLabels: {{operated-prometheus: "true"}}}}
  endpoints: [{{port: web}}]
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {{name: sum, labels: {{team: web}}}}
spec:
  groups: [{{name: targets, rules: [{{record: "targets:up:sum", expr: "sum(up)"}}]}}]
"""
WRONG = """apiVersion: monitoring.coreos.com/v1alpha1
kind: ScrapeConfig
metadata: {name: wrong}
spec: {basicAuth: {}, authorization: {}, staticConfigs: [{targets: ["127.0.0.1:1"]}]}
"""
