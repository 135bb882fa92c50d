"""kyverno from its install manifest: it makes its own webhooks, whose configurations follow its policies."""
import json
import os
import subprocess

from harness import gobuild, images, wait

VERSION = "v1.19.1"
DOES = "one policy refuses, one changes and one generates objects; one in CEL becomes an admission policy; reports tell what fails"
OWED = ""
MODULE = f"github.com/kyverno/kyverno@{VERSION}"
# Folder of cmd: name of the image.
PROGRAMS = {
    "kyverno": "kyverno",
    "kyverno-init": "kyvernopre",
    "background-controller": "background-controller",
    "cleanup-controller": "cleanup-controller",
    "reports-controller": "reports-controller",
}
SPACE = "kyverno"


def build():
    archives = []
    for folder, image in PROGRAMS.items():
        program = "kyverno" if folder == "kyverno" else f"kyverno-{image}"
        gobuild.stock(program, MODULE, f"./cmd/{folder}", flags=f"-X github.com/kyverno/kyverno/pkg/version.BuildVersion={VERSION}")
        archives.append(images.of_program(program, f"reg.kyverno.io/kyverno/{image}:latest", User="65534"))
    return archives


def run(c):
    # Deployed before the policies are there: what reports of the background find.
    c.kubectl("create", "namespace", "old")
    c.kubectl("-n", "old", "create", "configmap", "without-owner", "--from-literal=a=b")

    manifest = os.path.join(gobuild.source("kyverno"), "config/install-latest-testing.yaml")
    c.kubectl("create", "-f", manifest)
    for name in ("admission", "background", "cleanup", "reports"):
        c.kubectl("-n", SPACE, "rollout", "status", f"deploy/kyverno-{name}-controller", "--timeout=300s")

    refuses(c)
    changes(c)
    generates(c)
    becomes_an_admission_policy(c)
    reports(c)

    # The webhooks of policies go with them.
    c.kubectl("delete", "clusterpolicies,validatingpolicies", "--all", "--timeout=60s")
    unowned = lambda: c.kubectl("-n", "shop", "create", "configmap", "free", check=False)
    wait.until("nothing is refused any more", unowned, 60)


def apply_policy(c, kind, name, manifest):
    # Its own webhook, which checks policies, takes a moment to be reached.
    applied = lambda: c.kubectl("apply", "-f", "-", stdin=manifest)
    wait.until(f"the policy {name} is accepted", applied, 60)
    c.kubectl("wait", f"{kind}/{name}", "--for=condition=Ready", "--timeout=90s")


def refuses(c):
    apply_policy(c, "clusterpolicy", "owners", OWNERS)
    c.kubectl("create", "namespace", "shop", "--dry-run=server")
    c.kubectl("create", "namespace", "shop")

    message = refusal(c, config_map("unowned"))
    assert 'admission webhook "validate.kyverno.svc-fail" denied the request' in message, message
    assert "a ConfigMap needs a label owner" in message, message
    c.kubectl("apply", "-f", "-", stdin=config_map("owned", owner="alice"))
    changed = refusal(c, config_map("owned"))
    assert "a ConfigMap needs a label owner" in changed, changed


def changes(c):
    apply_policy(c, "clusterpolicy", "marks", MARKS)
    c.kubectl("apply", "-f", "-", stdin=config_map("marked", owner="bob"))
    labels = c.get("configmap", "marked", "-n", "shop")["metadata"]["labels"]
    assert labels == {"owner": "bob", "seen": "marked"}, f"labels: {labels}"


def generates(c):
    apply_policy(c, "clusterpolicy", "closes", CLOSES)
    c.kubectl("create", "namespace", "made")
    rules = lambda: c.get("networkpolicy", "default-deny", "-n", "made")["spec"]["policyTypes"]
    wait.until("the NetworkPolicy of a new namespace", lambda: rules() == ["Ingress", "Egress"], 90)

    # It is made again, since the policy says that it is kept the same.
    uid = c.get("networkpolicy", "default-deny", "-n", "made")["metadata"]["uid"]
    c.kubectl("-n", "made", "delete", "networkpolicy", "default-deny")
    again = lambda: c.get("networkpolicy", "default-deny", "-n", "made")["metadata"]["uid"] != uid
    wait.until("it is generated again", again, 90)


def becomes_an_admission_policy(c):
    c.kubectl("apply", "-f", "-", stdin=REPLICAS)
    made = lambda: c.get("validatingadmissionpolicy", "vpol-few-replicas")["spec"]["validations"]
    wait.until("the ValidatingAdmissionPolicy", made, 90)
    wait.until("its binding", lambda: c.get("validatingadmissionpolicybinding", "vpol-few-replicas-binding"), 60)

    many = ["create", "deployment", "many", "-n", "shop", "--image=coracle.local/echo", "--replicas=9"]
    few = [*many[:2], "few", *many[3:-1], "--replicas=2"]
    denied = lambda: "at most five replicas" in refusal(c, c.kubectl(*many, "--dry-run=client", "-o", "json"))
    wait.until("many replicas are refused", denied, 60)
    c.kubectl(*few)


def reports(c):
    """Of an object that was there before the policy, and of one that was admitted."""

    def results(space, name):
        found = {}
        for report in c.get("policyreports", "-n", space)["items"]:
            if report.get("scope", {}).get("name") == name:
                found |= {result["policy"]: result["result"] for result in report["results"]}
        return found

    wait.until("the report of an old object", lambda: results("old", "without-owner").get("owners") == "fail", 180)
    wait.until("the report of a new one", lambda: results("shop", "owned").get("owners") == "pass", 180)


def refusal(c, manifest):
    """What the server says when it refuses an object."""
    command = c.inside([gobuild.program("kubectl"), "--kubeconfig", c.kubeconfig, "apply", "-f", "-"])
    done = subprocess.run(command, input=manifest, capture_output=True, text=True)
    assert done.returncode != 0, f"it is accepted: {done.stdout}"
    return done.stderr


def config_map(name, **labels):
    metadata = {"name": name, "namespace": "shop", "labels": labels}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})


SELECTED = "match: {any: [{resources: {kinds: [ConfigMap], namespaces: [shop, old]}}]}"
OWNERS = f"""apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: owners}}
spec:
  background: true
  rules:
  - name: owner
    {SELECTED}
    exclude: {{any: [{{resources: {{names: [kube-root-ca.crt]}}}}]}}
    validate:
      failureAction: Enforce
      message: a ConfigMap needs a label owner
      pattern: {{metadata: {{labels: {{owner: "?*"}}}}}}
"""
MARKS = f"""apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: marks}}
spec:
  rules:
  - name: mark
    {SELECTED}
    mutate:
      patchStrategicMerge: {{metadata: {{labels: {{seen: "{{{{request.object.metadata.name}}}}"}}}}}}
"""
CLOSES = """apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: closes}
spec:
  rules:
  - name: close
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      apiVersion: networking.k8s.io/v1
      kind: NetworkPolicy
      name: default-deny
      namespace: "{{request.object.metadata.name}}"
      synchronize: true
      data: {spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}
"""
REPLICAS = """apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: few-replicas}
spec:
  autogen: {validatingAdmissionPolicy: {enabled: true}}
  validationActions: [Deny]
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations:
  - expression: object.spec.replicas <= 5
    message: at most five replicas
"""
