"""What the checks do: the work of controllers, scheduler and proxy, seen through the API as users see it.

Each check has a namespace of its own. `alone` marks those that change what all share.
"""
import base64
import json
import os
import subprocess

from plane import NODES, Failed, arguments, expect


def alone(check):
    check.alone = True
    return check


def template(labels="app: web", extra="", annotations="", image="one"):
    """The template of pods, on one line."""
    return (f"{{metadata: {{labels: {{{labels}}}, annotations: {{{annotations}}}}}, "
            f"spec: {{containers: [{{name: c, image: {image}}}]{extra}}}}}")


def deployment(name="web", replicas=3, more="", **of_pods):
    return (f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, spec: {{replicas: {replicas}, "
            f"selector: {{matchLabels: {{app: web}}}}, template: {template(**of_pods)}{more}}}}}")


def active(pods):
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]
            and pod["status"].get("phase") not in ("Succeeded", "Failed")]


def images(plane, namespace, selector="app=web"):
    pods = active(plane.pods(namespace, selector))
    return sorted({container["image"] for pod in pods for container in pod["spec"]["containers"]})


# Namespaces and accounts

def a_new_namespace_has_an_account_and_the_root_ca(plane):
    own = plane.namespace()
    plane.until("the CA is published", lambda: "BEGIN CERTIFICATE" in plane.get(
        "configmap", "kube-root-ca.crt", r"{.data.ca\.crt}", own))


def a_deleted_account_and_ca_come_back(plane):
    own = plane.namespace()
    plane.until("the CA is published", lambda: plane.get("configmap", "kube-root-ca.crt", "{.metadata.uid}", own))
    before = plane.get("serviceaccount", "default", "{.metadata.uid}", own)
    plane.kubectl("-n", own, "delete", "serviceaccount/default", "configmap/kube-root-ca.crt")
    plane.until("they are back", lambda: plane.get("serviceaccount", "default", "{.metadata.uid}", own) not in ("", before)
                and plane.get("configmap", "kube-root-ca.crt", "{.metadata.uid}", own))


def a_token_secret_gets_its_token(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: kept, "
                     "annotations: {kubernetes.io/service-account.name: default}}}")
    plane.until("it has a token", lambda: plane.get("secret", "kept", "{.data.token}", own))
    token = base64.b64decode(plane.get("secret", "kept", "{.data.token}", own)).decode()
    server = json.load(open(plane.file("admin.conf")))["clusters"][0]["cluster"]
    who = subprocess.run([plane.kubectl_path, "--server", server["server"], "--certificate-authority",
                          server["certificate-authority"], "--token", token, "auth", "whoami", "-o", "name"],
                         capture_output=True, text=True, env={"HOME": plane.folder, "PATH": os.environ["PATH"]})
    if who.returncode:
        raise Failed(f"the token is not accepted: {who.stderr}")


