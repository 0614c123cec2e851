"""Records of the chapter for its tests: every experiment trained at a size that takes no time."""

from __future__ import annotations

import dataclasses

import pytest

from grokbook.chapters.liu import experiments, studies
from grokbook.train import engine, records

P, DRAWS = 6, 40

TINY = {
    "phases_rates": {"p": P, "train_size": 18, "coarseness": 4, "steps": 40},
    "phases_regression": {"p": P, "train_size": 18, "coarseness": 5, "steps": 40},
    "phases_classification": {"p": P, "train_size": 18, "coarseness": 5, "steps": 40},
    "phases_group": {"coarseness": 5, "steps": 40},
    "phases_rates_splits": {"p": P, "train_size": 18, "coarseness": 6, "steps": 40, "seeds": 2},
    "phases_regression_splits": {"p": P, "train_size": 18, "coarseness": 8, "steps": 40, "seeds": 2},
    "phases_classification_splits": {"p": P, "train_size": 18, "coarseness": 8, "steps": 40, "seeds": 2},
    "phases_group_splits": {"coarseness": 8, "steps": 40, "seeds": 2},
    "phases_batch": {"p": P, "train_size": 18, "coarseness": 4, "steps": 40, "seeds": 2},
    "phases_scale": {"p": P, "train_size": 18, "coarseness": 4, "steps": 40, "seeds": 2},
    "phases_decay": {"p": P, "train_size": 18, "coarseness": 3, "steps": 40, "seeds": 2},
    "fractions": {"p": P, "steps": 40, "seeds": 2},
    "structure_times": {"p": P, "steps": 300, "seeds": 2, "sizes": (25, 45, 54)},
    "trajectory": {"p": P, "train_size": 18, "steps": 40, "frames": 6},
    "four_symbols": {"steps": 40, "seeds": 3},
    "planes": {"p": 5, "seeds": 2, "shorten": 200},
    "critical_sizes": {"moduli": (4, 6), "steps": 60, "seeds": 2, "shares": (0.4, 0.8)},
    "dimensions": {"p": P, "train_size": 18, "steps": 40, "seeds": 2, "values": (1, 3)},
    "group_fractions": {"steps": 40, "seeds": 2, "sizes": (12, 24, 30)},
    "image_curves": {"steps": 30, "seeds": 2},
    "image_phases": {"steps": 30, "seeds": 1, "coarseness": 4, "train_size": 100},
    "image_sizes": {"steps": 30, "seeds": 1},
    "ring": {"p": 7, "d_model": 8, "layers": 1, "hidden": 8, "dropout": 0.1, "steps": 30, "seeds": 2},
    "components": {"p": 7, "d_model": 8, "layers": 1, "hidden": 8, "steps": 30, "seeds": 2, "frames": 4},
    "dropout_times": {
        **{"p": 7, "d_model": 8, "layers": 1, "hidden": 8, "steps": 30, "seeds": 2},
        "probabilities": (0.0, 0.2),
    },
    "phases_transformer": {
        **{"p": 7, "d_model": 8, "layers": 1, "hidden": 8, "steps": 30},
        **{"rates": (1e-4, 1e-2), "decays": (0.1, 2.0)},
    },
}


def tiny(name: str):
    """An experiment of the chapter at the size of these tests: small nets, few steps."""
    chosen = experiments.EXPERIMENTS[name](**TINY[name])

    def small(run):
        if hasattr(run.model, "hidden") and isinstance(run.model.hidden, tuple):
            return dataclasses.replace(run, model=dataclasses.replace(run.model, hidden=(12,) * len(run.model.hidden)))
        return run

    return dataclasses.replace(chosen, runs=tuple(map(small, chosen.runs)))


def trained(experiment):
    """Its record, trained here and now."""
    places = list(experiment.shards())
    return records.merge(experiment, [engine.train(experiment.select(place)) for place in places], places)


@pytest.fixture(scope="session")
def tiny_records():
    """Every record and every study of the chapter, by name."""
    found = {name: trained(tiny(name)) for name in TINY}
    found |= {name: studies.STUDIES[name](P if name != "spectra" else 7, DRAWS) for name in studies.STUDIES}
    found["component_accuracy"] = studies.component_accuracy(found)
    return found
