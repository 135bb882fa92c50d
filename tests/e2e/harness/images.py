"""The images that upstream's specs ask for, under exactly those names, from Debian packages and Go programs."""
import hashlib
import os
import shutil
import sys

from . import cache, debian, gobuild, image, origin

REGISTRY = "registry.k8s.io/e2e-test-images"
BASE = (
    "libc6 libgcc-s1 zlib1g libssl3 libpcre2-8-0 libcrypt1 libzstd1 liblzma5 libselinux1 libtinfo6 libbz2-1.0 libcap2 "
    "libacl1 bash dash netbase"
).split()
NETWORK_TOOLS = (
    "bind9-dnsutils bind9-host bind9-libs curl libcurl4 netcat-openbsd iproute2 iperf libbrotli1 libbsd0 libmd0 "
    "libcom-err2 libedit2 libelf1 libbpf1 libfstrm0 libgmp10 libgnutls30 libgssapi-krb5-2 libhogweed6 libicu72 "
    "libidn2-0 libjemalloc2 libjson-c5 libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 libldap-2.5-0 liblmdb0 "
    "libmaxminddb0 libmnl0 libnettle8 libnghttp2-14 libp11-kit0 libffi8 libprotobuf-c1 libpsl5 libreadline8 librtmp1 "
    "libsasl2-2 libssh2-1 libstdc++6 libtasn1-6 libtirpc3 libunistring2 libuv1 libxml2 libxtables12 libdb5.3"
).split()
NGINX = ["nginx", "nginx-common", "nginx-light"]
FOLDERS = "etc tmp root home var/run var/tmp proc sys dev usr/bin usr/sbin usr/local/bin bin sbin lib run".split()
PASSWD = """root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/bin/false
bin:x:2:2:bin:/bin:/bin/false
www-data:x:33:33:www-data:/var/www:/bin/false
nobody:x:65534:65534:nobody:/home:/bin/false
"""
GROUP = "root:x:0:\ndaemon:x:1:\nbin:x:2:\nadm:x:4:\nwww-data:x:33:\nnogroup:x:65534:\n"
USER = "user-defined-in-image"
INDEX = """<!DOCTYPE html>
<html>
<head>
<title>Welcome to nginx!</title>
</head>
<body>
<h1>Welcome to nginx!</h1>
</body>
</html>
"""
NGINX_CONF = """user www-data;
worker_processes 1;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events { worker_connections 512; }
http {
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log /dev/stdout;
  sendfile on;
  keepalive_timeout 65;
  include /etc/nginx/conf.d/*.conf;
}
"""
NGINX_SITE = """server {
  listen 80;
  server_name localhost;
  location / { root /usr/share/nginx/html; index index.html index.htm; }
}
"""


def archive(name):
    """The path of an archive. Each version of the recipes has a folder: several checkouts share the cache."""
    return cache.path("images", recipes()[:12], f"{name}.tar")


def make():
    """Writes all archives, where they are not as this file makes them."""
    if made():
        return
    print("making images", flush=True)
    layers = {name: layer() for name, layer in LAYERS.items()}
    for name, (reference, parts, config) in RECIPES.items():
        owners = {f"home/{USER}": (1000, 1000, 0o755)} if "agnhost" in parts else None
        if name == "nonewprivs":
            owners = {"usr/local/bin/nnp": (0, 0, 0o6755)}
        image.pack(archive(name), reference, [layers[part] for part in parts], owners, **config)


def made():
    """Whether all archives are there, made by these recipes."""
    return all(os.path.exists(archive(name)) for name in RECIPES)


def recipes():
    """A digest of what decides what is in the images."""
    sources = (open(module.__file__, "rb").read() for module in (debian, image, origin, sys.modules[__name__]))
    return hashlib.sha256(b"".join(sources)).hexdigest()


def archives():
    """The paths of all archives."""
    make()
    return [archive(name) for name in RECIPES]


def pulled():
    """The paths of the archives that specs pull although they are preloaded."""
    return [archive(name) for name in ("agnhost", "kitten")]


