"""node_exporter as the DaemonSet that its documentation describes: in the host's namespaces, with its root mounted."""
import os

from harness import gobuild, images, wait

VERSION = "v1.12.1"
DOES = "memory, load and filesystems of the node, equal to what the node says"
OWED = ""
SHARED_MOUNTS = True
IMAGE = f"quay.io/prometheus/node-exporter:{VERSION}"
MANIFEST = f"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: node-exporter}}
spec:
  selector: {{matchLabels: {{app: node-exporter}}}}
  template:
    metadata: {{labels: {{app: node-exporter}}}}
    spec:
      hostNetwork: true
      hostPID: true
      tolerations: [{{operator: Exists}}]
      containers:
      - name: node-exporter
        image: {IMAGE}
        args: [--path.rootfs=/host]
        ports: [{{containerPort: 9100, hostPort: 9100}}]
        securityContext: {{readOnlyRootFilesystem: true}}
        volumeMounts: [{{name: root, mountPath: /host, mountPropagation: HostToContainer, readOnly: true}}]
      volumes: [{{name: root, hostPath: {{path: /}}}}]
"""


def build():
    gobuild.stock("node_exporter", f"github.com/prometheus/node_exporter@{VERSION}", ".")
    return [images.of_program("node_exporter", IMAGE, User="nobody")]


def run(c):
    c.kubectl("apply", "-f", "-", stdin=MANIFEST)
    c.kubectl("rollout", "status", "daemonset/node-exporter", "--timeout=120s")
    read = lambda: c.curl(f"http://{c.address}:9100/metrics").splitlines()
    lines = wait.until("metrics", read, 30)
    value = lambda sample: float(next(line for line in lines if line.startswith(sample)).split()[-1])

    memory = int(next(line for line in open("/proc/meminfo") if line.startswith("MemTotal")).split()[1]) * 1024
    assert value("node_memory_MemTotal_bytes ") == memory, "memory differs"
    root = os.statvfs("/")
    size = next(line for line in lines if line.startswith("node_filesystem_size_bytes") and 'mountpoint="/"' in line)
    assert float(size.split()[-1]) == root.f_blocks * root.f_frsize, f"filesystem differs: {size}"
    assert value('node_uname_info{') == 1 and any(os.uname().release in line for line in lines), "kernel differs"
