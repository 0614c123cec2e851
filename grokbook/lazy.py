"""PyTorch, imported when it is first used: drawing a figure from a record must not need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
else:

    class _Torch:
        """Stands where the module would; each attribute asks the real module."""

        def __getattr__(self, name: str) -> Any:
            import torch

            return getattr(torch, name)

    torch = _Torch()

__all__ = ["torch"]
