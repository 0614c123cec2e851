"""How numbers are written, in one place for all pages: digits, units, and what never happened."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from html import escape

import numpy as np

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Three digits: 2.44·10⁻⁹, 0.0107, 1.23, 12,300, 4.00·10¹²; words for infinity, −∞ below, a dash for none."""
    if value is None or np.isnan(value):
        return "–"
    if np.isinf(value):
        return "not reached" if value > 0 else "−∞"  # a time that did not come while one looked
    if 0 < abs(value) < 1e-3 or abs(value) >= 1e9:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}·10{str(int(exponent)).translate(RAISED)}".replace("-", "−")
    if value == int(value) or abs(value) >= 1000:
        return f"{round(value):,}".replace("-", "−")
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{digits}f}".replace("-", "−")


def percent(value: float | None) -> str:
    """A share as a percentage: 50.5 %, 1,234 %; a dash for none."""
    if value is None or not np.isfinite(value):
        return "–"
    form = ",.0f" if abs(value) >= 9.995 else ".4g" if 0.99 < abs(value) < 1 else ".3g"
    return f"{100 * value:{form}} %".replace("-", "−")


def degrees(value: float | None) -> str:
    """An angle given in degrees: 2.4°."""
    return "–" if value is None or not np.isfinite(value) else f"{number(value)}°"


def times(value: float | None) -> str:
    """A factor: ×4.5."""
    return number(value) if value is None or not np.isfinite(value) else f"×{number(value)}"


def seconds(value: float) -> str:
    """A duration: 0.3 s, 45 s, 12 min, 3.1 h."""
    if value < 100:
        return f"{value:{'.0f' if value >= 1 else '.1g'}} s"
    return f"{value / 60:.0f} min" if value < 6000 else f"{value / 3600:,.1f} h"


def suggest(name: str, known: Iterable[str]) -> str:
    """' (did you mean "x"?)' for the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f' (did you mean "{near[0]}"?)' if near else ""


def unbroken(text: str) -> str:
    """A text whose percent signs stay on the line of their numbers."""
    return re.sub(r"(?<=[\d`]) %", "\u00a0%", text)


def html(text: str) -> str:
    """A text as HTML: t_0.5 and n_h with an index below the line, a percent sign on the line of its number."""
    return re.sub(r"\b([A-Za-z])_(\w+(?:\.\d+)?)", r"\1<sub>\2</sub>", unbroken(escape(text)))
