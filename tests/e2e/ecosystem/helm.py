"""helm: the chart that `helm create` writes, from a registry, with images of that registry."""
import os

from harness import cache, cluster, gobuild, images, registry, wait

VERSION = "v3.22.0"
DOES = "a chart is pushed, installed, tested, upgraded, rolled back and uninstalled"
OWED = ""
RELEASE = ["web", f"oci://{registry.ADDRESS}/charts/web"]


def build():
    gobuild.stock("helm", f"helm.sh/helm/v3@{VERSION}", "./cmd/helm")
    images.make()
    return []  # The images come from the registry.


def run(c):
    with registry.Registry(c) as images_of:
        for name, archive in (("nginx", "nginx"), ("nginx-new", "nginx-new"), ("busybox", "busybox")):
            images_of.push(images.archive(archive), f"library/{name}:1")
        helm(c, "create", "web")
        values = os.path.join(c.folder, "web/values.yaml")
        test = os.path.join(c.folder, "web/templates/tests/test-connection.yaml")
        edit(values, ("repository: nginx", f"repository: {registry.ADDRESS}/library/nginx"), ('tag: ""', 'tag: "1"'))
        edit(test, ("image: busybox", f"image: {registry.ADDRESS}/library/busybox:1"))
        helm(c, "package", "web")
        helm(c, "push", "--plain-http", "web-0.1.0.tgz", f"oci://{registry.ADDRESS}/charts")

        helm(c, "install", "--plain-http", "--wait", "--timeout=3m", *RELEASE)
        helm(c, "test", "web", "--timeout=2m")
        new = f"image.repository={registry.ADDRESS}/library/nginx-new"
        helm(c, "upgrade", "--plain-http", "--wait", "--timeout=3m", *RELEASE, "--set", "replicaCount=2", "--set", new)
        assert deployment(c) == (2, f"{registry.ADDRESS}/library/nginx-new:1"), f"after the upgrade: {deployment(c)}"
        helm(c, "rollback", "web", "1", "--wait", "--timeout=3m")
        assert deployment(c) == (1, f"{registry.ADDRESS}/library/nginx:1"), f"after the rollback: {deployment(c)}"
        helm(c, "uninstall", "web", "--wait", "--timeout=2m")
        # The pod of the test stays: helm leaves what hooks have made.
        left = lambda: [pod["metadata"]["name"] for pod in c.get("pods")["items"]]
        wait.until("no other pod is left", lambda: left() == ["web-test-connection"], 60)
        assert not c.get("deployments,services", "-l", "app.kubernetes.io/instance=web")["items"], "objects are left"


def helm(c, *arguments):
    environment = {**os.environ, "KUBECONFIG": c.kubeconfig, "HOME": c.folder}
    return cache.run(c.inside([gobuild.program("helm"), *arguments]), cwd=c.folder, env=environment)


def deployment(c):
    spec = c.get("deployment", "web")["spec"]
    return spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]


def edit(path, *changes):
    text = open(path).read()
    for old, new in changes:
        assert old in text, f"{path}: no {old}"
        text = text.replace(old, new)
    with open(path, "w") as file:
        file.write(text)
