"""SI and MAS against closed forms, and the quadratic pull where it is stiff."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sklearn_cl import ContinualMLPRegressor, ContinualRegressor
from sklearn_cl._rows import Rows
from sklearn_cl.strategies import EWC, MAS, KroneckerEWC, Naive, SynapticIntelligence
from tests.conftest import At, weights


def at(start, strategy, **params):
    settings = {
        "solver": "sgd",
        "momentum": 0.0,
        "alpha": 0.0,
        "tol": 0.0,
        "batch_size": 100,
        "standardize": False,
        "dtype": "float64",
    }
    return ContinualRegressor(At, module__start=start, strategy=strategy, **(settings | params))


@pytest.mark.parametrize(
    ("eta", "omega"),
    [(0.1, [0.526315789474, 2.5]), (0.01, [0.502512562814, 2.040816326531])],
)
def test_path_integral_on_a_quadratic(eta, omega):
    # The mean of (sqrt(a_i) theta_i)^2 over two rows is half the sum of a_i theta_i^2.
    X, y = np.diag(np.sqrt([1.0, 4.0])), np.zeros(2)
    steps = int(40 / eta)
    reg = at([1.0, 1.0], SynapticIntelligence(xi=1e-3), learning_rate_init=eta)
    reg.set_params(max_iter=steps, n_iter_no_change=steps).fit(X, y)
    found = reg.strategy_.importance_ * (1 + 1e-3)
    np.testing.assert_allclose(found, omega, rtol=1e-9)
    assert 2.5 <= found.sum() <= 2.5 * (1 + 4 * eta)


def test_path_takes_the_gradient_of_the_task_alone():
    def path(strength):
        strategy = SynapticIntelligence(strength=strength)
        strategy.importance_, strategy.anchor_ = torch.ones(2), torch.tensor([5.0, 5.0])
        learner = SimpleNamespace(theta=torch.zeros(2), learning_rate=1e-3)
        rows = Rows(torch.zeros(1, 2), torch.zeros(1, 1))
        strategy.begin(rows, learner)
        for _ in range(3):
            grad = torch.tensor([1.0, -2.0])
            strategy.adjust(grad, learner)
            learner.theta -= 0.1 * torch.tensor([1.0, -2.0])
        return strategy._path, grad

    path_free, grad_free = path(0.0)
    path_held, grad_held = path(3.0)
    # Two whole steps have been seen: 2 * 0.1 * g^2.
    np.testing.assert_allclose(path_free, [0.2, 0.8], rtol=1e-6)
    assert torch.equal(path_free, path_held)
    assert not torch.equal(grad_free, grad_held)


@pytest.mark.parametrize(("of", "expected"), [("norm", [5, 12]), ("outputs", [1, 2.5])])
def test_mas_of_a_linear_net(of, expected):
    X = np.array([[1.0, 2], [1, -3]])
    reg = at([1.0, 1.0], MAS(of=of), learning_rate_init=1e-300, max_iter=1).fit(X, np.zeros(2))
    np.testing.assert_allclose(reg.strategy_.importance_, expected, rtol=1e-12)


@pytest.mark.parametrize("strategy", [EWC, KroneckerEWC, MAS, SynapticIntelligence])
@pytest.mark.parametrize("solver", ["sgd", "adam"])
@pytest.mark.parametrize("strength", [1e3, 1e12])
def test_no_strength_is_too_large(strategy, solver, strength):
    chance = np.random.default_rng(0)
    X = chance.normal(size=(100, 3))
    reg = ContinualMLPRegressor(
        (16,),
        strategy=strategy(),
        solver=solver,
        learning_rate_init=1e-2,
        max_iter=30,
        random_state=0,
    )
    reg.fit(X, X[:, 0]).set_params(strategy__strength=strength)
    before = reg.predict(X)
    reg.partial_fit(X, -X[:, 0])
    moved = np.abs(reg.predict(X) - before).max()
    assert np.isfinite(moved)
    if solver == "sgd":
        assert moved < 0.2


def test_a_stiff_pull_ends_where_an_ordinary_one_does(tiny, make_linear):
    (X1, y1), (X2, y2), _ = tiny
    ends = []
    for rate in (0.3, 0.01):
        # With the larger step the pull is damped, with the smaller one it is not.
        steps = {"max_iter": 10_000, "n_iter_no_change": 10_000}
        reg = make_linear(EWC(strength=1.0), learning_rate_init=rate, **steps)
        ends.append(weights(reg.partial_fit(X1, y1).partial_fit(X2, y2)))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


@pytest.mark.parametrize("strategy", [MAS, SynapticIntelligence])
def test_strength_zero_is_naive(strategy):
    X = np.random.default_rng(0).normal(size=(60, 3))
    pair = [
        ContinualMLPRegressor((8,), strategy=s, max_iter=5, random_state=0)
        .partial_fit(X, X[:, 0])
        .partial_fit(X, X[:, 1])
        .predict(X)
        for s in (strategy(strength=0.0), Naive())
    ]
    np.testing.assert_array_equal(*pair)
