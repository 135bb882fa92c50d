"""Files from Debian packages, taken with apt from the sources of this machine; nothing is installed."""
import glob
import hashlib
import os
import re
import shutil
import urllib.parse
import urllib.request

from . import cache

BUSYBOX = "1.37.0"
BUSYBOX_SHA256 = "3311dff32e746499f4df0d5df04d7eb396382d7e108bb9250e7b519b837043a4"
UNUSED = ("doc man locale lintian bug info bash-completion icons pixmaps zsh doc-base menu").split()


def _file(package):
    found = glob.glob(cache.path("debs", f"{package}_*.deb"))
    return max(found, key=os.path.getmtime) if found else None


def download(packages):
    """Brings the packages into the cache, those that are missing at once."""
    missing = [package for package in packages if not _file(package)]
    if missing:
        cache.run(["apt-get", "download", "-q", *missing], cwd=cache.folder("debs"))


def unpack(packages, into):
    download(packages)
    for package in packages:
        cache.run(["dpkg", "-x", _file(package), into])
    for name in UNUSED:
        shutil.rmtree(os.path.join(into, "usr/share", name), ignore_errors=True)
    for name in ("lib/systemd", "usr/lib/systemd"):
        shutil.rmtree(os.path.join(into, name), ignore_errors=True)


def unpack_file(package, name, into):
    download([package])
    data = cache.run(["sh", "-c", f'dpkg --fsys-tarfile "$0" | tar -x -C "$1" ./{name}', _file(package), into])
    return data


def busybox():
    """A static busybox of the version the suite's image has, with upstream's default configuration. Debian's own
    package will not do: its shell prefers applets to PATH, and drops environment names such as `data-1`."""
    program = cache.path("bin", "busybox")
    if os.path.exists(program):
        return program
    source = cache.fresh_folder("src", "busybox")
    archive = os.path.join(source, "busybox.tar.bz2")
    with open(archive, "wb") as file:
        file.write(_source_archive())
    cache.run(["tar", "-xjf", archive, "--strip-components=1"], cwd=source)
    cache.run(["make", "defconfig"], cwd=source)
    _configure(os.path.join(source, ".config"))
    cache.run(["make", "oldconfig"], cwd=source, input="")
    cache.run(["nice", "make", "-j2", "busybox"], cwd=source)
    os.rename(os.path.join(source, "busybox"), program)
    return program


def _source_archive():
    """The orig archive beside Debian's binary package, on whatever mirror apt uses."""
    line = cache.run(["apt-get", "download", "--print-uris", "-qq", "busybox-static"])
    folder = re.search(r"'(http[^']*)/[^/']*'", line).group(1)
    url = urllib.parse.unquote(f"{folder}/busybox_{BUSYBOX}.orig.tar.bz2")
    data = urllib.request.urlopen(url, timeout=120).read()
    if (found := hashlib.sha256(data).hexdigest()) != BUSYBOX_SHA256:
        raise SystemExit(f"{os.path.basename(url)}: sha256 is {found}, and {BUSYBOX_SHA256} is expected")
    return data


def _configure(path):
    text = open(path).read()
    text = text.replace("# CONFIG_STATIC is not set", "CONFIG_STATIC=y")
    # tc does not compile with newer kernel headers, which lack CBQ.
    text = text.replace("CONFIG_TC=y", "# CONFIG_TC is not set")
    with open(path, "w") as file:
        file.write(text)
