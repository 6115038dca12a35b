"""The baselines against fits that they must equal."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import make_drift_stream

X, Y, EXPERIENCE = make_drift_stream(3, 80, random_state=0)


def make(strategy, **params):
    settings = {"max_iter": 8, "batch_size": 32, "random_state": 0} | params
    return ContinualMLPRegressor((16,), strategy=strategy, **settings)


def part(k):
    return X[k == EXPERIENCE], Y[k == EXPERIENCE]


def test_from_scratch_is_a_fit_on_the_latest():
    reg = make("from_scratch", standardize=False)
    for k in range(3):
        reg.partial_fit(*part(k))
        fresh = make("naive", standardize=False).fit(*part(k))
        np.testing.assert_array_equal(reg.predict(X), fresh.predict(X))


def test_from_scratch_takes_the_scale_of_the_latest():
    reg = make("from_scratch", dtype="float64", max_iter=3)
    for k in range(3):
        reg.partial_fit(*part(k))
    fresh = make("naive", dtype="float64", max_iter=3).fit(*part(2))
    np.testing.assert_allclose(reg.predict(X), fresh.predict(X), rtol=1e-6)


def test_from_scratch_with_a_module_that_draws():
    torch_nn = pytest.importorskip("torch").nn

    def net(n_features, n_outputs):
        return torch_nn.Sequential(
            torch_nn.Linear(n_features, 8), torch_nn.Dropout(0.3), torch_nn.Linear(8, n_outputs)
        )

    from sklearn_cl import ContinualRegressor

    params = {"max_iter": 4, "random_state": 0, "standardize": False}
    reg = ContinualRegressor(net, strategy="from_scratch", **params)
    reg.partial_fit(*part(0)).partial_fit(*part(1))
    fresh = ContinualRegressor(net, strategy="naive", **params).fit(*part(1))
    np.testing.assert_array_equal(reg.predict(X), fresh.predict(X))


def test_no_retrain_stays():
    result = continual_validate(
        make("no_retrain"), X, Y, experience=EXPERIENCE, return_estimator=True, random_state=0
    )
    np.testing.assert_array_equal(result["R"], result["R"][[0, 0, 0]])
    assert [record.n_epochs for record in result["estimator"].experiences_] == [8, 0, 0]


def test_cumulative_keeps_each_row_once():
    reg = make("cumulative")
    for k in range(3):
        reg.partial_fit(*part(k))
    rows = reg.strategy_.rows_
    assert len(rows) == len(X)
    assert reg.experiences_[-1].state_bytes == 4 * (X.size + Y.size)
    np.testing.assert_allclose(
        rows.y[:, 0], (Y - part(0)[1].mean()) / part(0)[1].std(), rtol=1e-5, atol=1e-6
    )