def a_deleted_namespace_is_emptied(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.apply(own, "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}")
    plane.rollout(own, "deployment/web")
    plane.kubectl("delete", "namespace", own, "--timeout=180s")


def a_namespace_waits_for_finalizers_and_says_so(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [swap.example/held]}}")
    plane.kubectl("delete", "namespace", own, "--wait=false")
    path = '{.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].message}'
    text = "Some content in the namespace has finalizers remaining: swap.example/held in 1 resource instances"
    plane.until("it says what holds it", lambda: plane.get("namespace", own, path) == text)
    plane.kubectl("-n", own, "patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    plane.kubectl("wait", "--for=delete", f"namespace/{own}", "--timeout=180s")


DEFINITION = """{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {plural}.swap.example}},
spec: {{group: swap.example, scope: Namespaced, names: {{plural: {plural}, kind: {kind}}}, versions: [{{name: v1, served: true,
storage: true, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}]}}}}"""


def define(plane, plural, kind):
    plane.apply("default", DEFINITION.format(plural=plural, kind=kind))
    plane.kubectl("wait", "--for=condition=Established", f"crd/{plural}.swap.example", "--timeout=60s")


def a_namespace_with_custom_resources_is_emptied(plane):
    own = plane.namespace()
    define(plane, "ships", "Ship")
    plane.apply(own, "{apiVersion: swap.example/v1, kind: Ship, metadata: {name: one}}")
    plane.kubectl("delete", "namespace", own, "--timeout=180s")
    plane.kubectl("delete", "crd", "ships.swap.example", "--timeout=60s")


def a_deleted_definition_takes_its_objects_along(plane):
    own = plane.namespace()
    define(plane, "boats", "Boat")
    plane.apply(own, "{apiVersion: swap.example/v1, kind: Boat, metadata: {name: one}}")
    plane.kubectl("delete", "crd", "boats.swap.example", "--timeout=120s")
    plane.until("the kind is gone", lambda: "boats" not in plane.kubectl("api-resources", "--api-group=swap.example", "-o", "name"))


# Deployments and ReplicaSets

def a_deployment_becomes_available(plane):
    own = plane.namespace()
    plane.apply(own, deployment(replicas=6))
    plane.wait(own, "deployment/web", "condition=Available")
    plane.until("all pods are available", lambda: plane.get("deployment", "web", "{.status.availableReplicas}", own) == "6")


def a_deployment_rolls_out_and_back(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.rollout(own, "deployment/web")
    plane.kubectl("-n", own, "set", "image", "deployment/web", "c=two")
    plane.rollout(own, "deployment/web")
    plane.until("the new image runs", lambda: images(plane, own) == ["two"])
    plane.kubectl("-n", own, "rollout", "undo", "deployment/web")
    plane.rollout(own, "deployment/web")
    plane.until("the old image runs", lambda: images(plane, own) == ["one"])
    expect(plane.get("deployment", "web", r"{.metadata.annotations.deployment\.kubernetes\.io/revision}", own), "3", "revision")


def a_deployment_is_scaled(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.rollout(own, "deployment/web")
    for replicas in [7, 2, 0]:
        plane.kubectl("-n", own, "scale", "deployment/web", f"--replicas={replicas}")
        plane.until(f"{replicas} pods", lambda replicas=replicas: len(active(plane.pods(own))) == replicas)


def a_paused_deployment_waits(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.rollout(own, "deployment/web")
    plane.kubectl("-n", own, "rollout", "pause", "deployment/web")
    plane.kubectl("-n", own, "set", "image", "deployment/web", "c=two")
    plane.stays("the old image runs", lambda: images(plane, own) == ["one"])
    plane.kubectl("-n", own, "rollout", "resume", "deployment/web")
    plane.until("the new image runs", lambda: images(plane, own) == ["two"])


def a_recreated_deployment_never_has_both_images(plane):
    own = plane.namespace()
    plane.apply(own, deployment(more=", strategy: {type: Recreate}"))
    plane.rollout(own, "deployment/web")
    plane.kubectl("-n", own, "set", "image", "deployment/web", "c=two")
    mixed = []

    def done():
        found = images(plane, own)
        mixed.extend([found] if len(found) > 1 else [])
        return found == ["two"]
    plane.until("the new image runs", done)
    expect(mixed, [], "both images at once")


def a_deployment_that_cannot_progress_says_so(plane):
    own = plane.namespace()
    hangs = "coracle.local/simulate: hang"
    plane.apply(own, deployment(more=", progressDeadlineSeconds: 3", annotations=hangs))
    path = '{.status.conditions[?(@.type=="Progressing")].reason}'
    plane.until("its deadline passes", lambda: plane.get("deployment", "web", path, own) == "ProgressDeadlineExceeded")


def old_replica_sets_are_kept_as_the_limit_says(plane):
    own = plane.namespace()
    plane.apply(own, deployment(replicas=1, more=", revisionHistoryLimit: 1"))
    for image in ["two", "three", "four"]:
        plane.rollout(own, "deployment/web")
        plane.kubectl("-n", own, "set", "image", "deployment/web", f"c={image}")
    plane.rollout(own, "deployment/web")
    plane.until("one old set is left", lambda: len(plane.names("replicasets", own)) == 2)


def a_replica_set_adopts_and_releases_pods(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: Pod, metadata: {name: orphan, labels: {app: web}}, spec: {containers: "
                     "[{name: c, image: one}]}}")
    plane.apply(own, "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: set}, spec: {replicas: 2, selector: "
                     f"{{matchLabels: {{app: web}}}}, template: {template()}}}}}")
    plane.until("it has two pods", lambda: len(active(plane.pods(own))) == 2)
    plane.until("the orphan is adopted", lambda: plane.get("pod", "orphan", "{.metadata.ownerReferences[0].name}", own) == "set")
    plane.kubectl("-n", own, "label", "pod", "orphan", "app=other", "--overwrite")
    plane.until("it is released and replaced", lambda: len(active(plane.pods(own, "app=web"))) == 2
                and not plane.get("pod", "orphan", "{.metadata.ownerReferences}", own))


def a_replication_controller_replaces_pods(plane):
    own = plane.namespace()
    plane.apply(own, f"{{apiVersion: v1, kind: ReplicationController, metadata: {{name: set}}, spec: {{replicas: 2, "
                     f"selector: {{app: web}}, template: {template()}}}}}")
    plane.until("it has two pods", lambda: plane.get("rc", "set", "{.status.readyReplicas}", own) == "2")
    gone = plane.names("pods", own)[0]
    plane.kubectl("-n", own, "delete", "pod", gone)
    plane.until("it is replaced", lambda: plane.get("rc", "set", "{.status.readyReplicas}", own) == "2"
                and gone not in plane.names("pods", own))


# StatefulSets and DaemonSets

def stateful_set(replicas=3, more=""):
    return (f"{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: db}}, spec: {{serviceName: db, replicas: {replicas}, "
            f"selector: {{matchLabels: {{app: web}}}}, template: {template()}{more}}}}}")


def a_stateful_set_starts_in_order_and_ends_in_reverse(plane):
    own = plane.namespace()
    plane.apply(own, stateful_set())
    plane.rollout(own, "statefulset/db")
    pods = sorted(plane.pods(own), key=lambda pod: pod["metadata"]["creationTimestamp"] + pod["metadata"]["name"])
    expect([pod["metadata"]["name"] for pod in pods], ["db-0", "db-1", "db-2"], "pods by age")
    plane.kubectl("-n", own, "scale", "statefulset/db", "--replicas=1")
    plane.until("the first is left", lambda: plane.names("pods", own) == ["db-0"])


def a_stateful_set_rolls_out_above_its_partition(plane):
    own = plane.namespace()
    plane.apply(own, stateful_set(more=", updateStrategy: {rollingUpdate: {partition: 2}}"))
    plane.rollout(own, "statefulset/db")
    plane.kubectl("-n", own, "set", "image", "statefulset/db", "c=two")

    def at(name):
        return plane.get("pod", name, "{.spec.containers[0].image}", own)
    plane.until("the last has the new image", lambda: at("db-2") == "two")
    plane.stays("the others have the old one", lambda: at("db-0") == "one" and at("db-1") == "one")
    plane.kubectl("-n", own, "patch", "statefulset", "db", "-p", '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}')
    plane.until("all have the new image", lambda: [at(f"db-{number}") for number in range(3)] == ["two"] * 3)


def a_stateful_set_starts_all_pods_at_once_if_it_may(plane):
    own = plane.namespace()
    plane.apply(own, stateful_set(replicas=5, more=", podManagementPolicy: Parallel"))
    plane.until("all are ready", lambda: plane.get("statefulset", "db", "{.status.readyReplicas}", own) == "5")


def a_daemon_set_has_a_pod_on_every_node(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: "
                     f"{{app: web}}}}, template: {template()}}}}}")
    plane.rollout(own, "daemonset/agent")
    nodes = sorted(pod["spec"]["nodeName"] for pod in active(plane.pods(own)))
    expect(nodes, sorted(plane.ready_nodes()), "nodes of its pods")
    plane.kubectl("-n", own, "set", "image", "daemonset/agent", "c=two")
    plane.until("all have the new image", lambda: images(plane, own) == ["two"])


def a_daemon_set_follows_labels_of_nodes(plane):
    own = plane.namespace()
    label = f"swap.example/{own}"
    selected = f", nodeSelector: {{{label}: here}}"
    plane.apply(own, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: "
                     f"{{app: web}}}}, template: {template(extra=selected)}}}}}")
    plane.stays("it has no pods", lambda: not plane.pods(own))
    plane.kubectl("label", "node", "sim-0002", f"{label}=here")
    plane.until("it has one there", lambda: [pod["spec"].get("nodeName") for pod in active(plane.pods(own))] == ["sim-0002"])
    plane.kubectl("label", "node", "sim-0002", f"{label}-")
    plane.until("it has none again", lambda: not active(plane.pods(own)))


# Jobs

def job(more="", policy="Never", annotations="", name="once"):
    pods = (f"{{metadata: {{annotations: {{{annotations}}}}}, spec: {{restartPolicy: {policy}, "
            "containers: [{name: c, image: one}]}}")
    return f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}}}, spec: {{template: {pods}{more}}}}}"


