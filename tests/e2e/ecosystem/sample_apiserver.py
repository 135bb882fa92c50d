"""k8s.io/sample-apiserver with an etcd of its own: a group that another API server serves."""
import json
import os
import subprocess

from harness import gobuild, images, wait

VERSION = gobuild.PARTS
DOES = "flunders are created, watched, shown as tables, sent as protobuf, explained, owned by objects of other groups and deleted with them"
OWED = ""
GROUP = "wardle.example.com"
PATH = f"/apis/{GROUP}/v1alpha1/namespaces/default/flunders"
NAMESPACE = "wardle"


def build():
    gobuild.required("sample-apiserver", f"k8s.io/sample-apiserver@{VERSION}", "k8s.io/sample-apiserver")
    gobuild.required("etcd", "go.etcd.io/etcd/server/v3@v3.6.8", ".", gobuild.ETCD_MAIN)
    return [
        images.of_program("sample-apiserver", "kube-sample-apiserver:latest"),
        images.of_program("etcd", "registry.k8s.io/etcd:v3.6.8"),
    ]


def run(c):
    artifacts = os.path.join(gobuild.module("k8s.io/sample-apiserver", VERSION)[0], "artifacts/example")
    c.kubectl("apply", "-f", os.path.join(artifacts, "ns.yaml"))
    c.kubectl("apply", "-f", artifacts)
    # Its role is older than the policies that its admission waits for.
    policies = "mutatingadmissionpolicies,mutatingadmissionpolicybindings".split(",")
    resources = ",".join(f"{name}.admissionregistration.k8s.io" for name in policies)
    c.kubectl("create", "clusterrole", "wardle-policies", "--verb=get,list,watch", f"--resource={resources}")
    account = f"--serviceaccount={NAMESPACE}:apiserver"
    c.kubectl("create", "clusterrolebinding", "wardle-policies", "--clusterrole=wardle-policies", account)
    c.kubectl("-n", NAMESPACE, "rollout", "status", "deploy/wardle-server", "--timeout=180s")
    c.kubectl("wait", f"apiservice/v1alpha1.{GROUP}", "--for=condition=Available", "--timeout=60s")

    discovered(c)
    ready = lambda: c.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(flunder("none")), check=False)
    wait.until("its admission is ready", ready, 120)
    written_and_watched(c)
    owned(c)
    gone(c)


def discovered(c):
    resources = c.kubectl("api-resources", f"--api-group={GROUP}", "-o", "name").split()
    assert resources == [f"fischers.{GROUP}", f"flunders.{GROUP}"], f"api-resources: {resources}"
    explained = lambda: "FIELD" in c.kubectl("explain", "flunders.spec", check=False)
    wait.until("kubectl explain knows flunders", explained, 90)


def flunder(name, **metadata):
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "Flunder",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"reference": "a", "referenceType": "Flunder"},
    }


def written_and_watched(c):
    command = c.inside([gobuild.program("kubectl"), "--kubeconfig", c.kubeconfig, "get", "--raw", f"{PATH}?watch=1&timeoutSeconds=20"])
    watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    c.kubectl("create", "-f", "-", stdin=json.dumps(flunder("one")))
    c.kubectl("label", "flunder", "one", "colour=red")
    table = c.kubectl("get", "flunders")
    assert table.splitlines()[0].split() == ["NAME", "CREATED", "AT"] or table.startswith("NAME"), table
    c.kubectl("delete", "flunder", "one")
    types = [json.loads(line)["type"] for line in watch.communicate(timeout=60)[0].splitlines()]
    assert types[:3] == ["ADDED", "MODIFIED", "DELETED"], f"the watch saw {types}"

    key, certificate, ca = (os.path.join(c.data, "pki", name) for name in ("admin.key", "admin.crt", "ca.crt"))
    protobuf = c.inside(
        ["curl", "--silent", "--fail", "--cacert", ca, "--cert", certificate, "--key", key]
        + ["-H", "Accept: application/vnd.kubernetes.protobuf", f"https://127.0.0.1:17452{PATH}"]
    )
    assert subprocess.run(protobuf, capture_output=True, check=True).stdout.startswith(b"k8s\0"), "no protobuf"


def owned(c):
    """Owners and what they own are in different groups, both ways."""
    c.kubectl("create", "configmap", "owner")
    owner = c.get("configmap", "owner")["metadata"]
    of_config_map = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    c.kubectl("create", "-f", "-", stdin=json.dumps(flunder("owned", ownerReferences=[of_config_map])))
    c.kubectl("create", "-f", "-", stdin=json.dumps(flunder("owner")))
    uid = c.get("flunder", "owner")["metadata"]["uid"]
    of_flunder = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Flunder", "name": "owner", "uid": uid}
    map_of = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [of_flunder]}}
    c.kubectl("create", "-f", "-", stdin=json.dumps(map_of))

    c.kubectl("delete", "configmap", "owner")
    c.kubectl("delete", "flunder", "owner")
    left = lambda kind: [item["metadata"]["name"] for item in c.get(kind)["items"]]
    wait.until("the flunder of the deleted ConfigMap is gone", lambda: "owned" not in left("flunders"), 90)
    wait.until("the ConfigMap of the deleted flunder is gone", lambda: "owned" not in left("configmaps"), 90)

    c.kubectl("create", "namespace", "sea")
    c.kubectl("-n", "sea", "create", "-f", "-", stdin=json.dumps(flunder("lost")).replace('"default"', '"sea"'))
    c.kubectl("delete", "namespace", "sea", "--timeout=90s")


def gone(c):
    """The server goes away: its paths say so, and nothing else suffers."""
    c.kubectl("-n", NAMESPACE, "scale", "deploy/wardle-server", "--replicas=0")
    c.kubectl("wait", f"apiservice/v1alpha1.{GROUP}", "--for=condition=Available=false", "--timeout=90s")
    refused = c.kubectl("get", "--raw", PATH, check=False)
    assert refused == "", f"a server that is gone answers {refused}"
    c.kubectl("create", "namespace", "after")
    c.kubectl("delete", f"apiservice/v1alpha1.{GROUP}")
    c.kubectl("delete", "namespace", "after", "--timeout=90s")
    assert not c.kubectl("api-resources", f"--api-group={GROUP}", "-o", "name").split(), "its group is still there"
