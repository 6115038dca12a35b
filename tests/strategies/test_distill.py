"""Distillation against its identities."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import DER, DERPlusPlus, LwF, Naive, Replay
from tests.conftest import weights


def learn(strategy, **params):
    chance = np.random.default_rng(0)
    settings = {"max_iter": 8, "random_state": 0, "batch_size": 16}
    reg = ContinualMLPRegressor((8,), strategy=strategy, **(settings | params))
    for k in range(3):
        X = chance.normal(k, size=(60, 3))
        reg.partial_fit(X, X[:, 0] * k)
    return reg, reg.predict(np.linspace(-2, 4, 60).reshape(20, 3))


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (LwF(strength=1.0), [0.5, 1.0]),
        (LwF(strength=1.5, points="memory", capacity=None), [5 / 12, 25 / 24]),
        (DER(alpha=1.5, capacity=None), [5 / 12, 25 / 24]),
        (DERPlusPlus(alpha=0.5, beta=1.0, capacity=None), [5 / 12, 25 / 24]),
        (LwF(strength=0.0), [1 / 3, 1 / 3]),
    ],
    ids=repr,
)
def test_where_to_distil_is_the_whole_argument(tiny, make_linear, strategy, expected):
    (X1, y1), (X2, y2), _ = tiny
    reg = make_linear(strategy).partial_fit(X1, y1)
    np.testing.assert_allclose(weights(reg), [2 / 3, 5 / 3], atol=1e-10)
    # The first fit is not perfect, so the answers differ from the targets, and yet the
    # minimum is the same: the residuals are orthogonal to the inputs.
    np.testing.assert_allclose(weights(reg.partial_fit(X2, y2)), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DER(alpha=0.0), Naive()),
        (DERPlusPlus(alpha=0.0, beta=0.0), Naive()),
        (LwF(strength=0.0), Naive()),
        (LwF(strength=0.0, points="memory"), Naive()),
        (DERPlusPlus(alpha=0.0, beta=2.0), Replay(strength=2.0)),
        (DERPlusPlus(alpha=2.0, beta=0.0), DER(alpha=2.0)),
        (DERPlusPlus(alpha=0.75, beta=0.25), Replay(strength=1.0, distill=0.75)),
    ],
    ids=repr,
)
def test_equal_bit_by_bit(one, other):
    np.testing.assert_array_equal(learn(one)[1], learn(other)[1])


def test_one_mixed_target_is_both_terms():
    f, y, z, a, b = 0.3, 2.0, 1.0, 2.0, 3.0
    strength, part = DERPlusPlus(alpha=a, beta=b).mixture()
    mixed = y + part * (z - y)
    assert mixed == pytest.approx(1.6)
    both = a * (f - z) ** 2 + b * (f - y) ** 2
    assert both == pytest.approx(9.65)
    assert strength * (f - mixed) ** 2 + a * b / (a + b) * (z - y) ** 2 == pytest.approx(both)


def test_a_strong_teacher_holds_the_answers():
    chance = np.random.default_rng(0)
    X, new = chance.uniform(-2, 2, size=(2, 300, 4))

    def moved(strategy):
        reg = ContinualMLPRegressor(strategy=strategy, random_state=0).partial_fit(X, X[:, 0])
        taught = reg.predict(new)
        reg.partial_fit(new, taught + 5.0)
        return np.abs(reg.predict(new) - taught).mean()

    assert moved("naive") > 4
    for held in (LwF(strength=50.0), LwF(strength=50.0, points="memory")):
        assert moved(held) < 2.5


def test_answers_are_those_at_the_end_of_the_own_experience():
    reg = ContinualMLPRegressor((8,), strategy=DER(capacity=None), max_iter=5, random_state=0)
    chance = np.random.default_rng(0)
    parts = [chance.normal(size=(30, 3)) for _ in range(3)]
    for X in parts:
        reg.partial_fit(X, X[:, 0])
    filed = reg.strategy_.buffer_.notes["answer"].numpy()[:, 0]
    scale, centre = parts[0][:, 0].std(), parts[0][:, 0].mean()
    for k, X in enumerate(parts):
        expected = (reg.predict(X, after=k) - centre) / scale
        np.testing.assert_allclose(filed[30 * k : 30 * k + 30], expected, atol=1e-5)


def test_distillation_cannot_begin_in_the_middle():
    reg, _ = learn(Replay())
    X = np.zeros((5, 3))
    reg.set_params(strategy=Replay(distill=0.5))
    with pytest.raises(ValueError, match=r"distill must stay 0 while .* got 0\.5"):
        reg.partial_fit(X, X[:, 0])
    reg, _ = learn(Replay(distill=0.5))
    reg.set_params(strategy=Replay(distill=0.0)).partial_fit(X, X[:, 0])
    assert len(reg.strategy_.buffer_.notes["answer"]) == len(reg.strategy_.buffer_)
