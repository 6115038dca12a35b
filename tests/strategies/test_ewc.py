"""EWC against ridge regression on everything."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import EWC, KroneckerEWC, Naive
from tests.conftest import weights


def with_ridge(tiny):
    """Experiences of five rows each; two rows of the first are a ridge of one."""
    (X1, y1), *later = tiny
    experiences = [(np.vstack([np.eye(2), X1]), np.append([0, 0], y1)), *later]
    # Rows of zeros change no linear fit without intercept.
    return [
        (np.vstack([X, np.zeros((5 - len(y), 2))]), np.append(y, np.zeros(5 - len(y))))
        for X, y in experiences
    ]


def joint(experiences, discount):
    power = range(len(experiences) - 1, -1, -1)
    A = sum(discount**p * X.T @ X for p, (X, _) in zip(power, experiences, strict=True))
    b = sum(discount**p * X.T @ y for p, (X, y) in zip(power, experiences, strict=True))
    return np.linalg.solve(A, b)


@pytest.mark.parametrize(
    ("decay", "last"),
    [(1.0, [20 / 37, 29 / 37]), (0.5, [0.671597633136, 0.689349112426])],
)
def test_full_curvature_is_joint_ridge(tiny, make_linear, decay, last):
    reg = make_linear(KroneckerEWC(strength=1.0, decay=decay))
    experiences = with_ridge(tiny)
    found = [weights(reg.partial_fit(X, y)) for X, y in experiences]
    np.testing.assert_allclose(found[0], [0.625, 1.125], atol=1e-10)
    np.testing.assert_allclose(found[2], last, atol=1e-10)
    for k in range(3):
        np.testing.assert_allclose(found[k], joint(experiences[: k + 1], decay), atol=1e-10)
    if decay == 1:
        np.testing.assert_allclose(found[1], [0.416666666667, 0.833333333333], atol=1e-10)


def test_unequal_experiences_need_the_ratio_of_their_sizes(tiny, make_linear):
    (X1, y1), (X2, y2), _ = tiny
    reg = make_linear(KroneckerEWC(strength=3 / 2)).partial_fit(X1, y1)
    np.testing.assert_allclose(weights(reg), [2 / 3, 5 / 3], atol=1e-10)
    reg.partial_fit(X2, y2)
    np.testing.assert_allclose(weights(reg), [0.416666666667, 1.041666666667], atol=1e-10)


def test_diagonal_is_exact_for_uncorrelated_inputs(tiny, make_linear):
    _, (X2, y2), _ = tiny
    reg = make_linear(EWC(strength=1.0))
    reg.partial_fit(np.array([[1.0, 1], [1, -1]]), np.array([3.0, 1])).partial_fit(X2, y2)
    np.testing.assert_allclose(weights(reg), [7 / 9, 5 / 9], atol=1e-10)


def test_diagonal_is_not_exact_for_correlated_inputs(tiny, make_linear):
    (X1, y1), (X2, y2), _ = tiny
    reg = make_linear(EWC(strength=3 / 2)).partial_fit(X1, y1).partial_fit(X2, y2)
    np.testing.assert_allclose(weights(reg), [1 / 3, 1], atol=1e-10)
    gap = np.linalg.norm(weights(reg) - [5 / 12, 25 / 24])
    assert gap == pytest.approx(0.0931694990625, abs=1e-9)


def test_many_outputs_are_joint_least_squares(tiny, make_linear):
    (X1, y1), (X2, y2), _ = tiny
    reg = make_linear(KroneckerEWC(strength=3 / 2))
    reg.partial_fit(X1, np.column_stack([y1, 1 - y1]))
    reg.partial_fit(X2, np.column_stack([y2, 1 + y2]))
    np.testing.assert_allclose(weights(reg), [[5 / 12, 0.75], [25 / 24, -0.625]], atol=1e-10)


def test_importance_is_the_mean_squared_jacobian(tiny, make_linear):
    # At the optimum the squared gradient of the batch is zero and that of the rows shrinks
    # with the residuals; the Jacobian does neither.
    (X1, y1), _, _ = tiny
    reg = make_linear(EWC()).partial_fit(X1, y1)
    np.testing.assert_allclose(reg.strategy_.importance_, [2 / 3, 2 / 3], atol=1e-12)
    weight = np.array([1.0, 2, 3])
    reg = make_linear(EWC()).partial_fit(X1, y1, sample_weight=weight)
    expected = np.average(X1**2, axis=0, weights=weight)
    np.testing.assert_allclose(reg.strategy_.importance_, expected, atol=1e-12)


@pytest.mark.parametrize("batch_size", [30, 300])
def test_protection_does_not_depend_on_the_batch(batch_size):
    def moved(strategy):
        reg = ContinualMLPRegressor(
            (32,), strategy=strategy, batch_size=batch_size, learning_rate_init=5e-3, random_state=1
        )
        X, y = wave(0)
        before = reg.partial_fit(X, y).predict(X)
        return np.abs(reg.partial_fit(*wave(1)).predict(X) - before).mean()

    assert moved(EWC(strength=1e6)) < 0.5 * moved(Naive())


@pytest.mark.parametrize("strategy", [EWC(strength=20.0), KroneckerEWC(strength=20.0)])
def test_strength_has_no_unit(strategy):
    def predictions(unit):
        reg = ContinualMLPRegressor((16,), strategy=strategy, max_iter=20, random_state=0)
        for k in range(2):
            X, y = wave(k)
            reg.partial_fit(X, unit * y)
        return reg.predict(X) / unit

    np.testing.assert_allclose(predictions(2.0**30), predictions(1.0), rtol=1e-12)


def wave(k):
    chance = np.random.default_rng(k)
    X = chance.uniform(-2, 2, size=(300, 4))
    return X, np.sin(X[:, 0] + k) + (1 - k) * X[:, 1]
