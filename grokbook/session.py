"""What crosses into kernels and worker processes besides a chapter's parameters: one object, read in one place.

A build hands it on as JSON in the variable ``GROKBOOK``. Where that is not set, what a user may set is read:
``GROKBOOK_CACHE``, ``GROKBOOK_DEVICE``, ``GROKBOOK_FRESH`` and ``GROKBOOK_SCHEDULER``.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Session:
    """How this process trains and shows."""

    scale: str = "full"  #: or ``"quick"``
    device: str = "auto"  #: or ``"cpu"`` or ``"cuda"``
    fresh: bool = False  #: whether stored records are ignored
    figures: str = ""  #: stands for figures/: a chapter saves into <it>/<chapter>/; empty: nothing is saved
    log: str = ""  #: a JSON-lines file; every record obtained appends a line
    progress: str = ""  #: a text file; lines appended to it are shown in the terminal
    turn: str = ""  #: a file that is locked by the chapter which trains with all cores or the GPU
    cache: str = ""  #: where records trained here are kept; empty: the usual place
    scheduler: str = ""  #: address of a Dask scheduler whose workers train

    def variable(self) -> dict[str, str]:
        """The environment that hands it on."""
        return {"GROKBOOK": json.dumps(asdict(self))}


def current() -> Session:
    """What this process was handed, or else what the user says; ``ValueError`` of what is no session."""
    if handed := os.environ.get("GROKBOOK"):
        try:
            return Session(**json.loads(handed))
        except (TypeError, ValueError) as error:
            raise ValueError(f"the variable GROKBOOK = {handed!r} is not what a build hands on: {error}") from None
    names = "CACHE", "DEVICE", "FRESH", "SCHEDULER"
    cache, device, fresh, scheduler = (os.environ.get(f"GROKBOOK_{name}", "") for name in names)
    cache = cache and os.path.abspath(cache)  # a kernel has another working directory
    return Session(device=device or "auto", fresh=fresh not in ("", "0"), cache=cache, scheduler=scheduler)
