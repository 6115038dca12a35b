"""Chains: the hooks of all parts run, and their parameters have names."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.strategies import EWC, Cumulative, Naive, Replay, Strategy, chain
from tests.conftest import weights

X, Y, EXPERIENCE = make_drift_stream(3, 80, random_state=0)


def learnt(strategy):
    reg = ContinualMLPRegressor((16,), strategy=strategy, max_iter=8, random_state=0)
    return reg.fit(X, Y, experience=EXPERIENCE).predict(X)


@pytest.mark.parametrize("part", [Replay(capacity=30), EWC(strength=5.0)])
def test_chain_with_naive_is_the_part(part):
    np.testing.assert_array_equal(learnt(chain(part, Naive())), learnt(part))
    np.testing.assert_array_equal(learnt(chain(Naive(), part)), learnt(part))


def test_both_parts_act():
    both = learnt(chain(Replay(capacity=30), EWC(strength=5.0)))
    assert not np.array_equal(both, learnt(Replay(capacity=30)))
    assert not np.array_equal(both, learnt(EWC(strength=5.0)))


def test_two_equal_penalties_are_one_of_twice_the_strength():
    twice = learnt(chain(EWC(strength=1.0), EWC(strength=1.0)))
    np.testing.assert_allclose(twice, learnt(EWC(strength=2.0)), rtol=1e-3, atol=1e-2)


def test_autograd_penalties_add_up():
    class Pull(Strategy):
        def __init__(self, strength):
            self.strength = strength

        def penalty(self, batch, learner):
            return self.strength * learner.loss(batch)

    # Adam does not see the scale of the loss, plain gradient descent does.
    def learn(strategy, rate):
        reg = ContinualMLPRegressor(
            (8,),
            strategy=strategy,
            solver="sgd",
            momentum=0,
            learning_rate_init=rate,
            max_iter=5,
            alpha=0,
            random_state=0,
            dtype="float64",
        )
        return reg.fit(X, Y).predict(X)

    np.testing.assert_allclose(
        learn(chain(Pull(1.0), Pull(2.0)), 0.01), learn(Naive(), 0.04), rtol=1e-10
    )


def test_parameters_have_names():
    both = chain(Replay(), EWC(), EWC())
    both.set_params(replay__capacity=7, ewc__strength=2.0)
    both.set_params(**{"ewc-2": EWC(decay=0.5), "ewc-2__strength": 3.0})
    twin = clone(both)
    params = twin.get_params()
    assert params["replay__capacity"] == 7
    assert (params["ewc__strength"], params["ewc-2__strength"], params["ewc-2__decay"]) == (
        2.0,
        3.0,
        0.5,
    )
    assert twin.parts[0] is not both.parts[0]
    with pytest.raises(ValueError, match=r"parameter must be one of .*replay__capacity"):
        both.set_params(lwf__strength=1.0)
    reg = ContinualMLPRegressor(strategy=both).set_params(strategy__replay__capacity=9)
    assert reg.get_params()["strategy__replay__capacity"] == 9


@pytest.mark.parametrize("parts", [(), ("replay",), (Replay,)])
def test_parts_must_be_strategies(parts):
    with pytest.raises(ValueError, match="parts must be at least one strategy"):
        chain(*parts)


def test_two_that_rehearse_divide_the_past(tiny, make_linear):
    """Twice everything is once everything: the joint fit."""
    both = chain(Replay(capacity=None), Replay(capacity=None), EWC(strength=0.0))
    reg, joint = make_linear(both), make_linear(Cumulative())
    for X, y in tiny:
        reg.partial_fit(X, y)
        joint.partial_fit(X, y)
    np.testing.assert_allclose(weights(reg), weights(joint), atol=1e-9)


def test_numbers_of_strength_add_up(tiny, make_linear):
    one = make_linear(Replay(capacity=None, strength=3.0))
    two = make_linear(chain(Replay(None, strength=1.0), Replay(None, strength=2.0)))
    for X, y in tiny[:2]:
        one.partial_fit(X, y)
        two.partial_fit(X, y)
    np.testing.assert_allclose(weights(two), weights(one), atol=1e-9)
