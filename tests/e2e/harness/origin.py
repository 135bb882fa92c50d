"""registry.k8s.io inside the namespace of a cluster, for specs that pull what is preloaded once more: image archives,
served read-only over TLS.

As a program, `origin.py CERTIFICATE KEY ARCHIVE …`, it serves until it is ended.
"""
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST, ADDRESS = "registry.k8s.io", "127.0.0.2"
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
# The server sees another list of hosts and of authorities, in a mount namespace whose mounts are shared ones, as systemd
# makes them: without that, volumes with mount propagation are refused.
SCRIPT = (
    f'mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/authorities" {AUTHORITIES} '
    '&& mount --make-rshared / && exec "$@"'
)


class Origin:
    """With `folder` for its files."""

    def __init__(self, folder, archives):
        self.folder, self.archives, self.process = folder, list(archives), None

    def command(self, command):
        """A command that sees this registry."""
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, self.folder, *command]

    def start(self, inside):
        """`inside`: makes a command one of the cluster's namespace."""
        from . import cache  # not for the program

        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        at = lambda name: os.path.join(self.folder, name)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        days = ["-days", "3650"]
        authority = [*key, *days, "-subj", "/CN=e2e", "-keyout", at("ca.key"), "-out", at("ca.crt")]
        cache.run(["openssl", "req", "-x509", *authority])
        cache.run(["openssl", "req", *key, "-subj", f"/CN={HOST}", "-keyout", at("tls.key"), "-out", at("tls.csr")])
        write(at("names"), f"subjectAltName=DNS:{HOST}\n")
        signed = ["-in", at("tls.csr"), "-CA", at("ca.crt"), "-CAkey", at("ca.key"), "-CAcreateserial", "-extfile", at("names")]
        cache.run(["openssl", "x509", "-req", *signed, *days, "-out", at("tls.crt")])

        write(at("hosts"), read("/etc/hosts") + f"\n{ADDRESS} {HOST}\n")
        write(at("authorities"), read(AUTHORITIES) + "\n" + read(at("ca.crt")))
        with open(at("log"), "w") as log:
            command = inside([sys.executable, __file__, at("tls.crt"), at("tls.key"), *self.archives])
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end(self):
        if self.process:
            self.process.terminate()
            self.process.wait(10)
            self.process = None


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def contents(archives):
    """{path below /v2/: (type, file or bytes, offset, size)} of archives as `docker save` writes them."""
    found = {}
    for path in archives:
        with tarfile.open(path) as archive:
            (image,) = json.load(archive.extractfile("manifest.json"))
            _, _, tagged = image["RepoTags"][0].partition("/")
            name, _, tag = tagged.rpartition(":")

            def blob(member, digest, kind):
                info = archive.getmember(member)
                found[f"{name}/blobs/sha256:{digest}"] = ("application/octet-stream", path, info.offset_data, info.size)
                return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": info.size}

            config = image["Config"]
            manifest = {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": blob(config, config.removesuffix(".json"), "config.v1+json"),
                "layers": [blob(layer, layer.partition("/")[0], "layer.v1.tar") for layer in image["Layers"]],
            }
            data = json.dumps(manifest).encode()
            for reference in (tag, "sha256:" + hashlib.sha256(data).hexdigest()):
                found[f"{name}/manifests/{reference}"] = (MANIFEST, data, 0, len(data))
    return found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    found = {}

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        nothing = ("application/json", b"{}", 0, 2)
        path = self.path.removeprefix("/v2/")
        known = nothing if path == "" else self.found.get(path)
        kind, source, offset, size = known or nothing
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if kind == MANIFEST:
            self.send_header("Docker-Content-Digest", "sha256:" + hashlib.sha256(source).hexdigest())
        self.end_headers()
        if not with_body:
            return
        if isinstance(source, bytes):
            self.wfile.write(source)
            return
        with open(source, "rb") as file:
            file.seek(offset)
            while size and (part := file.read(min(size, 1 << 20))):
                self.wfile.write(part)
                size -= len(part)


def main():
    certificate, key, *archives = sys.argv[1:]
    Handler.found = contents(archives)
    server = ThreadingHTTPServer((ADDRESS, 443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
