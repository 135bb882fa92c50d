"""The cache folder: what is downloaded or built once. CORACLE_E2E_CACHE, by default ~/.cache/coracle-e2e."""
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess

ROOT = os.environ.get("CORACLE_E2E_CACHE") or os.path.expanduser("~/.cache/coracle-e2e")
# Runs of two caches have names of their own on one machine.
IDENTITY = hashlib.sha256(ROOT.encode()).hexdigest()[:6]
REPOSITORY = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def path(*parts):
    """A path in the cache; the folder that holds it exists afterwards."""
    full = os.path.join(ROOT, *parts)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    return full


def folder(*parts):
    full = os.path.join(ROOT, *parts)
    os.makedirs(full, exist_ok=True)
    return full


def fresh_folder(*parts):
    shutil.rmtree(os.path.join(ROOT, *parts), ignore_errors=True)
    return folder(*parts)


@contextlib.contextmanager
def building():
    """One process at a time builds into the cache; others wait for it."""
    with open(path("lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another build in {ROOT}", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def claim(name):
    """Claims a run of this name for this process; the claim lasts as long as what is returned."""
    file = open(path("runs", f"{name}.lock"), "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failed(f"the run {name} is going on: wait for its end, or end it")
    return file


class Failed(RuntimeError):
    """A program failed; the text says which, and has the end of what it printed."""


def run(command, **options):
    """Runs a program, and returns what it prints. Raises Failed where it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def server():
    """The binary under test: CORACLE, or the newest build of this checkout."""
    if named := os.environ.get("CORACLE"):
        return named
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(REPOSITORY, "target")
    built = [os.path.join(target, kind, "coracle") for kind in ("release", "debug")]
    built = [program for program in built if os.access(program, os.X_OK)]
    if not built:
        raise SystemExit("no coracle is built: run cargo build --release -p coracle, or name one with CORACLE=FILE")
    return max(built, key=os.path.getmtime)
