"""Names of the strategies."""

from __future__ import annotations

import importlib
from typing import Any

from sklearn.base import clone

from sklearn_cl.strategies._base import Strategy


def available() -> dict[str, str]:
    """List the strategies by name.

    Returns
    -------
    dict of str to str
        For each name that an estimator's ``strategy`` takes, what it does, in one line.

    Examples
    --------
    >>> from sklearn_cl.strategies import available
    >>> available()["naive"]
    'Train on each experience as it comes, and on nothing else: fine-tuning.'
    """
    return {name: str(cls.__doc__).splitlines()[0] for name, cls in sorted(_classes().items())}


def make_strategy(strategy: Any) -> Strategy:
    """A fresh strategy from a name or an object; the object is cloned.

    Raises
    ------
    ValueError
        If the name is unknown, or what was given is not a strategy.
    """
    if isinstance(strategy, Strategy):
        fresh: Strategy = clone(strategy)
        return fresh
    cls = _classes().get(strategy) if isinstance(strategy, str) else None
    if cls is None:
        known = ", ".join(repr(name) for name in sorted(_classes()))
        raise ValueError(f"strategy must be a Strategy object or one of {known}; got {strategy!r}.")
    return cls()


def _classes() -> dict[str, type[Strategy]]:
    package = importlib.import_module("sklearn_cl.strategies")
    public = [getattr(package, name) for name in package.__all__]
    classes = [cls for cls in public if isinstance(cls, type) and issubclass(cls, Strategy)]
    return {cls.name: cls for cls in classes if cls.name}