def a_job_completes(plane):
    own = plane.namespace()
    plane.apply(own, job(", completions: 4, parallelism: 2"))
    plane.wait(own, "job/once", "condition=Complete")
    expect(plane.get("job", "once", "{.status.succeeded}", own), "4", "succeeded pods")


def a_job_fails_after_its_limit(plane):
    own = plane.namespace()
    plane.apply(own, job(", backoffLimit: 1", annotations="coracle.local/simulate: fail"))
    plane.wait(own, "job/once", "condition=Failed")
    path = '{.status.conditions[?(@.type=="Failed")].reason}'
    expect(plane.get("job", "once", path, own), "BackoffLimitExceeded", "reason")


def an_indexed_job_has_a_pod_for_every_index(plane):
    own = plane.namespace()
    plane.apply(own, job(", completions: 3, parallelism: 3, completionMode: Indexed"))
    plane.wait(own, "job/once", "condition=Complete")
    expect(plane.get("job", "once", "{.status.completedIndexes}", own), "0-2", "completed indexes")


def a_job_that_takes_too_long_is_ended(plane):
    own = plane.namespace()
    plane.apply(own, job(", activeDeadlineSeconds: 2", annotations="coracle.local/simulate: hang"))
    plane.wait(own, "job/once", "condition=Failed")
    path = '{.status.conditions[?(@.type=="Failed")].reason}'
    expect(plane.get("job", "once", path, own), "DeadlineExceeded", "reason")


