"""A control plane of programs that are given: certificates, processes, and stock kubectl."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ADDRESS = "192.0.2.1"
NODES = 5
PATIENCE = 180


class Failed(Exception):
    """A check did not hold."""


class Plane:
    def __init__(self, programs, coracle, kubectl, keep):
        self.programs, self.coracle, self.kubectl_path, self.keep = programs, coracle, kubectl, keep
        self.folder = tempfile.mkdtemp(prefix="coracle-swap-")
        self.running = {}
        self.lock = threading.Lock()
        self.count = 0

    # Processes

    def start(self):
        make_certificates(self.folder)
        names = {"admin": "system:masters", "controller-manager": "", "scheduler": "", "proxy": ""}
        for name in names:
            self.kubeconfig(name)
        for name in ["etcd", "kube-apiserver"]:
            self.spawn(name, self.programs[name] + arguments(name, self.folder))
        self.until("the API server is ready", lambda: self.try_kubectl("get", "--raw", "/readyz") == "ok")
        for name in ["kube-controller-manager", "kube-scheduler"]:
            self.spawn(name, self.programs[name] + arguments(name, self.folder))
        self.simulate()

    def simulate(self):
        """Starts simulated nodes, and waits until they and their control plane are ready."""
        simulated = ["simulated-nodes", "--kubeconfig", self.file("admin.conf"), "--renew-every", "2"]
        self.spawn("simulated-nodes", [self.coracle] + simulated + ["--nodes", str(NODES)])
        for lease in ["kube-controller-manager", "kube-scheduler"]:
            self.until(f"{lease} leads", lambda lease=lease: self.get("lease", lease, "{.spec.holderIdentity}", "kube-system"))
        self.until("the nodes are ready", lambda: len(self.ready_nodes()) == NODES)

    def spawn(self, name, command):
        log = open(self.file(f"{name}.log"), "ab")
        self.running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

    def end(self, name):
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self):
        for name in reversed(list(self.running)):
            self.end(name)
        if self.keep:
            print(f"  logs are in {self.folder}", flush=True)
        else:
            shutil.rmtree(self.folder)

    def assert_running(self):
        for name, process in self.running.items():
            if process.poll() is not None:
                with open(self.file(f"{name}.log"), errors="replace") as log:
                    raise SystemExit(f"swap: {name} has ended: {log.read()[-3000:]}")

    def file(self, name):
        return os.path.join(self.folder, name)

    def kubeconfig(self, name, authority=None, certificate=None, server=f"https://{ADDRESS}:6443"):
        certificate = certificate or self.file(f"pki/{name}")
        text = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {
                "certificate-authority": authority or self.file("pki/ca.crt"), "server": server}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"client-certificate": f"{certificate}.crt", "client-key": f"{certificate}.key"}}],
        }
        with open(self.file(f"{name}.conf"), "w") as out:
            json.dump(text, out)

    # What checks do

    def run_kubectl(self, *arguments, stdin=None):
        command = [self.kubectl_path, "--kubeconfig", self.file("admin.conf")] + list(arguments)
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE + 60)

    def kubectl(self, *arguments, stdin=None):
        done = self.run_kubectl(*arguments, stdin=stdin)
        if done.returncode:
            raise Failed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def try_kubectl(self, *arguments):
        done = self.run_kubectl(*arguments)
        return None if done.returncode else done.stdout

    def refused(self, *arguments, stdin=None):
        done = self.run_kubectl(*arguments, stdin=stdin)
        if not done.returncode:
            raise Failed(f"kubectl {' '.join(arguments)} is not refused")
        return done.stderr

    def apply(self, namespace, text):
        self.kubectl("-n", namespace, "apply", "-f", "-", stdin=text)

    def get(self, kind, name, path, namespace="default"):
        """What is at a JSON path; empty where there is nothing."""
        found = self.try_kubectl("-n", namespace, "get", kind, name, "-o", f"jsonpath={path}")
        return found or ""

    def names(self, kind, namespace, selector=""):
        """Names of the objects that are not being deleted."""
        listed = json.loads(self.kubectl("-n", namespace, "get", kind, "-l", selector, "-o", "json"))["items"]
        return sorted(item["metadata"]["name"] for item in listed if "deletionTimestamp" not in item["metadata"])

    def pods(self, namespace, selector=""):
        return json.loads(self.kubectl("-n", namespace, "get", "pods", "-l", selector, "-o", "json"))["items"]

    def namespace(self):
        """A namespace of its own, with what a pod needs in it."""
        with self.lock:
            self.count += 1
            name = f"swap-{self.count}"
        self.kubectl("create", "namespace", name)
        self.until("there is a service account", lambda: self.get("serviceaccount", "default", "{.metadata.uid}", name))
        return name

    def rollout(self, namespace, what):
        self.kubectl("-n", namespace, "rollout", "status", what, f"--timeout={PATIENCE}s")

    def wait(self, namespace, what, condition):
        self.kubectl("-n", namespace, "wait", f"--for={condition}", what, f"--timeout={PATIENCE}s")

    def ready_nodes(self):
        nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        is_ready = {"type": "Ready", "status": "True"}.items()
        conditions = {node["metadata"]["name"]: node.get("status", {}).get("conditions", []) for node in nodes}
        return [name for name, all_of in conditions.items() if any(is_ready <= one.items() for one in all_of)]

    def until(self, what, holds, patience=PATIENCE):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if holds():
                return
            self.assert_running()
            time.sleep(0.3)
        raise Failed(f"not within {patience} s: {what}")

    def stays(self, what, holds, seconds=3):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not holds():
                raise Failed(f"not any more: {what}")
            time.sleep(0.3)

    def page(self, url):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except OSError as error:
            return 0, str(error)


def expect(found, expected, what):
    if found != expected:
        raise Failed(f"{what}: expected {expected}, found {found}")


def arguments(name, folder):
    """The command line of a program, the same for upstream's and ours: kubeadm's, and shorter times."""
    pki = os.path.join(folder, "pki")
    return {
        "etcd": [
            "--name=one", f"--data-dir={folder}/etcd", "--initial-cluster=one=http://127.0.0.1:2380",
            "--initial-advertise-peer-urls=http://127.0.0.1:2380", "--listen-peer-urls=http://127.0.0.1:2380",
            "--listen-client-urls=https://127.0.0.1:2379", "--advertise-client-urls=https://127.0.0.1:2379",
            f"--cert-file={pki}/etcd.crt", f"--key-file={pki}/etcd.key", f"--trusted-ca-file={pki}/ca.crt",
            "--client-cert-auth=true", "--unsafe-no-fsync", "--log-level=warn",
        ],
        "kube-apiserver": [
            f"--advertise-address={ADDRESS}", "--allow-privileged=true", "--authorization-mode=Node,RBAC",
            f"--client-ca-file={pki}/ca.crt", "--enable-admission-plugins=NodeRestriction",
            "--enable-bootstrap-token-auth=true", f"--etcd-cafile={pki}/ca.crt", f"--etcd-certfile={pki}/etcd-client.crt",
            f"--etcd-keyfile={pki}/etcd-client.key", "--etcd-servers=https://127.0.0.1:2379",
            f"--kubelet-client-certificate={pki}/admin.crt", f"--kubelet-client-key={pki}/admin.key",
            f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt", "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki}/front-proxy-client.crt", f"--proxy-client-key-file={pki}/front-proxy-client.key",
            "--secure-port=6443", "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki}/sa.pub", f"--service-account-signing-key-file={pki}/sa.key",
            "--service-cluster-ip-range=10.96.0.0/16", f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
        ],
        "kube-controller-manager": [
            "--allocate-node-cidrs=true", f"--authentication-kubeconfig={folder}/controller-manager.conf",
            f"--authorization-kubeconfig={folder}/controller-manager.conf", "--bind-address=127.0.0.1",
            f"--client-ca-file={pki}/ca.crt", "--cluster-cidr=10.244.0.0/16", "--cluster-name=kubernetes",
            f"--cluster-signing-cert-file={pki}/ca.crt", f"--cluster-signing-key-file={pki}/ca.key",
            "--controllers=*,bootstrapsigner,tokencleaner", f"--kubeconfig={folder}/controller-manager.conf",
            "--leader-elect=true", f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt", f"--root-ca-file={pki}/ca.crt",
            f"--service-account-private-key-file={pki}/sa.key", "--service-cluster-ip-range=10.96.0.0/16",
            "--use-service-account-credentials=true", "--node-monitor-period=1s", "--node-monitor-grace-period=16s",
            "--kube-api-qps=200", "--kube-api-burst=400",
        ],
        "kube-scheduler": [
            f"--authentication-kubeconfig={folder}/scheduler.conf", f"--authorization-kubeconfig={folder}/scheduler.conf",
            "--bind-address=127.0.0.1", f"--kubeconfig={folder}/scheduler.conf", "--leader-elect=true",
        ],
        "kube-proxy": [
            f"--kubeconfig={folder}/proxy.conf", "--hostname-override=sim-0000", "--proxy-mode=nftables",
            "--cluster-cidr=10.244.0.0/16", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s",
            "--conntrack-tcp-timeout-close-wait=0s",
        ],
    }[name]


def make_certificates(folder):
    pki = os.path.join(folder, "pki")
    os.makedirs(pki)

    def openssl(*given):
        subprocess.run(["openssl", *given], check=True, capture_output=True, cwd=pki)

    def key(name):
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def authority(name):
        key(name)
        openssl("req", "-x509", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-days", "30", "-out", f"{name}.crt")

    def certificate(name, subject, names="", by="ca"):
        key(name)
        openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        with open(os.path.join(pki, f"{name}.ext"), "w") as out:
            out.write("extendedKeyUsage = serverAuth, clientAuth\n")
            if names:
                out.write(f"subjectAltName = {names}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.crt", "-CAkey", f"{by}.key", "-CAcreateserial",
                "-days", "30", "-extfile", f"{name}.ext", "-out", f"{name}.crt")

    authority("ca")
    authority("front-proxy-ca")
    certificate("apiserver", "/CN=kube-apiserver", f"IP:{ADDRESS}, IP:127.0.0.1, IP:10.96.0.1, DNS:kubernetes")
    certificate("etcd", "/CN=one", "IP:127.0.0.1, DNS:localhost")
    certificate("etcd-client", "/CN=kube-apiserver-etcd-client")
    certificate("admin", "/O=system:masters/CN=kubernetes-admin")
    certificate("controller-manager", "/CN=system:kube-controller-manager")
    certificate("scheduler", "/CN=system:kube-scheduler")
    certificate("proxy", "/CN=system:kube-proxy")
    certificate("front-proxy-client", "/CN=front-proxy-client", by="front-proxy-ca")
    key("sa")
    openssl("ec", "-in", "sa.key", "-pubout", "-out", "sa.pub")
