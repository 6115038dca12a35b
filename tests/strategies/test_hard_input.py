"""Hard input: every strategy stays finite, bounded and useful."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import available

chance = np.random.default_rng(0)
X = chance.normal(size=(60, 4))
Y = X[:, 0] + 0.1 * chance.normal(size=60)
HARD = {
    "constant target": (X, np.full(60, 7.0)),
    "one row many times": (np.repeat(X[:1], 60, axis=0), np.repeat(Y[:1], 60)),
    "every row twice": (np.tile(X[:30], (2, 1)), np.tile(Y[:30], 2)),
    "target of 1e9": (X, 1e9 * Y + 1e9),
    "heavy tails": (X, chance.standard_cauchy(size=60) * 100),
    "constant inputs": (np.ones((60, 4)), Y),
}


def make(strategy, **params):
    return ContinualMLPRegressor(
        (8,), strategy=strategy, **({"max_iter": 5, "random_state": 0} | params)
    )


@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize("first", [False, True], ids=["later", "first"])
def test_stays_finite(name, hard, first):
    order = [HARD[hard], (X, Y)] if first else [(X, Y), HARD[hard]]
    reg = make(name)
    for _ in range(2):
        for experience in order:
            reg.partial_fit(*experience)
    span = max(np.abs(y).max() for _, y in order)
    assert np.abs(reg.predict(X)).max() < 100 * span


@pytest.mark.parametrize("name", available())
def test_the_unit_of_the_target_does_not_matter(name):
    """The same model whether y is in bytes per second or in GB per second."""
    answers = []
    # A power of two, so that not even the rounding differs.
    for unit in (1.0, 2.0**30):
        reg = make(name, max_iter=10)
        for k in range(3):
            reg.partial_fit(X + k, unit * Y * (k + 1))
        answers.append(reg.predict(X) / unit)
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", available())
def test_rows_of_weight_zero_are_absent(name):
    weight = np.tile([1.0, 0.0], 30)
    with_zeros, without = make(name), make(name)
    for k in range(3):
        with_zeros.partial_fit(X + k, Y, sample_weight=weight)
        without.partial_fit(X[::2] + k, Y[::2])
    np.testing.assert_array_equal(with_zeros.predict(X), without.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*available()} - {"cumulative"}))
def test_state_of_a_thousand_experiences_is_bounded(name):
    reg = make(name, max_iter=1)
    sizes = []
    # GEM has a constraint for each experience that the memory holds; a small one is enough.
    if name == "gem":
        reg.set_params(strategy=type(reg.fit(X, Y).strategy_)(capacity=20))
    for k in range(1000):
        rows = np.random.default_rng(k).integers(60, size=20)
        sizes.append(reg.partial_fit(X[rows] + 0.001 * k, Y[rows]).experiences_[-1].state_bytes)
    assert max(sizes[200:]) <= 1.01 * max(sizes[:200])
    assert np.isfinite(reg.predict(X)).all()
