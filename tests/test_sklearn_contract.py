"""Every check of scikit-learn, for both estimators and for every strategy."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from sklearn_cl import ContinualMLPRegressor, ContinualRegressor
from sklearn_cl.strategies import EWC, Replay, available, chain


def make_net(n_features, n_outputs):
    return nn.Sequential(nn.Linear(n_features, 16), nn.GELU(), nn.Linear(16, n_outputs))


# Checks that scikit-learn's own MLPRegressor fails too, and why. There is none.
EXPECTED: dict[str, str] = {}

STRATEGIES = [*available(), chain(Replay(), EWC())]
# A check compares two trainings whose sums run in another order, to 1e-7: that takes float64.
QUICK = {"max_iter": 80, "learning_rate_init": 5e-3, "dtype": "float64"}


def expected(estimator):
    return EXPECTED


@pytest.mark.filterwarnings("ignore:SCIPY_ARRAY_API:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([ContinualMLPRegressor()], expected_failed_checks=expected)
def test_defaults(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        estimator.set_params(dtype="float64")  # as above
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([ContinualRegressor(make_net, **QUICK)], expected_failed_checks=expected)
def test_any_module(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [ContinualMLPRegressor(strategy=strategy, **QUICK) for strategy in STRATEGIES]
    + [ContinualRegressor(make_net, strategy=strategy, **QUICK) for strategy in STRATEGIES],
    expected_failed_checks=expected,
)
def test_every_strategy(estimator, check):
    check(estimator)
