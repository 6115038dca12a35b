"""Chain: several strategies at once, as one."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

from torch import Tensor

from sklearn_cl._learner import Learner
from sklearn_cl._rows import Rows
from sklearn_cl.strategies._base import Strategy


class Chain(Strategy):
    """Strategies whose hooks run one after the other; made by `chain`.

    Parameters
    ----------
    parts : tuple of Strategy
        The strategies. Each is a parameter under its name, so that ``replay__capacity`` is
        the capacity of the `Replay` among them; a second one of a kind is ``replay-2``.
    """

    name = ""

    def __init__(self, parts: tuple[Strategy, ...]) -> None:
        self.parts = parts

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this chain and, if ``deep``, of its parts."""
        params: dict[str, Any] = {"parts": self.parts}
        if deep:
            for name, part in self._named().items():
                params[name] = part
                params |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this chain, or replace or set those of its parts."""
        if "parts" in params:
            self.parts = params.pop("parts")
        for name in [name for name in params if name in self._named()]:
            named = self._named() | {name: params.pop(name)}
            self.parts = tuple(named.values())
        for key, value in params.items():
            name, _, parameter = key.partition("__")
            if name not in self._named() or not parameter:
                known = ", ".join(self.get_params())
                raise ValueError(f"parameter must be one of {known}; got {key!r}.")
            self._named()[name].set_params(**{parameter: value})
        return self

    def check_params(self) -> None:
        _check_parts(self.parts)
        for part in self.parts:
            part.check_params()

    @property
    def holds_parameters(self) -> bool:  # type: ignore[override]
        """Whether any part does."""
        return any(part.holds_parameters for part in self.parts)

    def begin(self, experience: Rows, learner: Learner) -> Rows | None:
        rows: Rows | None = experience
        n_rehearsing = sum(part.rehearses for part in self.parts)
        for part in self.parts:
            part.portion = self.portion / max(1, n_rehearsing) if part.rehearses else 1.0
            rows = None if rows is None else part.begin(rows, learner)
        return rows

    def rehearse(self, batch: Rows, learner: Learner) -> Rows:
        for part in self.parts:
            batch = part.rehearse(batch, learner)
        return batch

    def penalty(self, batch: Rows, learner: Learner) -> Tensor | None:
        terms = [part.penalty(batch, learner) for part in self.parts]
        present = [term for term in terms if term is not None]
        return sum(present[1:], present[0]) if present else None

    def adjust(self, grad: Tensor, learner: Learner) -> None:
        for part in self.parts:
            part.adjust(grad, learner)

    def consolidate(self, experience: Rows, learner: Learner) -> None:
        for part in self.parts:
            part.consolidate(experience, learner)

    @property
    def n_bytes(self) -> int:
        """Bytes of what all parts have learnt."""
        return sum(part.n_bytes for part in self.parts)

    def _named(self) -> dict[str, Strategy]:
        count: Counter[str] = Counter()
        named = {}
        for part in self.parts:
            name = part.name or type(part).__name__.lower()
            count[name] += 1
            named[name if count[name] == 1 else f"{name}-{count[name]}"] = part
        return named


def chain(*parts: Strategy) -> Chain:
    """Combine strategies into one whose hooks run in the order given.

    Put a strategy that watches or projects the gradient before those that add to it. Those that
    rehearse divide the past evenly, so that a step still estimates the gradient of training on
    everything; where their ``batch_size`` is None they share one batch.

    Parameters
    ----------
    *parts : Strategy
        At least one strategy.

    Returns
    -------
    Chain
        A strategy; its parameters are ``replay__capacity``, ``ewc__strength`` and so on.

    Raises
    ------
    ValueError
        If there is no part, or one is not a strategy.

    Examples
    --------
    >>> from sklearn_cl.strategies import EWC, Replay, chain
    >>> both = chain(Replay(capacity=200), EWC(strength=10.0))
    >>> both.set_params(replay__capacity=100).get_params()["replay__capacity"]
    100
    """
    _check_parts(parts)
    return Chain(parts)


def _check_parts(parts: tuple[Strategy, ...]) -> None:
    if not parts or not all(isinstance(part, Strategy) for part in parts):
        raise ValueError(f"parts must be at least one strategy; got {parts!r}.")
