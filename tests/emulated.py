"""What a GPU would do with a step, emulated on the CPU by what PyTorch is asked to do, operator by operator."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

FREE = ("_unsafe_view", "detach", "alias", "lift_fresh")  # no kernel, besides views
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "_unique2", "equal", "is_nonzero")


def name_of(operator) -> str:
    return operator._schema.name.removeprefix("aten::")


def is_view(operator) -> bool:
    told = [value.alias_info for value in operator._schema.returns]
    return any(alias is not None and not alias.is_write for alias in told) or name_of(operator) in FREE


def writes(operator) -> bool:
    return any(value.alias_info is not None and value.alias_info.is_write for value in operator._schema.arguments)


class Log(TorchDispatchMode):
    """The kernels of a step on the device ``meta``; copies from the host and waiting for the device are errors."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[str] = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name = name_of(operator)
        if name in WAITS:
            raise RuntimeError(f"{name} waits for the device")
        found = operator(*args, **(kwargs or {}))
        tensors = [one for one in tree_leaves((args, kwargs, found)) if isinstance(one, torch.Tensor)]
        devices = {one.device.type for one in tensors if one.ndim or name in ("_to_copy", "copy_")}
        if len(devices) > 1:
            raise RuntimeError(f"{name} takes numbers from the host to the device")
        if devices == {"meta"} and not is_view(operator):
            self.kernels.append(name)
        return found


class Graph(TorchDispatchMode):
    """The operators of a step with the memory they use; ``replay`` runs them again, without Python."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple] = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if name_of(operator) in WAITS:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        found = operator(*args, **(kwargs or {}))
        if not is_view(operator):
            self.calls.append((operator, args, kwargs or {}, [] if writes(operator) else tree_leaves(found)))
        return found

    def replay(self) -> None:
        with torch._C._AutoDispatchBelowAutograd():
            for operator, args, kwargs, places in self.calls:
                found = tree_leaves(operator(*args, **kwargs))
                for place, value in zip(places, found, strict=False):
                    if isinstance(value, torch.Tensor) and value.numel():
                        place.copy_(value)


def graph_of(step):
    """In place of ``grokbook.train.capture.graph_of``: it warms up as CUDA asks, and records a step."""
    for _ in range(3):
        step()
    graph = Graph()
    with graph:
        step()
    return graph.replay