def a_job_is_suspended_and_resumed(plane):
    own = plane.namespace()
    plane.apply(own, job(", suspend: true"))
    plane.stays("it has no pods", lambda: not plane.pods(own))
    plane.kubectl("-n", own, "patch", "job", "once", "-p", '{"spec":{"suspend":false}}')
    plane.wait(own, "job/once", "condition=Complete")


def a_policy_decides_about_failed_pods(plane):
    own = plane.namespace()
    policy = ", podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}"
    plane.apply(own, job(policy, annotations="coracle.local/simulate: 'fail,code=42'"))
    plane.wait(own, "job/once", "condition=Failed")
    path = '{.status.conditions[?(@.type=="Failed")].reason}'
    expect(plane.get("job", "once", path, own), "PodFailurePolicy", "reason")


def a_finished_job_is_deleted_in_time(plane):
    own = plane.namespace()
    plane.apply(own, job(", ttlSecondsAfterFinished: 1"))
    plane.kubectl("-n", own, "wait", "--for=delete", "job/once", "--timeout=180s")
    plane.until("its pods too", lambda: not plane.pods(own))


def a_cron_job_starts_jobs(plane):
    own = plane.namespace()
    pods = "{spec: {restartPolicy: Never, containers: [{name: c, image: one}]}}"
    plane.apply(own, "{apiVersion: batch/v1, kind: CronJob, metadata: {name: often}, spec: {schedule: '* * * * *', jobTemplate: "
                     f"{{spec: {{template: {pods}}}}}}}}}")
    plane.until("a job has completed", lambda: plane.get("cronjob", "often", "{.status.lastSuccessfulTime}", own))


