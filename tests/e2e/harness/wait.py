"""Waiting for a condition, with a limit and a reason."""
import time


class Timeout(Exception):
    pass


def until(what, condition, seconds=120, pause=0.5):
    """Calls `condition` until it returns something true, and returns that. Exceptions count as "not yet"."""
    end, last = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
            last = None
        except Exception as error:  # the last one is reported
            last = error
        time.sleep(pause)
    raise Timeout(f"{what}: not after {seconds} s" + (f"; last error: {last}" if last else ""))
