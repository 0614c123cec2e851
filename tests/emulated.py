"""What a GPU would do with a step, emulated on the CPU by what PyTorch is asked to do, operator by operator."""

from __future__ import annotations

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

FREE = ("_unsafe_view", "detach", "alias", "lift_fresh")  # no kernel, besides views
MOVES = ("_to_copy", "copy_")  # from one device to another, where all others stay on one
GPU = torch.device("cuda:0")
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
        devices = {one.device.type for one in tensors if one.ndim or name in MOVES}
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


class There(torch.Tensor):
    """A tensor that says it lies on a GPU. Its numbers lie on the host, and PyTorch's own code takes it for one of
    ``meta``, a device that every build knows."""

    device = property(lambda self: GPU)
    is_cuda, is_cpu, is_meta = (property(lambda self, answer=answer: answer) for answer in (True, False, False))

    @staticmethod
    def __new__(cls, numbers):
        how = {"strides": numbers.stride(), "storage_offset": numbers.storage_offset(), "dtype": numbers.dtype}
        made = torch.Tensor._make_wrapper_subclass(cls, numbers.shape, **how, device="meta")
        made.numbers = numbers
        return made

    def __getitem__(self, index):
        return super().__getitem__(torch.tensor(index).to(GPU) if isinstance(index, list) else index)

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        raise RuntimeError(f"{name_of(operator)} without the GPU that its tensors are on")


class Memory(TorchDispatchMode):
    """Tensors of two devices do not meet, as on a machine with a GPU; all are computed on the host."""

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name, kwargs = name_of(operator), kwargs or {}
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        there = {id(one.numbers): one for one in tensors if isinstance(one, There)}
        if there and name not in MOVES and any(one.ndim for one in tensors if not isinstance(one, There)):
            raise RuntimeError(f"{name}: expected all tensors to be on the same device")
        stays = bool(there) if name != "copy_" else isinstance(args[0], There)
        if (goes := kwargs.get("device")) is not None:
            stays, kwargs = torch.device(goes).type != "cpu", {**kwargs, "device": "cpu"}
        args, kwargs = tree_map_only(There, lambda one: one.numbers, (args, kwargs))
        found = operator(*args, **kwargs)
        # What an operator writes into stays the same tensor.
        return tree_map_only(torch.Tensor, lambda one: there.get(id(one), There(one)), found) if stays else found


@contextlib.contextmanager
def gpu(monkeypatch):
    """A GPU called ``GPU``: what lies there takes no part in what is on the host, and becomes no array."""
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *of: "an emulated GPU")
    with torch.autograd.set_multithreading_enabled(False), Memory():
        yield GPU
