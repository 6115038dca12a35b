"""Pseudo-rehearsal: moments, categories, bounded state, and what it is worth."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import PseudoRehearsal
from sklearn_cl.strategies._pseudo import Mixture, reduce_mixture


def moments(mixture):
    p = mixture.weights / mixture.weights.sum()
    mean = p @ mixture.means
    apart = mixture.means - mean
    outer = np.einsum("k,ki,kj->ij", p, apart, apart)
    return mixture.weights.sum(), mean, np.einsum("k,kij->ij", p, mixture.covariances) + outer


@pytest.mark.parametrize("size", [7, 3, 1])
def test_merging_keeps_the_moments(size):
    chance = np.random.default_rng(0)
    roots = chance.normal(size=(8, 3, 3))
    mixture = Mixture(
        chance.uniform(1, 9, size=8), chance.normal(size=(8, 3)), roots @ roots.swapaxes(1, 2)
    )
    smaller = reduce_mixture(mixture, size)
    assert len(smaller.weights) == size
    for before, after in zip(moments(mixture), moments(smaller), strict=True):
        np.testing.assert_allclose(after, before)


def test_the_nearest_are_merged_first():
    means = np.array([[0.0], [0.1], [9.0]])
    mixture = reduce_mixture(Mixture(np.ones(3), means, np.ones((3, 1, 1))), 2)
    np.testing.assert_allclose(np.sort(mixture.means[:, 0]), [0.05, 9.0])


def test_invented_inputs_have_the_moments_and_the_categories_of_the_old():
    chance = np.random.default_rng(0)
    X = chance.normal([3.0, -1.0], [1.0, 4.0], size=(2000, 2))
    X = np.column_stack([X, X[:, 0] + X[:, 1], chance.integers(0, 3, size=2000)])
    reg = ContinualMLPRegressor((4,), strategy=PseudoRehearsal(), max_iter=1, random_state=0)
    strategy = reg.fit(X, X[:, 0]).strategy_
    drawn = strategy._draw(20_000, chance)
    np.testing.assert_allclose(drawn.mean(0), 0, atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T)[:3, :3], np.corrcoef(X.T)[:3, :3], atol=0.06)
    assert len(np.unique(drawn[:, 3])) == 3


def test_state_is_bounded_and_holds_no_row():
    chance = np.random.default_rng(0)
    reg = ContinualMLPRegressor(
        (4,), strategy=PseudoRehearsal(max_components=6), max_iter=1, random_state=0
    )
    for _ in range(6):
        X = chance.normal(size=(40, 3))
        reg.partial_fit(X, X[:, 0])
    sizes = {record.state_bytes for record in reg.experiences_[2:]}
    assert len(sizes) == 1
    assert reg.strategy_.mixture_[1].shape == (6, 3)
    assert reg.strategy_.mixture_[0].sum() == pytest.approx(240)


def test_it_remembers_where_the_regime_shows_in_the_inputs():
    chance = np.random.default_rng(0)
    parts = [chance.normal(4 * k, size=(300, 2)) for k in range(3)]
    error = {}
    for strategy in ("naive", "pseudo", "cumulative"):
        reg = ContinualMLPRegressor(strategy=strategy, max_iter=40, random_state=0)
        for X in parts:
            reg.partial_fit(X, np.sin(X.sum(1)) + X[:, 0])
        old = parts[0]
        error[strategy] = np.abs(reg.predict(old) - np.sin(old.sum(1)) - old[:, 0]).mean()
    assert error["pseudo"] < 0.5 * error["naive"]
