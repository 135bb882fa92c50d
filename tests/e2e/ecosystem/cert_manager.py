"""cert-manager from its chart: its definitions, its webhook, whose authority the cainjector writes, and its controller."""
import base64
import os
import shutil
import ssl
import subprocess

from harness import cache, gobuild, images, wait

VERSION = "v1.11.5"
DOES = "the webhook sets defaults and refuses; a CA issuer issues a certificate, and a new one when it is renewed"
OWED = ""
MODULE = f"github.com/cert-manager/cert-manager@{VERSION}"
HELM = "helm.sh/helm/v3@v3.22.0"
PROGRAMS = ("controller", "webhook", "cainjector", "ctl")
SPACE = "cert-manager"


def build():
    gobuild.stock("helm", HELM, "./cmd/helm")
    flags = f"-X github.com/cert-manager/cert-manager/pkg/util.AppVersion={VERSION}"
    for name in PROGRAMS:
        gobuild.stock(f"cert-manager-{name}", MODULE, f"./cmd/{name}", flags=flags)
    repository = "quay.io/jetstack/cert-manager"
    return [images.of_program(f"cert-manager-{name}", f"{repository}-{name}:{VERSION}", User="1000") for name in PROGRAMS]


def run(c):
    chart = make_chart(c)
    helm = [gobuild.program("helm"), "install", "cert-manager", chart, "--namespace", SPACE, "--create-namespace"]
    environment = {**os.environ, "KUBECONFIG": c.kubeconfig, "HOME": c.folder}
    # Its last step is a Job of its own, which waits until the webhook answers.
    cache.run(c.inside([*helm, "--wait", "--timeout=5m", "--set", "prometheus.enabled=false"]), env=environment)

    c.kubectl("create", "namespace", "shop")
    c.kubectl("apply", "-f", "-", stdin=ISSUERS)
    refused(c, TWO_IN_ONE, "may not specify more than one issuer type")
    refused(c, certificate("wrong", "duration: 1m"), "certificate duration must be greater than")

    c.kubectl("-n", SPACE, "wait", "certificate/authority", "--for=condition=Ready", "--timeout=120s")
    c.kubectl("apply", "-f", "-", stdin=certificate("web"))
    c.kubectl("-n", "shop", "wait", "certificate/web", "--for=condition=Ready", "--timeout=120s")
    first = issued(c)

    # A request has the user who made it, which the webhook writes and then keeps.
    requests = c.get("certificaterequests", "-n", "shop")["items"]
    users = {request["spec"].get("username") for request in requests}
    assert users == {f"system:serviceaccount:{SPACE}:cert-manager"}, f"users of requests: {users}"
    approved = {condition["type"] for request in requests for condition in request["status"]["conditions"]}
    assert {"Approved", "Ready"} <= approved, f"conditions of requests: {approved}"

    renew = [gobuild.program("cert-manager-ctl"), "renew", "web", "--namespace=shop", f"--kubeconfig={c.kubeconfig}"]
    cache.run(c.inside(renew))
    wait.until("another certificate", lambda: issued(c) != first, 120)
    wait.until("its revision", lambda: c.get("certificate", "web", "-n", "shop")["status"].get("revision") == 2, 60)

    # Another private key follows from a change of the certificate.
    c.kubectl("-n", "shop", "patch", "certificate", "web", "--type=merge", "--patch", '{"spec":{"dnsNames":["new.example"]}}')
    wait.until("a certificate for the new name", lambda: "new.example" in names(c), 120)


def make_chart(c):
    """The chart as a release has it: with a version, and with the definitions among its templates."""
    source = gobuild.source("cert-manager-controller")
    chart = os.path.join(c.folder, "chart")
    shutil.rmtree(chart, ignore_errors=True)
    shutil.copytree(os.path.join(source, "deploy/charts/cert-manager"), chart)
    text = open(os.path.join(chart, "Chart.template.yaml")).read()
    text = text.replace("v0.1.0", VERSION).replace("{{IS_PRERELEASE}}", "false")
    write(os.path.join(chart, "Chart.yaml"), text)

    definitions = os.path.join(source, "deploy/crds")
    for name in sorted(os.listdir(definitions)):
        if name.endswith(".yaml"):
            text = open(os.path.join(definitions, name)).read()
            write(os.path.join(chart, "templates", name), text.replace("# Generated labels {{-", "{{-"))
    return chart


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def refused(c, manifest, why):
    """The webhook refuses an object, and says why."""
    command = c.inside([gobuild.program("kubectl"), "--kubeconfig", c.kubeconfig, "apply", "-f", "-"])
    done = subprocess.run(command, input=manifest, capture_output=True, text=True)
    message = done.stderr
    assert done.returncode != 0 and 'admission webhook "webhook.cert-manager.io" denied the request' in message, message
    assert why in message, message


def issued(c):
    """The certificate of the Secret, which the authority of the Secret has signed."""
    data = c.get("secret", "web-tls", "-n", "shop")["data"]
    folder = os.path.join(c.folder, "issued")
    os.makedirs(folder, exist_ok=True)
    for name in ("ca.crt", "tls.crt"):
        write(os.path.join(folder, name), base64.b64decode(data[name]).decode())
    cache.run(["openssl", "verify", "-CAfile", f"{folder}/ca.crt", f"{folder}/tls.crt"])
    return ssl.PEM_cert_to_DER_cert(open(f"{folder}/tls.crt").read())


def names(c):
    issued(c)
    return cache.run(["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", os.path.join(c.folder, "issued/tls.crt")])


def certificate(name, more=""):
    return f"""apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {{name: {name}, namespace: shop}}
spec:
  secretName: {name}-tls
  dnsNames: [shop.example]
  issuerRef: {{name: authority, kind: ClusterIssuer}}
  {more}
"""


ISSUERS = f"""apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {{name: self}}
spec: {{selfSigned: {{}}}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {{name: authority, namespace: {SPACE}}}
spec:
  isCA: true
  commonName: authority
  secretName: authority
  privateKey: {{algorithm: ECDSA, size: 256}}
  issuerRef: {{name: self, kind: ClusterIssuer}}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {{name: authority}}
spec: {{ca: {{secretName: authority}}}}
"""
TWO_IN_ONE = """apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: two, namespace: shop}
spec: {selfSigned: {}, ca: {secretName: x}}
"""
