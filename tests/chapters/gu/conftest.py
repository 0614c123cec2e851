"""Records of the chapter for its tests: every experiment trained at a size that takes no time."""

from __future__ import annotations

import pytest

from grokbook.chapters.gu import experiments, studies
from grokbook.train import engine, records

P, D, SEEDS = 7, 8, 2

TINY = {
    "base": {"steps": 24},
    "holes": {"squares": (2, 3), "strips": (2, 3), "train_fraction": 0.5, "steps": 24},
    "holes_by_text": {"squares": (2, 3), "strips": (2, 3), "train_fraction": 0.5, "steps": 24},
    "fractions": {"steps": 24},
    "dnn": {"width": 12, "steps": 24},
    "primes": {"moduli": (5, 11), "steps": (24, 24)},
    "largest_prime": {"p": 13, "steps": 24},
    "overlap": {"offsets": (0, 3, 7), "steps": 24},
    "toeplitz": {"train_fractions": (0.5, 0.4), "steps": 24},
    "layers": {"depths": (1, 2), "steps": 24},
    "width_apart": {"offset": 5, "widths": (8, 12), "steps": 24},
    "width_shared": {"widths": (8, 12), "steps": 24},
    "width_ceiling": {"widths": (8, 12), "steps": 24},
    "width_boundary": {"widths": (8, 12), "steps": 24},
    "operations": {"d_model": 8, "train_fraction": 0.4, "steps": 24},
    "positions": {"widths": (8, 12), "steps": (24, 24)},
    "seeds_apart": {"fixed": 2, "steps": 24},
    "diameters": {"steps": 24},
}


def tiny(name: str):
    """An experiment of the chapter at the size of these tests."""
    factory = experiments.EXPERIMENTS[name]
    known = factory.__code__.co_varnames[: factory.__code__.co_argcount]
    sizes = {"p": P, "d_model": D, "seeds": SEEDS}
    return factory(**{**{key: value for key, value in sizes.items() if key in known}, **TINY[name]})


def trained(experiment):
    """Its record, trained here and now."""
    places = list(experiment.shards())
    return records.merge(experiment, [engine.train(experiment.select(place)) for place in places], places)


@pytest.fixture(scope="session")
def tiny_records():
    """Every record and every study of the chapter, by name."""
    found = {name: trained(tiny(name)) for name in TINY}
    found |= {name: studies.study(name, P) for name in studies.STUDIES}
    return found | {name: study(found) for name, study in studies.DERIVED.items()}
