"""A step as a CUDA graph, one launch where there were hundreds; and what is done where it cannot be one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grokbook.lazy import Tensor, torch
from grokbook.train import say


def capture(step: Callable[[], None], tables: Sequence[Tensor]) -> Callable[[], None]:
    """A step as a graph; where that fails, the step itself, and a line that says so.

    It reads and writes the same memory at every call. ``tables`` are what it changes: warming up takes real steps, and
    all is as it was afterwards, whatever happened.

    Raises:
        torch.OutOfMemoryError: there is too little memory for the graph.
        RuntimeError: the device is lost to this process (see ``lost``).
    """
    before = [table.clone() for table in tables]
    try:
        return graph_of(step)
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or lost(error):
            raise
        why = (str(error) or type(error).__name__).splitlines()[0]
        say(f"a step cannot be captured as a graph ({why}); training goes on step by step, several times slower")
        return step
    finally:
        for table, kept in zip(tables, before, strict=True):
            table.copy_(kept)


def graph_of(step: Callable[[], None]) -> Callable[[], None]:
    here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    aside.wait_stream(here)
    try:
        with torch.cuda.stream(aside):
            for _ in range(3):  # which CUDA asks for ahead of a capture
                step()
        here.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
    finally:
        torch.cuda.set_stream(here)  # which a capture that fails does not do
    return graph.replay


FULL = ("OutOfMemoryError", "out of memory", "ALLOC_FAILED")  # what CUDA says of a memory that is full


def lost(error: BaseException) -> bool:
    """Whether an error leaves this process without its GPU, so that only a fresh one can go on."""
    said = str(error)  # of a refused or broken capture, which does not, the first line names it
    return "CUDA error" in said and "captur" not in said.splitlines()[0] and not any(one in said for one in FULL)
