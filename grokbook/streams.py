"""Random numbers as functions of a seed, a purpose, a step and a place: the same on every device, and without a state.

A number is a hash of its counter, the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), in whole numbers that wrap
around: a graph captured on a GPU computes it from the step that lies on the device, and a resumed training goes on with
the numbers that it would have had.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, tau

import numpy as np
from numpy.typing import NDArray

from grokbook.lazy import Tensor, torch

PURPOSES = {"dropout": 3, "update_noise": 4, "weight_noise": 5}  # 1 is the order of an epoch
GOLDEN = 0x9E3779B97F4A7C15 - 2**64
CHUNK = 2**15  # counters that a core's cache holds while they are mixed


def keys(seeds: Sequence[int], purpose: str) -> NDArray[np.int64]:
    """A key for each seed, (M, 1)."""
    drawn = [np.random.SeedSequence([seed, PURPOSES[purpose]]).generate_state(1, np.uint64) for seed in seeds]
    return np.stack(drawn).view(np.int64)


class Stream:
    """The numbers of M members, whose ``keys`` are (M, 1), at one step; every call takes the next places of it.

    The step, ``count``, is a tensor on the device where it is captured as a graph.
    """

    def __init__(self, keys: Tensor, count: int | Tensor) -> None:
        self.key = _mixed(keys + (_wrapped(count * GOLDEN) if isinstance(count, int) else count.long() * GOLDEN))
        self.taken = 0

    def bits(self, count: int) -> Tensor:
        """(M, count) whole numbers of 32 bits, evenly from -2**31 to 2**31 - 1."""
        hashes = -(-count // 2)  # each has 64 bits
        chunk = min(hashes, CHUNK) if self.key.is_cpu else hashes
        places = self.key + torch.arange(1, chunk + 1, device=self.key.device) * GOLDEN
        begins = range(self.taken, self.taken + hashes, chunk)
        parts = [_mixed(places + _wrapped(begin * GOLDEN)).view(torch.int32) for begin in begins]
        self.taken += hashes
        return (torch.cat(parts, 1) if len(parts) > 1 else parts[0])[:, :count]

    def kept(self, shape: Sequence[int], probability: float) -> Tensor:
        """(M, *shape): whether a number is kept where each is dropped with a probability."""
        return (self.bits(prod(shape)) >= round(probability * 2**32) - 2**31).unflatten(1, shape)

    def normal(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """(M, *shape) independent normal numbers, of the kind of ``like`` (Box and Muller, 1958)."""
        half = -(-prod(shape) // 2)
        lanes = self.bits(2 * half)
        first, second = (lanes[:, :half] >> 9).to(like.dtype), lanes[:, half:].to(like.dtype)
        radius = first.add_(2**22 + 0.5).div_(2**23).log_().mul_(-2).sqrt_()
        angle = second * (tau / 2**32)
        return torch.cat([radius * angle.cos(), radius * angle.sin()], 1)[:, : prod(shape)].unflatten(1, shape)


def _mixed(z: Tensor) -> Tensor:
    """Hashes of whole numbers, in their place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z.bitwise_xor_((z >> shift).bitwise_and_(2 ** (64 - shift) - 1)).mul_(_wrapped(factor))
    return z.bitwise_xor_((z >> 31).bitwise_and_(2**33 - 1))


def _wrapped(number: int) -> int:
    """A whole number as 64 bits with a sign hold it."""
    return (number + 2**63) % 2**64 - 2**63
