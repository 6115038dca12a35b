"""The common checks of every strategy."""

from __future__ import annotations

import pytest

from sklearn_cl.strategies import EWC, KroneckerEWC, Naive, Replay, Strategy, available, chain
from sklearn_cl.strategies._registry import make_strategy
from sklearn_cl.testing import strategy_checks

STRATEGIES = [
    *map(make_strategy, available()),
    Replay(capacity=None, batch_size=3),
    Replay(capacity=7, policy="balanced"),
    Replay(capacity=7, policy="recent", strength=2.0),
    EWC(strength=1e4, decay=0.5),
    chain(Replay(), EWC()),
]


@pytest.mark.parametrize("check", strategy_checks(), ids=lambda check: check.__name__[7:])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_common(strategy, check):
    check(strategy)


class Noisy(Strategy):
    """Breaks the rules on purpose."""

    def __init__(self, strength=1.0, kind="draws"):
        self.strength = strength
        self.kind = kind
        if kind == "learns in init":
            self.state_ = 1

    def adjust(self, grad, learner):
        if self.kind == "draws":
            import torch

            grad += torch.randn(len(grad))
        if self.kind == "counts":
            Noisy.calls = getattr(Noisy, "calls", 0) + 1
            grad *= 1 + Noisy.calls


@pytest.mark.parametrize("kind", ["draws", "counts", "learns in init"])
def test_the_checks_can_fail(kind):
    failed = 0
    for check in strategy_checks():
        try:
            check(Noisy(kind=kind))
        except AssertionError:
            failed += 1
    assert failed >= 1


def test_available_names_one_line_each():
    assert {"naive", "no_retrain", "from_scratch", "cumulative", "replay", "ewc"} <= set(
        available()
    )
    assert all("\n" not in line and line.endswith(".") for line in available().values())


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Replay(capacity=0), r"capacity must be None or an integer at least 1; got 0\."),
        (Replay(capacity=2.5), r"capacity must be None or an integer at least 1; got 2\.5\."),
        (Replay(policy="best"), r"policy must be one of 'reservoir', .*; got 'best'\."),
        (Replay(batch_size=0), r"batch_size must be None or an integer at least 1; got 0\."),
        (Replay(strength=-1.0), r"strength must be 'share' or a finite number at least 0; got -1"),
        (EWC(strength=-0.5), r"strength must be a finite number at least 0; got -0\.5\."),
        (EWC(strength=float("nan")), r"strength must be .*; got nan\."),
        (EWC(decay=1.5), r"decay must be a finite number at least 0 and at most 1; got 1\.5\."),
        (KroneckerEWC(strength=-1), r"strength must be .* at least 0; got -1\."),
        (chain(Naive(), EWC(strength=-2.0)), r"strength must be .* at least 0; got -2\.0\."),
    ],
)
def test_bad_parameters_are_named(strategy, message):
    with pytest.raises(ValueError, match=message):
        strategy.check_params()
