"""Projections against their closed forms, degenerate ones included."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import AGEM, GEM, OGD, Naive
from sklearn_cl.strategies._gradient import project, project_all
from tests.conftest import weights


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_agem_projects_to_the_boundary():
    g, r = vector(1, -2, 2), vector(1, 1, 0)
    length = float(g @ g - (g @ r) ** 2 / (r @ r))
    project(g, r)
    assert torch.equal(g, vector(1.5, -1.5, 2))
    assert float(g @ r) == 0
    assert float(g @ g) == pytest.approx(length) == pytest.approx(8.5)


@pytest.mark.parametrize("reference", [(1, 2, 3), (0, 0, 0), (2, 1, 0)])
def test_agem_leaves_a_harmless_gradient(reference):
    g = vector(1, -2, 2)
    project(g, vector(*reference))
    assert torch.equal(g, vector(1, -2, 2))


@pytest.mark.parametrize(
    ("margin", "expected"),
    [(0.0, (1.5, -1.5, 2)), (0.5, (1.5, -1.5, 2)), (0.9, (1.9, -1.1, 2))],
)
def test_gem_with_one_constraint(margin, expected):
    g = vector(1, -2, 2)
    project_all(g, vector(1, 1, 0)[None], margin)
    torch.testing.assert_close(g, vector(*expected))


def test_gem_with_two_constraints_satisfies_both():
    G, g = torch.stack([vector(1, 0, 0), vector(-0.6, 0.8, 0)]), vector(-1, -1, 1)
    project_all(g, G)
    torch.testing.assert_close(g, vector(0, 0, 1), atol=1e-12, rtol=0)


def test_gem_leaves_a_satisfied_constraint():
    g = vector(1, 2, 0)
    project_all(g, vector(1, 1, 0)[None])
    assert torch.equal(g, vector(1, 2, 0))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_gem_with_equal_and_vanishing_constraints(scale):
    r = scale * vector(1, 1, 0)
    g = vector(1, -2, 2)
    project_all(g, torch.stack([r, r, 0 * r]))
    torch.testing.assert_close(g, vector(1.5, -1.5, 2))


def test_gem_solves_the_programme():
    """The conditions of optimality, in dimensions with no closed form."""
    rng = torch.Generator().manual_seed(0)
    for _ in range(20):
        G = torch.randn(6, 40, generator=rng, dtype=torch.float64)
        g = torch.randn(40, generator=rng, dtype=torch.float64)
        u = g.clone()
        project_all(u, G)
        slack = G @ u
        v = torch.linalg.lstsq(G.T, u - g).solution
        assert slack.min() > -1e-10
        assert v.min() > -1e-10
        assert float(v @ slack) == pytest.approx(0, abs=1e-9)
        torch.testing.assert_close(G.T @ v, u - g)


def test_ogd_leaves_the_stored_output(tiny, make_linear):
    (X1, y1), (X2, y2), _ = tiny
    reg = make_linear(OGD()).partial_fit(X1, y1)
    reg.strategy_.basis_ = torch.tensor(X1[:1])
    reg.set_params(learning_rate_init=0.05, max_iter=100, n_iter_no_change=100)
    reg.partial_fit(X2, y2)
    np.testing.assert_allclose(weights(reg), [0.666666666667, 0.166706508765], atol=1e-10)


def test_ogd_keeps_an_orthonormal_basis_of_bounded_size():
    chance = np.random.default_rng(0)
    reg = ContinualMLPRegressor(
        (4,), strategy=OGD(n_directions=7, capacity=12), max_iter=2, dtype="float64"
    )
    sizes = []
    for k in range(3):
        X = chance.normal(size=(20, 3))
        X[10 * (k == 1) :] = X[-1]
        Q = reg.partial_fit(X, X[:, 0]).strategy_.basis_
        sizes.append(len(Q))
        torch.testing.assert_close(Q @ Q.T, torch.eye(len(Q)).to(Q))
    assert sizes[0] == 1
    assert sizes[1] > 2
    assert sizes[2] <= 12


@pytest.mark.parametrize("strategy", [AGEM(capacity=None), GEM(capacity=None)])
def test_full_batch_descent_does_not_raise_the_old_loss(strategy, tiny, make_linear):
    """To first order; a small step without moments is that."""
    (X1, y1), (X2, y2), _ = tiny
    old = {}
    for name, s in [("held", strategy), ("naive", Naive())]:
        reg = make_linear(s, max_iter=1).partial_fit(X1, y1)
        reg.set_params(learning_rate_init=1e-4, max_iter=2000, n_iter_no_change=2000)
        reg.partial_fit(X2, y2)
        old[name] = [((reg.predict(X1, after=k) - y1) ** 2).mean() for k in range(2)]
    assert old["naive"][1] != old["naive"][0]
    assert old["held"][1] <= old["held"][0] + 1e-6


def test_gem_with_one_constraint_is_agem_and_many_share():
    def learn(strategy, n):
        chance = np.random.default_rng(0)
        reg = ContinualMLPRegressor((8,), strategy=strategy, max_iter=3, random_state=0)
        for k in range(n):
            X = chance.normal(size=(20, 3))
            reg.partial_fit(X, X[:, 0] * (-1) ** k)
        return reg

    # One past experience that fits into a batch: the same reference, whatever its order.
    one, other = learn(GEM(), 2), learn(AGEM(), 2)
    X = np.random.default_rng(1).normal(size=(50, 3))
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-5)
    reg = learn(GEM(max_constraints=3), 6)
    strategy, learner = (
        reg.strategy_,
        SimpleNamespace(theta=torch.zeros(3), rng=torch.Generator(), batch_size=200),
    )
    strategy.lesson(strategy.buffer_.rows, learner, strategy.buffer_)
    assert [len(part) for part in strategy._pools] == [40, 40, 40]
