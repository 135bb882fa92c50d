"""A registry of images and charts, Debian's docker-registry, on loopback in the namespace of a cluster."""
import os
import shutil
import subprocess

from . import cache, wait

ADDRESS = "127.0.0.1:5000"
CONFIG = """version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: {folder}}}
  delete: {{enabled: true}}
http: {{addr: "{address}"}}
"""


class Registry:
    def __init__(self, running):
        self.cluster = running
        self.folder = os.path.join(running.folder, "registry")
        self.process = None

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        config = os.path.join(self.folder, "config.yml")
        with open(config, "w") as file:
            file.write(CONFIG.format(folder=self.folder, address=ADDRESS))
        with open(os.path.join(self.folder, "log"), "w") as log:
            command = self.cluster.inside(["docker-registry", "serve", config])
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait.until("registry answers", lambda: self.cluster.curl(f"http://{ADDRESS}/v2/") or True, 30)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)

    def push(self, archive, name):
        """Pushes an archive as `docker save` writes it, as ADDRESS/NAME."""
        source, target = f"docker-archive:{archive}", f"docker://{ADDRESS}/{name}"
        policy = ["--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false"]
        cache.run(self.cluster.inside(["skopeo", *policy, source, target]))
        return f"{ADDRESS}/{name}"
