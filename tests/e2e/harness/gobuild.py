"""Programs from Go modules, static, built once into the cache.

Two recipes. `stock`: the module itself is the main module, so its own replace lines and go.sum count: what every
program of the ecosystem needs. `required`: a small module of ours requires it: for k8s.io/kubernetes, whose staging
folders are modules of their own.
"""
import json
import os
import shutil
import subprocess

from . import cache

KUBERNETES, PARTS = "v1.36.4", "v0.36.4"
K = "k8s.io/kubernetes"
VERSION_FLAGS = " ".join(
    f"-X k8s.io/{variable}"
    for variable in (
        f"component-base/version.gitVersion={KUBERNETES}",
        "component-base/version.gitMajor=1",
        "component-base/version.gitMinor=36",
        f"client-go/pkg/version.gitVersion={KUBERNETES}",
    )
)
# Program: package, further linker flags.
SUITE = {
    "agnhost": ("test/images/agnhost", "-X main.Version=2.63.0"),
    "kubectl": ("cmd/kubectl", ""),
    "e2e.test": ("test/e2e", ""),
    "nnp": ("test/images/nonewprivs", ""),
    "regression-issue-74839": ("test/images/regression-issue-74839", ""),
    "consumer": ("test/images/resource-consumer", ""),
    "consume-cpu": ("test/images/resource-consumer/consume-cpu", ""),
}


def program(name):
    return cache.path("bin", name)


def built(*names):
    return all(os.access(program(name), os.X_OK) for name in names)


def source(name):
    """The folder of the module that a program was built from by `stock`; it holds its manifests."""
    return os.path.join(cache.ROOT, "src", name)


def module(path, version):
    """The folder of a module's source and its go.mod, downloaded if need be."""
    text = cache.run(["go", "mod", "download", "-json", f"{path}@{version}"], cwd="/")
    found = json.loads(text[text.index("{"):])
    return found["Dir"], found["GoMod"]


def kubernetes():
    return module(K, KUBERNETES)[0]


def suite():
    """e2e.test, kubectl and the programs of the suite's images."""
    of_kubernetes(*SUITE)
    required("sample-apiserver", f"k8s.io/sample-apiserver@{PARTS}", "k8s.io/sample-apiserver")
    required("etcd", "go.etcd.io/etcd/server/v3@v3.6.8", ".", ETCD_MAIN)
    required("coredns", "github.com/coredns/coredns@v1.12.4", ".", COREDNS_MAIN)


def suite_is_built():
    return built(*SUITE, "sample-apiserver", "etcd", "coredns")


def kubectl():
    of_kubernetes("kubectl")
    return program("kubectl")


def of_kubernetes(*names):
    """Programs of the module k8s.io/kubernetes, by their names in SUITE."""
    missing = [name for name in names if not built(name)]
    if not missing:
        return
    source = cache.folder("src", "all")
    if not os.path.exists(os.path.join(source, "go.sum")):
        _write_suite_module(source)
    for name in missing:
        package, flags = SUITE[name]
        verb = ["test", "-c", "-vet=off"] if name == "e2e.test" else ["build"]
        _go(source, verb, name, f"{K}/{package}", f"{VERSION_FLAGS} {flags}")


def required(name, module_version, package, main=None):
    """A program of a module that a module of ours requires."""
    if built(name):
        return program(name)
    path, version = module_version.split("@")
    source = cache.folder("src", name)
    _write(source, "go.mod", f"module {name}\n\ngo 1.26\n\nrequire {path} {version}\n")
    if main:
        _write(source, "main.go", main)
    _go(source, ["build"], name, package, "")
    return program(name)


def stock(name, module_version, package, nested=(), flags="", tags=""):
    """A program whose module is the main module. `nested`: "MODULE@VERSION:FOLDER", modules that the zip leaves out.
    `tags`: build tags, with commas between them."""
    path, version = module_version.split("@")
    source = os.path.join(cache.ROOT, "src", name)
    stamp = os.path.join(source, ".version")
    if not os.path.exists(stamp) or open(stamp).read() != module_version:
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(module(path, version)[0], source, symlinks=True)
        cache.run(["chmod", "-R", "u+w", source])
        shutil.rmtree(os.path.join(source, "vendor"), ignore_errors=True)
        for inner in nested:
            what, _, where = inner.partition(":")
            shutil.copytree(module(*what.split("@"))[0], os.path.join(source, where), dirs_exist_ok=True)
            cache.run(["chmod", "-R", "u+w", source])
        if os.path.exists(program(name)):
            os.remove(program(name))
        _write(source, ".version", module_version)
    if not built(name):
        _go(source, ["build", f"-tags={tags}"], name, package, flags)
    return program(name)


ETCD_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""

# With the plugins of the configurations that specs give to the CoreDNS of agnhost's image.
COREDNS_MAIN = """package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/log"
)

func main() {
	dnsserver.Directives = []string{"log", "hosts"}
	coremain.Run()
}
"""


def _write_suite_module(source):
    whole = open(module(K, KUBERNETES)[1]).read()
    replaced = [line.split("=>")[0].replace("replace", "").strip() for line in whole.splitlines() if "=> ./staging/" in line]
    lines = [f"replace {part} => {part} {PARTS}" for part in replaced]
    _write(source, "go.mod", f"module e2e\n\ngo 1.26\n\nrequire {K} {KUBERNETES}\n\n" + "\n".join(lines) + "\n")
    imports = f'import (\n\t_ "{K}/test/e2e"\n\t_ "{K}/test/images/agnhost/netexec"\n)\n'
    _write(source, "tools.go", f"package e2e\n\n{imports}")
    _go_run(source, ["mod", "tidy"])


def _write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def _go(source, verb, name, package, flags):
    """Whole when it is there: the name appears only once the build has succeeded."""
    print(f"building {name}", flush=True)
    out = program(name)
    _go_run(source, [*verb, "-trimpath", "-ldflags", f"-s -w {flags}", "-o", out + ".new", package])
    os.rename(out + ".new", out)


def _go_run(source, arguments):
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off"}
    done = subprocess.run(["nice", "go", *arguments], cwd=source, env=env, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"go {' '.join(arguments)} in {source}: exit code {done.returncode}\n{done.stderr[-4000:]}")
