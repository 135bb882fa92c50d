"""A control plane as kubeadm writes it: its certificates, kubeconfigs, static pod manifests and add-ons, with our programs.

kubeadm writes to /etc/kubernetes, and etcd to /var/lib/etcd: both are in a mount namespace here, over a folder of the test.
"""
import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request

from plane import ADDRESS, ROOT, Failed, Plane, expect

KUBERNETES = "/etc/kubernetes"
FACTS = os.path.join(ROOT, "tests", "facts", "kubeadm-commands.json")
PARTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
NODE = "node-1"
CONFIGURATION = f"""
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {ADDRESS}}}
nodeRegistration: {{name: {NODE}, criSocket: "unix:///run/none.sock"}}
bootstrapTokens: [{{token: abcdef.0123456789abcdef}}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %s
networking: {{podSubnet: 10.244.0.0/16}}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
"""


OWN = ["/etc", "/var/lib"]


class Kubeadm(Plane):
    def __init__(self, kubeadm, **of_plane):
        super().__init__(**of_plane)
        self.kubeadm_path = kubeadm
        version = subprocess.run([kubeadm, "version", "-o", "short"], check=True, capture_output=True, text=True).stdout.strip()
        with open(self.file("kubeadm.yaml"), "w") as out:
            out.write(CONFIGURATION % version)

    def kubeadm(self, *arguments):
        command = [self.kubeadm_path, *arguments, "--config", self.file("kubeadm.yaml")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise Failed(f"kubeadm {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def own_folders(self):
        """Folders of the system whose changes are the test's, in this mount namespace."""
        for over in OWN:
            layers = [self.file(part + over.replace("/", "-")) for part in ["upper", "work"]]
            for layer in layers:
                os.mkdir(layer)
            options = "lowerdir={},upperdir={},workdir={}".format(over, *layers)
            subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, over], check=True)

    def write(self):
        for phase in [["certs", "all"], ["kubeconfig", "all"], ["etcd", "local"], ["control-plane", "all"]]:
            self.kubeadm("init", "phase", *phase)
        os.symlink(f"{KUBERNETES}/super-admin.conf", self.file("admin.conf"))

    def manifest(self, part):
        decoded = subprocess.run([self.coracle, "decode", "-o", "json", f"{KUBERNETES}/manifests/{part}.yaml"],
                                 capture_output=True, check=True).stdout
        return json.loads(decoded)["spec"]["containers"][0]

    def start(self):
        self.own_folders()
        self.write()
        for part in PARTS:
            container = self.manifest(part)
            expect(container["command"][0], part, "the program of the manifest")
            self.spawn(part, self.programs[part] + container["command"][1:])
        self.until("the API server is ready", lambda: self.try_kubectl("get", "--raw", "/readyz") == "ok")
        self.simulate()

    def stop(self):
        for name in reversed(list(self.running)):
            self.end(name)
        for over in reversed(OWN):
            if os.path.ismount(over):
                subprocess.run(["umount", "--lazy", over], check=True)
        super().stop()

    def probe(self, part, name):
        container = self.manifest(part)
        get = container[name]["httpGet"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        url = f"{get['scheme'].lower()}://{get['host']}:{ports.get(get['port'], get['port'])}{get['path']}"
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(url, timeout=10, context=trusting) as answer:
                return answer.status
        except urllib.error.HTTPError as answer:
            return answer.code
        except OSError as error:
            return str(error)


# Checks

def its_command_lines_are_those_of_the_facts(plane):
    with open(FACTS) as file:
        facts = json.load(file)
    for part in PARTS:
        expect(plane.manifest(part)["command"][1:], facts[part], f"arguments of {part}")


def its_probes_pass(plane):
    for part in PARTS:
        for name in ["startupProbe", "livenessProbe", "readinessProbe"]:
            if name in plane.manifest(part):
                plane.until(f"{name} of {part} passes", lambda: plane.probe(part, name) == 200, patience=60)


def its_phases_against_the_server_succeed(plane):
    plane.apply("default", f"{{apiVersion: v1, kind: Node, metadata: {{name: {NODE}, "
                           f"labels: {{kubernetes.io/hostname: {NODE}}}}}}}")
    with_admin = ["--kubeconfig", f"{KUBERNETES}/super-admin.conf"]
    for phase in [["upload-config", "all"], ["mark-control-plane"], ["bootstrap-token"], ["addon", "all"]]:
        plane.kubeadm("init", "phase", *phase, *([] if phase[0] == "mark-control-plane" else with_admin))
    taints = plane.get("node", NODE, "{.spec.taints[*].key}")
    if "node-role.kubernetes.io/control-plane" not in taints:
        raise Failed(f"taints of the node: {taints}")
    plane.until("cluster-info is signed", lambda: plane.get(
        "configmap", "cluster-info", "{.data.jws-kubeconfig-abcdef}", "kube-public"))
    plane.rollout("kube-system", "deployment/coredns")


def its_kube_proxy_starts(plane):
    """With the configuration of the add-on, the files of its pod, and the command of its container."""
    folder = "/var/lib/kube-proxy"
    os.mkdir(folder)
    container = json.loads(plane.kubectl("-n", "kube-system", "get", "daemonset", "kube-proxy", "-o", "json"))
    command = container["spec"]["template"]["spec"]["containers"][0]["command"]
    expect(os.path.basename(command[0]), "kube-proxy", "the program")
    files = json.loads(plane.kubectl("-n", "kube-system", "get", "configmap", "kube-proxy", "-o", "json"))["data"]
    account = plane.file("account")
    os.mkdir(account)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as out:
            out.write(text.replace("/var/run/secrets/kubernetes.io/serviceaccount", account))
    with open(os.path.join(account, "token"), "w") as out:
        out.write(plane.kubectl("-n", "kube-system", "create", "token", "kube-proxy"))
    with open(os.path.join(account, "ca.crt"), "w") as out:
        out.write(plane.get("configmap", "kube-root-ca.crt", r"{.data.ca\.crt}", "kube-system"))

    arguments = [argument.replace("$(NODE_NAME)", NODE) for argument in command[1:]]
    plane.spawn("kube-proxy", plane.programs["kube-proxy"] + arguments)
    address = plane.get("service", "kube-dns", "{.spec.clusterIP}", "kube-system")

    def rules():
        return subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
    plane.until("the rules have the Service of the DNS", lambda: address in rules(), patience=60)
    plane.end("kube-proxy")


CHECKS = [
    its_command_lines_are_those_of_the_facts, its_probes_pass, its_phases_against_the_server_succeed, its_kube_proxy_starts,
]
