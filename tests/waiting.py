"""For what other processes do in their own time."""

import time


def eventually(condition, what, seconds=120, every=0.01):
    """Wait until a condition holds; what was waited for is told if it does not in so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(every)
