"""An image archive as `docker save` writes it, from folders: one layer a folder. No daemon, same bytes each time."""
import hashlib
import io
import json
import os
import tarfile

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TIME = 1700000000


def pack(out, name, layers, owners=None, **config):
    """Writes `out`. `config` is the image's (Cmd, Entrypoint, User, …). `owners`: {path: (uid, gid, mode)};
    everything else belongs to root."""
    config = {"Env": [PATH], **config}
    with tarfile.open(out + ".new", "w") as archive:
        blobs = []
        for folder in layers:
            data = _layer(folder, owners or {})
            digest = hashlib.sha256(data).hexdigest()
            if digest not in blobs:
                _put(archive, f"{digest}/layer.tar", data)
            blobs.append(digest)

        image = {
            "architecture": "amd64",
            "os": "linux",
            "created": "2026-01-01T00:00:00Z",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{blob}" for blob in blobs]},
            "history": [{"created_by": os.path.basename(folder)} for folder in layers],
        }
        data = json.dumps(image, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        _put(archive, f"{digest}.json", data)
        listing = [{"Config": f"{digest}.json", "RepoTags": [name], "Layers": [f"{b}/layer.tar" for b in blobs]}]
        _put(archive, "manifest.json", json.dumps(listing).encode())
    os.rename(out + ".new", out)
    return out


def _put(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(data), TIME
    archive.addfile(info, io.BytesIO(data))


def _layer(folder, owners):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for root, folders, files in os.walk(folder):
            folders.sort()
            for name in sorted(folders + files):
                full = os.path.join(root, name)
                relative = os.path.relpath(full, folder)
                info = archive.gettarinfo(full, relative)
                info.uid = info.gid = 0
                info.uname = info.gname = ""
                info.mtime = TIME
                if relative in owners:
                    info.uid, info.gid, info.mode = owners[relative]
                if info.isreg():
                    with open(full, "rb") as file:
                        archive.addfile(info, file)
                else:
                    archive.addfile(info)
    return buffer.getvalue()
