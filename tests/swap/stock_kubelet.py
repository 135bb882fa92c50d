"""A stock kubelet of upstream, with containerd, on our server. Its serving certificate is one that it signed itself."""
import json
import os
import shutil
import subprocess
import time

from plane import ADDRESS, Failed, Plane, expect

NAME = "stock"
IMAGE = "docker.io/library/swap:one"
CONFIGURATION = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {{x509: {{clientCAFile: {data}/pki/ca.crt}}}}
containerRuntimeEndpoint: unix://{folder}/containerd.sock
cgroupRoot: /{group}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
healthzPort: 0
imageGCHighThresholdPercent: 100
evictionHard: {{memory.available: 1Mi}}
volumePluginDir: {folder}/plugins
podLogsDir: {folder}/logs
"""
CONTAINERD = """
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{image}"
restrict_oom_score_adj = true
stream_server_address = "127.0.0.1"
"""


class StockKubelet(Plane):
    def __init__(self, kubelet, **of_plane):
        super().__init__(**of_plane)
        self.kubelet_path = kubelet
        self.data = self.file("data")
        self.group = os.path.basename(self.folder)

    def server(self, *more):
        command = [self.coracle, "server", "--no-node", "--data-dir", self.data, "--https-port", "6443", *more]
        self.spawn("server", command)
        self.until("the API server is ready", lambda: os.path.exists(f"{self.data}/admin.kubeconfig")
                   and self.try_kubectl("get", "--raw", "/readyz") == "ok")

    def start(self):
        os.symlink(f"{self.data}/admin.kubeconfig", self.file("admin.conf"))
        self.server("--kubelet-certificate-authority=")
        self.start_containerd()
        self.start_kubelet()
        self.until("the node is there", lambda: self.get("node", NAME, "{.metadata.uid}"))

    def start_containerd(self):
        with open(self.file("containerd.toml"), "w") as out:
            out.write(CONTAINERD.format(image=IMAGE))
        socket = self.file("containerd.sock")
        self.spawn("containerd", [
            "containerd", "--config", self.file("containerd.toml"), "--root", self.file("containerd"),
            "--state", self.file("containerd-state"), "--address", socket])
        control = ["ctr", "--address", socket, "--namespace", "k8s.io"]
        self.until("containerd answers", lambda: subprocess.run(control + ["version"], capture_output=True).returncode == 0)
        archive = make_image(self.folder)
        subprocess.run(control + ["images", "import", archive], check=True, capture_output=True)

    def start_kubelet(self):
        pki = f"{self.data}/pki"

        def openssl(*given):
            subprocess.run(["openssl", *given], check=True, capture_output=True, cwd=self.folder)
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "kubelet.key")
        openssl("req", "-new", "-key", "kubelet.key", "-subj", f"/O=system:nodes/CN=system:node:{NAME}", "-out", "kubelet.csr")
        with open(self.file("kubelet.ext"), "w") as out:
            out.write("extendedKeyUsage = clientAuth\n")
        openssl("x509", "-req", "-in", "kubelet.csr", "-CA", f"{pki}/ca.crt", "-CAkey", f"{pki}/ca.key", "-CAcreateserial",
                "-CAserial", self.file("serial"), "-days", "30", "-extfile", "kubelet.ext", "-out", "kubelet.crt")
        self.kubeconfig("kubelet", authority=f"{pki}/ca.crt", certificate=self.file("kubelet"), server="https://127.0.0.1:6443")
        with open(self.file("kubelet.yaml"), "w") as out:
            out.write(CONFIGURATION.format(folder=self.folder, data=self.data, group=self.group))
        for hierarchy in hierarchies():
            os.mkdir(os.path.join(hierarchy, self.group))
        self.spawn("kubelet", [
            self.kubelet_path, "--config", self.file("kubelet.yaml"), "--kubeconfig", self.file("kubelet.conf"),
            "--root-dir", self.file("kubelet"), "--cert-dir", self.file("kubelet-pki"), "--hostname-override", NAME,
            "--node-ip", ADDRESS])

    def stop(self):
        """Whatever happened before: no container, mount or cgroup stays."""
        if "kubelet" in self.running:
            self.run_kubectl("delete", "pods", "--all", "--grace-period=1", "--timeout=60s")
            self.end("kubelet")
        if "containerd" in self.running:
            control = ["ctr", "--address", self.file("containerd.sock"), "--namespace", "k8s.io"]
            tasks = subprocess.run(control + ["tasks", "list", "-q"], capture_output=True, text=True).stdout.split()
            for task in tasks:
                subprocess.run(control + ["tasks", "delete", "--force", task], capture_output=True)
            self.end("containerd")
        with open("/proc/self/mounts") as mounts:
            below = [line.split()[1] for line in mounts if line.split()[1].startswith(f"{self.folder}/")]
        for mount in reversed(below):
            subprocess.run(["umount", mount], check=True)
        super().stop()
        for hierarchy in hierarchies():
            remove_group(os.path.join(hierarchy, self.group))


def hierarchies():
    """The hierarchies of cgroups, or the only one."""
    top = "/sys/fs/cgroup"
    if os.path.exists(f"{top}/cgroup.controllers"):
        return [top]
    return [path for path in (os.path.join(top, name) for name in os.listdir(top))
            if os.path.exists(f"{path}/cgroup.procs") and not os.path.islink(path)]


def remove_group(folder):
    """Removes a cgroup with those in it, once nothing runs there."""
    for _ in range(50):
        try:
            for below, _, _ in os.walk(folder, topdown=False):
                os.rmdir(below)
            return
        except OSError:
            time.sleep(0.1)


def make_image(folder):
    """The archive of an image with busybox."""
    root, archive = os.path.join(folder, "image-root"), os.path.join(folder, "image")
    os.makedirs(f"{root}/bin")
    os.mkdir(archive)
    shutil.copy("/bin/busybox", f"{root}/bin/busybox")
    for name in ["sh", "sleep", "echo", "cat"]:
        os.symlink("busybox", f"{root}/bin/{name}")
    subprocess.run(["tar", "-cf", f"{archive}/layer.tar", "-C", root, "."], check=True)
    digest = subprocess.run(["sha256sum", f"{archive}/layer.tar"], check=True, capture_output=True, text=True).stdout.split()[0]
    documents = {
        "config.json": {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/sleep", "1000000"], "Env": ["PATH=/bin"]},
                        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}},
        "manifest.json": [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}],
    }
    for name, document in documents.items():
        with open(os.path.join(archive, name), "w") as out:
            json.dump(document, out)
    subprocess.run(["tar", "-cf", f"{folder}/image.tar", "-C", archive, "manifest.json", "config.json", "layer.tar"], check=True)
    return f"{folder}/image.tar"


# Checks

POD = """{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{nodeName: stock, hostNetwork: true,
terminationGracePeriodSeconds: 1, containers: [{{name: c, image: "{image}", imagePullPolicy: Never,
command: [/bin/sh, -c, "echo out of the container; sleep 1000000"]}}]}}}}"""


def its_pod_gives_logs_and_exec(plane):
    plane.until("there is a service account", lambda: plane.get("serviceaccount", "default", "{.metadata.uid}"))
    plane.apply("default", POD.format(name="p", image=IMAGE))
    plane.wait("default", "pod/p", "condition=Ready")
    plane.until("its output is there", lambda: plane.kubectl("logs", "p") == "out of the container\n", patience=30)
    expect(plane.kubectl("exec", "p", "--", "/bin/echo", "from exec"), "from exec\n", "output of exec")
    expect(plane.kubectl("exec", "-i", "p", "--", "/bin/cat", stdin="through exec"), "through exec", "input of exec")
    refused = plane.run_kubectl("exec", "p", "--", "/bin/sh", "-c", "exit 7")
    expect(refused.returncode, 7, "exit code")


def its_certificate_is_its_own(plane):
    """So a server that trusts the authority of its cluster alone refuses it."""
    plane.end("server")
    plane.server()
    refused = plane.refused("logs", "p")
    if "certificate" not in refused:
        raise Failed(f"logs: {refused}")


CHECKS = [its_pod_gives_logs_and_exec, its_certificate_is_its_own]