def write(layer, name, text, mode=0o644):
    path = os.path.join(layer, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def add_system_files(layer):
    for name in FOLDERS:
        os.makedirs(os.path.join(layer, name), exist_ok=True)
    for name in ("tmp", "var/tmp"):
        os.chmod(os.path.join(layer, name), 0o1777)
    write(layer, "etc/passwd", PASSWD)
    write(layer, "etc/group", GROUP)
    write(layer, "etc/nsswitch.conf", "hosts: files dns\n")


def add_busybox(layer):
    """busybox with a hard link for each applet; names that exist already stay."""
    target = os.path.join(layer, "bin/busybox")
    shutil.copy(debian.busybox(), target)
    for applet in cache.run([target, "--list"]).split():
        places = [os.path.join(layer, folder, applet) for folder in ("bin", "usr/bin", "sbin", "usr/sbin")]
        if not any(os.path.lexists(place) for place in places):
            os.link(target, places[0])


def busybox_layer():
    layer = cache.fresh_folder("layers", "busybox")
    add_system_files(layer)
    add_busybox(layer)
    return layer


def glibc_layer():
    layer = cache.fresh_folder("layers", "glibc")
    add_system_files(layer)
    debian.unpack(BASE, layer)
    debian.unpack_file("libc-bin", "usr/bin/getent", layer)
    if os.path.lexists(f"{layer}/bin/sh"):
        os.remove(f"{layer}/bin/sh")
    add_busybox(layer)
    shutil.rmtree(f"{layer}/usr/lib/x86_64-linux-gnu/gconv", ignore_errors=True)
    return layer


def network_tools_layer():
    layer = cache.fresh_folder("layers", "network-tools")
    debian.unpack(NETWORK_TOOLS, layer)
    for name in ("bin", "usr/bin", "usr/local/bin", "usr/sbin"):
        os.makedirs(os.path.join(layer, name), exist_ok=True)
    links = [("bin/nc", "nc.openbsd"), ("usr/local/bin/iperf", "/usr/bin/iperf"), ("usr/sbin/ip", "/bin/ip")]
    for name, target in links:
        if not os.path.lexists(os.path.join(layer, name)):
            os.symlink(target, os.path.join(layer, name))
    return layer


def nginx_layer():
    """Debian's nginx with the layout of the official image."""
    layer = cache.fresh_folder("layers", "nginx")
    debian.unpack(NGINX, layer)
    for name in ("sites-available", "sites-enabled", "modules-available", "modules-enabled"):
        shutil.rmtree(f"{layer}/etc/nginx/{name}", ignore_errors=True)
    for name in ("usr/share/nginx/html", "var/lib/nginx", "var/log/nginx", "run"):
        os.makedirs(os.path.join(layer, name), exist_ok=True)
    write(layer, "usr/share/nginx/html/index.html", INDEX)
    write(layer, "etc/nginx/nginx.conf", NGINX_CONF)
    write(layer, "etc/nginx/conf.d/default.conf", NGINX_SITE)
    write(layer, "docker-entrypoint.sh", '#!/bin/sh\nexec "$@"\n', 0o755)
    return layer


def agnhost_layer():
    layer = cache.fresh_folder("layers", "agnhost")
    for name in ("uploads", f"home/{USER}"):
        os.makedirs(os.path.join(layer, name))
    for program in ("agnhost", "coredns"):
        shutil.copy(gobuild.program(program), f"{layer}/{program}")
    os.symlink("agnhost", f"{layer}/agnhost-2")
    porter = os.path.join(gobuild.kubernetes(), "test/images/agnhost/porter")
    for name in ("localhost.crt", "localhost.key"):
        write(layer, name, open(os.path.join(porter, name)).read())
    write(layer, "etc/passwd", PASSWD + f"{USER}:x:1000:1000:Linux User,,,:/home/{USER}:/bin/sh\n")
    write(layer, "etc/group", GROUP + f"{USER}:x:1000:\ngroup-defined-in-image:x:50000:{USER}\n")
    add_registry(layer)
    return layer


def add_registry(layer):
    """What agnhost's registry serves: the image pause, as pause:testing."""
    name, _, config = RECIPES["pause"]
    packed = image.pack(cache.path("layers", "pause.tar"), name, [pause_layer()], **config)
    for path, (_, source, offset, size) in origin.contents([packed]).items():
        folder, _, reference = path.rpartition("/")
        if not reference.startswith("sha256:"):
            digest = "sha256:" + hashlib.sha256(source).hexdigest()
            write(layer, f"var/registry/{folder}/testing", digest + "\n")
            continue
        if not isinstance(source, bytes):
            with open(source, "rb") as file:
                file.seek(offset)
                source = file.read(size)
        digest = reference.removeprefix("sha256:")
        file = os.path.join(layer, "var/registry", folder, "sha256", digest[:2], digest, "data")
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as blob:
            blob.write(source)


def page_layer(name):
    def build():
        layer = cache.fresh_folder("layers", name)
        pages = os.path.join(gobuild.kubernetes(), f"test/images/{name}/html")
        for page in os.listdir(pages):
            shutil.copyfile(os.path.join(pages, page), os.path.join(layer, page))
        # A spec reads which system the image is made of.
        write(layer, "etc/os-release", 'NAME="Alpine Linux"\n')
        return layer

    return build


def pause_layer():
    layer = cache.fresh_folder("layers", "pause")
    source = os.path.join(gobuild.kubernetes(), "build/pause/linux/pause.c")
    cache.run(["cc", "-Os", "-static", "-DVERSION=3.10.2", "-o", f"{layer}/pause", source])
    return layer


def program_layer(name, files):
    """A layer of programs: {path in the image: name of the program}."""

    def build():
        layer = cache.fresh_folder("layers", name)
        for path, program in files.items():
            os.makedirs(os.path.dirname(os.path.join(layer, path)), exist_ok=True)
            shutil.copy(gobuild.program(program), os.path.join(layer, path))
        return layer

    return build


def of_program(program, name, **config):
    """An archive of an image that is one static program, as its entrypoint. `config`: User, Cmd, …"""
    layer = program_layer(f"image-{program}", {program: program})()
    add_system_files(layer)
    out = cache.path("images", "programs", f"{program}.tar")
    return image.pack(out, name, [layer], Entrypoint=[f"/{program}"], **config)


def etcd_layer():
    layer = program_layer("etcd", {"usr/local/bin/etcd": "etcd"})()
    os.makedirs(f"{layer}/var/etcd")
    return layer


LAYERS = {
    "busybox": busybox_layer,
    "glibc": glibc_layer,
    "network-tools": network_tools_layer,
    "nginx": nginx_layer,
    "agnhost": agnhost_layer,
    "kitten": page_layer("kitten"),
    "nautilus": page_layer("nautilus"),
    "pause": pause_layer,
    "nnp": program_layer("nnp", {"usr/local/bin/nnp": "nnp"}),
    "regression": program_layer("regression", {"regression-issue-74839": "regression-issue-74839"}),
    "consumer": program_layer("consumer", {"consumer": "consumer", "consume-cpu": "consume-cpu"}),
    "sample-apiserver": program_layer("sample-apiserver", {"sample-apiserver": "sample-apiserver"}),
    "etcd": etcd_layer,
}
_AGNHOST = ["glibc", "network-tools", "agnhost"]
_PORTS = {f"{port}/tcp": {} for port in (80, 8080, 8081, 9376, 5000)}
_NGINX = {
    "Entrypoint": ["/docker-entrypoint.sh"],
    "Cmd": ["nginx", "-g", "daemon off;"],
    "ExposedPorts": {"80/tcp": {}},
    "StopSignal": "SIGQUIT",
}
# Two tags of one program differ in a label, so that they are two images.
RECIPES = {
    "busybox": (f"{REGISTRY}/busybox:1.37.0-1", ["busybox"], {"Cmd": ["sh"]}),
    "busybox-previous": (f"{REGISTRY}/busybox:1.36.1-1", ["busybox"], {"Cmd": ["sh"], "Labels": {"variant": "previous"}}),
    "pause": ("registry.k8s.io/pause:3.10.2", ["pause"], {"User": "65535:65535", "WorkingDir": "/", "Entrypoint": ["/pause"]}),
    "nginx": (f"{REGISTRY}/nginx:1.15-4", ["glibc", "nginx"], _NGINX),
    "nginx-new": (f"{REGISTRY}/nginx:1.27-0", ["glibc", "nginx"], {**_NGINX, "Labels": {"variant": "new"}}),
    "glibc-dns-testing": (f"{REGISTRY}/glibc-dns-testing:2.0.0", ["glibc", "network-tools"], {"Cmd": ["bash"]}),
    "nonroot": (f"{REGISTRY}/nonroot:1.5", ["glibc"], {"User": "1234", "Cmd": ["bash"]}),
    "agnhost": (f"{REGISTRY}/agnhost:2.63.0", _AGNHOST, {"Entrypoint": ["/agnhost"], "Cmd": ["pause"], "ExposedPorts": _PORTS}),
    "agnhost-previous": (
        f"{REGISTRY}/agnhost:2.55",
        _AGNHOST,
        {"Entrypoint": ["/agnhost"], "Cmd": ["pause"], "ExposedPorts": _PORTS, "Labels": {"variant": "previous"}},
    ),
    "kitten": (f"{REGISTRY}/kitten:1.8", [*_AGNHOST, "kitten"], {"Entrypoint": ["/agnhost"], "Cmd": ["test-webserver"]}),
    "nautilus": (f"{REGISTRY}/nautilus:1.8", [*_AGNHOST, "nautilus"], {"Entrypoint": ["/agnhost"], "Cmd": ["test-webserver"]}),
    "nonewprivs": (f"{REGISTRY}/nonewprivs:1.4", ["busybox", "nnp"], {"Cmd": ["nnp"]}),
    "regression-issue-74839": (
        f"{REGISTRY}/regression-issue-74839:1.4",
        ["busybox", "regression"],
        {"Entrypoint": ["/regression-issue-74839"]},
    ),
    "resource-consumer": (f"{REGISTRY}/resource-consumer:1.14", ["busybox", "consumer"], {"Entrypoint": ["/consumer"]}),
    "sample-apiserver": (f"{REGISTRY}/sample-apiserver:1.29.2", ["busybox", "sample-apiserver"], {"Entrypoint": ["/sample-apiserver"]}),
    "etcd": ("registry.k8s.io/etcd:3.6.8-0", ["busybox", "etcd"], {"Cmd": ["etcd"]}),
}
