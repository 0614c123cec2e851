"""PyTorch, imported when it is first used: drawing a figure from a record must not need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:

    class _Torch:
        """Stands where the module would, and is asked for each attribute once: a step asks a dozen times."""

        def __getattr__(self, name: str) -> Any:
            import torch

            return self.__dict__.setdefault(name, getattr(torch, name))

    torch, Generator, Tensor = _Torch(), Any, Any  # types for annotations alone

Params = dict[str, Tensor]  # by name, with a leading member axis in a stack

__all__ = ["Generator", "Params", "Tensor", "torch"]
