"""Records of the chapter for its tests: every experiment trained at a size that takes no time."""

from __future__ import annotations

import pytest

from grokbook.chapters.gromov import experiments, studies
from grokbook.train import engine, records

P, WIDTH, SEEDS = 7, 12, 2

TINY = {
    "learning_curves": {"steps": 12},
    "formation": {"steps": 12, "frames": 3},
    "printed_scaling": {"steps": 12},
    "printed_scaling_plain": {"steps": 12},
    "adamw_curves": {"steps": 12},
    "phase_controls": {"steps": 12},
    "data_fraction": {"fractions": (0.4, 0.6, 0.8), "gd_steps": 12, "adam_steps": 12},
    "width_scaling": {"widths": (4, 16), "gd_steps": 12, "adamw_steps": 12},
    "modular_functions": {"steps": 12},
    "polynomials": {"steps": 12},
    "polynomials_wide": {"steps": 12},
    "polynomials_without_decay": {"steps": 12},
    "regularisers": {"steps": 12},
    "critical_fraction": {"moduli": (5,), "steps": 12},
    "transformer": {"d_model": 8, "steps": 12},
    "attention_curves": {"d_model": 8, "heads": 4, "steps": 12},
    "attention_heads": {"d_model": 8, "heads": (1, 4), "steps": 12},
}


def tiny(name: str):
    """An experiment of the chapter at the size of these tests."""
    factory = experiments.EXPERIMENTS[name]
    known = factory.__code__.co_varnames[: factory.__code__.co_argcount]
    sizes = {"p": P, "width": WIDTH, "seeds": SEEDS}
    return factory(**{key: value for key, value in sizes.items() if key in known}, **TINY[name])


def trained(experiment):
    """Its record, trained here and now."""
    places = list(experiment.shards())
    return records.merge(experiment, [engine.train(experiment.select(place)) for place in places], places)


@pytest.fixture(scope="session")
def tiny_records():
    """Every record and every study of the chapter, by name."""
    found = {name: trained(tiny(name)) for name in TINY}
    found |= {name: studies.study(name, P, WIDTH, SEEDS) for name in studies.STUDIES}
    found["analytic_widths"] = studies.analytic(P, (4, 16), SEEDS)
    found["line_shares"] = studies.line_shares(found)
    return found
