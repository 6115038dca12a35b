"""Checks of hyper-parameters: the error names the parameter, what it must be and what it got."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(
    name: str,
    value: Any,
    *,
    low: float,
    high: float = float("inf"),
    integer: bool = False,
    open_low: bool = False,
    open_high: bool = False,
    also: Collection[Any] = (),
) -> None:
    """Raise a ValueError unless ``value`` is a number in the interval, or one of ``also``."""
    if any(value is other or (isinstance(other, str) and value == other) for other in also):
        return
    right_type = isinstance(value, Integral if integer else Real)
    if right_type and not isinstance(value, bool | np.bool_):
        above = value > low if open_low else value >= low
        below = value < high if open_high else value <= high
        if above and below and value != float("inf"):
            return
    words = [repr(other) for other in also]
    bounds = f"{'above' if open_low else 'at least'} {low:g}"
    if high != float("inf"):
        bounds += f" and {'below' if open_high else 'at most'} {high:g}"
    words.append(f"{'an integer' if integer else 'a finite number'} {bounds}")
    raise ValueError(f"{name} must be {' or '.join(words)}; got {value!r}.")


def check_option(name: str, value: Any, options: Collection[Any]) -> None:
    """Raise a ValueError unless ``value`` is one of ``options``."""
    if not any(
        value is option or (type(value) is type(option) and value == option) for option in options
    ):
        known = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {known}; got {value!r}.")


def check_detector(name: str, detector: Any) -> None:
    """Raise a ValueError unless the detector is None or an object like those of river."""
    has = hasattr(detector, "update") and hasattr(detector, "drift_detected")
    if detector is not None and (isinstance(detector, type) or not has):
        raise ValueError(
            f"{name} must be an object with update(x) and drift_detected, as those of river.drift; "
            f"got {detector!r}."
        )