# Budgets, garbage, quota

def a_budget_counts_and_limits_evictions(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.apply(own, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 2, selector: "
                     "{matchLabels: {app: web}}}}")
    plane.rollout(own, "deployment/web")
    plane.until("one may go", lambda: plane.get("pdb", "b", "{.status.disruptionsAllowed}", own) == "1")
    plane.kubectl("-n", own, "patch", "pdb", "b", "-p", '{"spec":{"minAvailable":3}}', "--type=merge")
    plane.until("none may go", lambda: plane.get("pdb", "b", "{.status.disruptionsAllowed}", own) == "0")
    pod = plane.names("pods", own)[0]
    eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": own}})
    path = f"/api/v1/namespaces/{own}/pods/{pod}/eviction"
    why = plane.refused("create", "--raw", path, "-f", "-", stdin=eviction)
    if "disruption budget" not in why:
        raise Failed(f"the eviction: {why}")
    plane.kubectl("-n", own, "delete", "pdb", "b")
    plane.kubectl("create", "--raw", path, "-f", "-", stdin=eviction)
    plane.until("it is replaced", lambda: pod not in plane.names("pods", own) and len(active(plane.pods(own))) == 3)


def what_is_owned_goes_with_its_owner(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.rollout(own, "deployment/web")
    plane.kubectl("-n", own, "delete", "deployment", "web")
    plane.until("sets and pods are gone", lambda: not plane.names("replicasets", own) and not plane.pods(own))


def orphans_stay(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.rollout(own, "deployment/web")
    plane.kubectl("-n", own, "delete", "deployment", "web", "--cascade=orphan")
    name = plane.names("replicasets", own)[0]
    plane.until("the set has no owner", lambda: not plane.get("rs", name, "{.metadata.ownerReferences}", own))
    plane.stays("it has its pods", lambda: len(active(plane.pods(own))) == 3, seconds=2)


def an_owner_waits_for_what_it_owns(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
    uid = plane.get("configmap", "owner", "{.metadata.uid}", own)
    plane.apply(own, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, finalizers: [swap.example/held], ownerReferences: "
                     f"[{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}]}}}}")
    plane.kubectl("-n", own, "delete", "configmap", "owner", "--cascade=foreground", "--wait=false")
    plane.until("the owned one is going", lambda: plane.get("configmap", "owned", "{.metadata.deletionTimestamp}", own))
    plane.stays("the owner is there", lambda: plane.get("configmap", "owner", "{.metadata.uid}", own), seconds=2)
    plane.kubectl("-n", own, "patch", "configmap", "owned", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    plane.kubectl("-n", own, "wait", "--for=delete", "configmap/owner", "--timeout=180s")


def what_claims_an_owner_that_never_was_is_deleted(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: "
                     "ConfigMap, name: none, uid: 00000000-0000-0000-0000-000000000001}]}}")
    plane.kubectl("-n", own, "wait", "--for=delete", "configmap/owned", "--timeout=180s")


def a_quota_is_counted_and_enforced(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: '2', count/deployments.apps: '1'}}}")
    plane.until("it has a status", lambda: plane.get("resourcequota", "q", "{.status.hard.pods}", own) == "2")
    plane.apply(own, deployment(replicas=3))
    plane.until("two pods count", lambda: plane.get("resourcequota", "q", "{.status.used.pods}", own) == "2")
    why = plane.refused("-n", own, "create", "deployment", "second", "--image=one")
    if "exceeded quota" not in why:
        raise Failed(f"the second deployment: {why}")
    plane.until("the set says why", lambda: "exceeded quota" in plane.kubectl("-n", own, "get", "rs", "-o", "yaml"))
    plane.kubectl("-n", own, "delete", "deployment", "web")
    plane.until("it is counted down", lambda: plane.get("resourcequota", "q", "{.status.used.pods}", own) == "0")


# Certificates, roles, tokens of nodes

def a_certificate_is_signed_and_valid(plane):
    own = plane.namespace()
    key, request = plane.file(f"{own}.key"), plane.file(f"{own}.csr")
    subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-subj", "/O=devs/CN=jane",
                    "-out", request], check=True, capture_output=True)
    with open(request, "rb") as file:
        encoded = base64.b64encode(file.read()).decode()
    plane.apply(own, f"{{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {{name: {own}}}, spec: "
                     f"{{request: {encoded}, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}}}}")
    plane.kubectl("certificate", "approve", own)
    plane.until("it is signed", lambda: plane.get("csr", own, "{.status.certificate}"))
    with open(plane.file(f"{own}.crt"), "wb") as file:
        file.write(base64.b64decode(plane.get("csr", own, "{.status.certificate}")))
    server = json.load(open(plane.file("admin.conf")))["clusters"][0]["cluster"]
    who = subprocess.run([plane.kubectl_path, "--server", server["server"], "--certificate-authority",
                          server["certificate-authority"], "--client-certificate", plane.file(f"{own}.crt"), "--client-key", key,
                          "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"],
                         capture_output=True, text=True, env={"HOME": plane.folder, "PATH": os.environ["PATH"]})
    expect(who.stdout, "jane", f"the user of the certificate ({who.stderr})")


def a_role_gathers_the_rules_of_others(plane):
    own = plane.namespace()
    plane.apply(own, f"{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: {own}-all}}, "
                     f"aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{swap: {own}}}}}]}}, rules: []}}")
    plane.apply(own, f"{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: {own}-one, labels: "
                     f"{{swap: {own}}}}}, rules: [{{apiGroups: [''], resources: [pods], verbs: [get]}}]}}")
    plane.until("it has the rule", lambda: plane.get("clusterrole", f"{own}-all", "{.rules[0].resources[0]}") == "pods")


def bootstrap_tokens_sign_and_expire(plane):
    tokens = """
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-info}
data: {kubeconfig: the address}
"""
    plane.apply("kube-public", tokens)
    for name, more in [("abcdef", ""), ("expire", ", expiration: '2020-01-01T00:00:00Z'")]:
        plane.apply("kube-system", "{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token, metadata: {name: "
                                   f"bootstrap-token-{name}}}, stringData: {{token-id: {name}, token-secret: 0123456789abcdef, "
                                   f"usage-bootstrap-signing: 'true'{more}}}}}")
    signature = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9.."
    path = "{.data.jws-kubeconfig-abcdef}"
    plane.until("it is signed", lambda: plane.get("configmap", "cluster-info", path, "kube-public").startswith(signature))
    plane.until("the expired one is deleted", lambda: "bootstrap-token-expire" not in plane.names("secrets", "kube-system"))


def nodes_have_ranges_of_addresses(plane):
    nodes = json.loads(plane.kubectl("get", "nodes", "-o", "json"))["items"]
    ranges = {node["spec"].get("podCIDR", "") for node in nodes}
    expect(len(ranges - {""}), NODES, "different ranges")


# Services

def a_service_leads_to_its_pods(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.kubectl("-n", own, "expose", "deployment", "web", "--port=80", "--target-port=8080")
    plane.rollout(own, "deployment/web")

    def addresses():
        slices = json.loads(plane.kubectl("-n", own, "get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "json"))
        return sorted(address for item in slices["items"] for endpoint in item["endpoints"] or []
                      for address in endpoint["addresses"] if endpoint["conditions"]["ready"])

    def expected():
        return sorted(pod["status"].get("podIP", "") for pod in active(plane.pods(own)))
    plane.until("its slices have the pods", lambda: len(addresses()) == 3 and addresses() == expected())
    plane.until("its Endpoints too", lambda: len(plane.get("endpoints", "web", "{.subsets[*].addresses[*].ip}", own).split()) == 3)
    plane.kubectl("-n", own, "scale", "deployment/web", "--replicas=1")
    plane.until("they follow", lambda: len(addresses()) == 1 and addresses() == expected())
    plane.kubectl("-n", own, "delete", "service", "web")
    plane.until("they go with it", lambda: not plane.names("endpointslices", own))


def endpoints_by_hand_are_mirrored(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 80}]}}")
    plane.apply(own, "{apiVersion: v1, kind: Endpoints, metadata: {name: db}, subsets: [{addresses: [{ip: 198.51.100.7}], ports: "
                     "[{port: 80}]}]}")
    plane.until("a slice has the address", lambda: "198.51.100.7" in plane.kubectl("-n", own, "get", "endpointslices", "-o", "yaml"))


# The scheduler

def pods_go_where_they_must(plane):
    own = plane.namespace()
    plane.kubectl("label", "node", "sim-0001", f"swap.example/{own}=here")
    chosen = f', nodeSelector: {{swap.example/{own}: here}}'
    plane.apply(own, deployment(extra=chosen))
    plane.rollout(own, "deployment/web")
    expect({pod["spec"]["nodeName"] for pod in active(plane.pods(own))}, {"sim-0001"}, "nodes")


def pods_wait_for_a_node_that_fits(plane):
    own = plane.namespace()
    plane.apply(own, f"{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{nodeSelector: {{swap.example/{own}: late}}, "
                     "containers: [{name: c, image: one}]}}")
    path = '{.status.conditions[?(@.type=="PodScheduled")].message}'
    plane.until("it cannot be placed", lambda: f"0/{NODES} nodes are available" in plane.get("pod", "p", path, own))
    plane.kubectl("label", "node", "sim-0003", f"swap.example/{own}=late")
    plane.until("it is placed", lambda: plane.get("pod", "p", "{.spec.nodeName}", own) == "sim-0003")


def pods_keep_away_from_each_other(plane):
    own = plane.namespace()
    apart = (", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
             "kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}")
    plane.apply(own, deployment(replicas=NODES, extra=apart))
    plane.rollout(own, "deployment/web")
    expect(len({pod["spec"]["nodeName"] for pod in active(plane.pods(own))}), NODES, "nodes")


def important_pods_displace_others(plane):
    own = plane.namespace()
    plane.apply(own, f"{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: {own}}}, value: 1000}}")
    plane.kubectl("label", "node", "sim-0004", f"swap.example/{own}=full")

    def pod(name, more):
        return (f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{nodeSelector: {{swap.example/{own}: full}}, "
                f"containers: [{{name: c, image: one, resources: {{requests: {{cpu: '20'}}}}}}]{more}}}}}")
    plane.apply(own, pod("low", ", terminationGracePeriodSeconds: 1"))
    plane.wait(own, "pod/low", "condition=Ready")
    plane.apply(own, pod("high", f", priorityClassName: {own}"))
    plane.wait(own, "pod/high", "condition=Ready")
    plane.until("the other is gone", lambda: not plane.get("pod", "low", "{.metadata.uid}", own))


def events_tell_what_was_done(plane):
    own = plane.namespace()
    plane.apply(own, deployment(replicas=1))
    plane.rollout(own, "deployment/web")

    def reasons():
        return set(plane.kubectl("-n", own, "get", "events", "-o", "jsonpath={.items[*].reason}").split())
    plane.until("the events are there", lambda: reasons() >= {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled"})


# Volumes

def claims_and_volumes_in_use_are_protected(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {accessModes: [ReadWriteOnce], "
                     "storageClassName: none, resources: {requests: {storage: 1Mi}}}}")
    path = "{.metadata.finalizers[0]}"
    plane.until("it is protected", lambda: plane.get("pvc", "c", path, own) == "kubernetes.io/pvc-protection")
    plane.kubectl("-n", own, "delete", "pvc", "c", "--timeout=60s")


# The proxy

@alone
def services_become_rules(plane):
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.kubectl("-n", own, "expose", "deployment", "web", "--port=80", "--target-port=8080")
    plane.rollout(own, "deployment/web")
    address = plane.get("service", "web", "{.spec.clusterIP}", own)
    plane.spawn("kube-proxy", plane.programs["kube-proxy"] + arguments("kube-proxy", plane.folder))

    def rules():
        return subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
    pods = [pod["status"]["podIP"] for pod in active(plane.pods(own))]
    plane.until("its address is in the rules", lambda: address in rules() and all(pod in rules() for pod in pods), patience=60)
    expect(plane.page("http://127.0.0.1:10256/livez")[0], 200, "health")
    plane.kubectl("-n", own, "delete", "service", "web")
    plane.until("it is gone from them", lambda: address not in rules(), patience=60)
    plane.end("kube-proxy")


# Dead nodes

@alone
def pods_of_a_dead_node_are_replaced(plane):
    own = plane.namespace()
    impatient = (", tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, "
                 "tolerationSeconds: 2}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, "
                 "tolerationSeconds: 2}], terminationGracePeriodSeconds: 1")
    plane.apply(own, deployment(replicas=NODES * 2, extra=impatient))
    plane.rollout(own, "deployment/web")
    dead = plane.pods(own)[0]["spec"]["nodeName"]
    plane.kubectl("label", "node", dead, "coracle.local/simulate=dead")
    plane.until("it is not ready", lambda: dead not in plane.ready_nodes())
    plane.until("it is tainted", lambda: "node.kubernetes.io/unreachable" in plane.get("node", dead, "{.spec.taints[*].key}"))

    def elsewhere():
        pods = active(plane.pods(own))
        return len(pods) == NODES * 2 and all(pod["spec"].get("nodeName", dead) != dead for pod in pods)
    plane.until("its pods are elsewhere", elsewhere)

    plane.kubectl("label", "node", dead, "coracle.local/simulate-")
    plane.until("it is ready again", lambda: dead in plane.ready_nodes())
    plane.until("it has no taint", lambda: not plane.get("node", dead, "{.spec.taints}"))


@alone
def pods_of_a_deleted_node_are_deleted(plane):
    own = plane.namespace()
    plane.apply(own, "{apiVersion: v1, kind: Node, metadata: {name: short-lived}}")
    plane.apply(own, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: short-lived, tolerations: [{operator: "
                     "Exists}], containers: [{name: c, image: one}]}}")
    plane.kubectl("delete", "node", "short-lived")
    plane.until("its pod is gone", lambda: not plane.get("pod", "p", "{.metadata.uid}", own))


@alone
def another_leader_takes_over(plane):
    def holders():
        return [plane.get("lease", name, "{.spec.holderIdentity}", "kube-system")
                for name in ["kube-controller-manager", "kube-scheduler"]]
    before = holders()
    for name in ["kube-controller-manager", "kube-scheduler"]:
        plane.end(name)
        plane.spawn(name, plane.programs[name] + arguments(name, plane.folder))
    plane.until("both lead again", lambda: all(new and new != old for new, old in zip(holders(), before)))
    own = plane.namespace()
    plane.apply(own, deployment())
    plane.rollout(own, "deployment/web")


ALL = [value for name, value in list(globals().items())
       if getattr(value, "__module__", "") == __name__ and value.__code__.co_varnames[:value.__code__.co_argcount] == ("plane",)]
