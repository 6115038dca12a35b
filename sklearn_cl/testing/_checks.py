"""What every strategy must satisfy, whatever it does."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone

from sklearn_cl._estimator import BaseContinualRegressor
from sklearn_cl._regressor import ContinualMLPRegressor
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.strategies import Naive, Strategy

Experience = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def check_strategy(strategy: Strategy) -> None:
    """Run all checks that a strategy must pass, whatever it does.

    Parameters
    ----------
    strategy : Strategy
        The strategy; it is cloned.

    Raises
    ------
    AssertionError
        If it breaks a rule; the traceback names the check.

    Examples
    --------
    >>> from sklearn_cl.strategies import Replay
    >>> from sklearn_cl.testing import check_strategy
    >>> check_strategy(Replay(capacity=50))
    """
    for check in strategy_checks():
        check(strategy)


def strategy_checks() -> list[Callable[[Strategy], None]]:
    """The checks that `check_strategy` runs, one by one.

    Returns
    -------
    list of callable
        Each takes a strategy and raises an AssertionError if it breaks a rule.
    """
    return [
        _check_clone,
        _check_object_untouched,
        _check_first_experience_plain,
        _check_strength_zero_is_naive,
        _check_same_seed_same_result,
        _check_global_generators_untouched,
        _check_fit_equals_partial_fits,
        _check_pickle_in_mid_stream,
        _check_refused_input_changes_nothing,
        _check_interrupt_changes_nothing,
        _check_small_experiences,
        _check_weights_and_outputs,
        _check_dtypes_and_devices,
        _check_state_is_bounded,
    ]


def _stream() -> list[Experience]:
    X, y, experience = make_drift_stream(3, 60, random_state=0)
    return [(X[experience == k], y[experience == k]) for k in range(3)]


def _regressor(strategy: Any, **params: Any) -> BaseContinualRegressor:
    settings: dict[str, Any] = {"max_iter": 5, "batch_size": 16, "random_state": 0}
    return ContinualMLPRegressor((16,), strategy=clone(strategy), **(settings | params))


def _learnt(strategy: Any, experiences: list[Experience], **params: Any) -> BaseContinualRegressor:
    reg = _regressor(strategy, **params)
    for X, y in experiences:
        reg.partial_fit(X, y)
    return reg


def _same(a: BaseContinualRegressor, b: BaseContinualRegressor) -> None:
    for X, _ in _stream():
        np.testing.assert_array_equal(a.predict(X), b.predict(X))


def _check_clone(strategy: Strategy) -> None:
    twin = clone(strategy)
    assert twin is not strategy and type(twin) is type(strategy)
    assert repr(twin) == repr(strategy)
    assert not [name for name in vars(twin) if name.endswith("_")], "__init__ must only store"


def _check_object_untouched(strategy: Strategy) -> None:
    reg = _regressor(strategy)
    before, state = reg.strategy, copy.deepcopy(vars(reg.strategy))
    for X, y in _stream()[:2]:
        reg.partial_fit(X, y)
    assert reg.strategy is before and reg.strategy_ is not before
    assert vars(before).keys() == state.keys()
    assert repr(before) == repr(strategy)


def _check_first_experience_plain(strategy: Strategy) -> None:
    first = _stream()[:1]
    _same(_learnt(strategy, first), _learnt(Naive(), first))


def _check_strength_zero_is_naive(strategy: Strategy) -> None:
    if "strength" in strategy.get_params():
        off = clone(strategy).set_params(strength=0)
        _same(_learnt(off, _stream()), _learnt(Naive(), _stream()))


def _check_same_seed_same_result(strategy: Strategy) -> None:
    _same(_learnt(strategy, _stream()), _learnt(strategy, _stream()))


def _check_global_generators_untouched(strategy: Strategy) -> None:
    before = torch.get_rng_state(), np.random.get_state(legacy=False)
    _learnt(strategy, _stream())
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_equal(np.random.get_state(legacy=False), before[1])


def _check_fit_equals_partial_fits(strategy: Strategy) -> None:
    X, y, experience = make_drift_stream(3, 60, random_state=0)
    _same(_regressor(strategy).fit(X, y, experience=experience), _learnt(strategy, _stream()))


def _check_pickle_in_mid_stream(strategy: Strategy) -> None:
    first, second, third = _stream()
    whole = _learnt(strategy, [first, second])
    loaded = pickle.loads(pickle.dumps(whole))
    copied = copy.deepcopy(whole)
    _same(loaded, whole)
    for reg in (whole, loaded, copied):
        reg.partial_fit(*third)
    _same(loaded, whole)
    _same(copied, whole)
    X, _ = first
    np.testing.assert_array_equal(loaded.predict(X, after=0), whole.predict(X, after=0))


def _check_refused_input_changes_nothing(strategy: Strategy) -> None:
    (X, y), second, third = _stream()
    reg, plain = _learnt(strategy, [(X, y), second]), _learnt(strategy, [(X, y), second])
    missing, wide = np.where(np.eye(*X.shape) > 0, np.nan, X), np.column_stack([X, X[:, 0]])
    for bad in [(missing, y), (wide, y), (X, y[:-1]), (X[:0], y[:0]), (X, np.column_stack([y, y]))]:
        try:
            reg.partial_fit(*bad)
        except ValueError:
            continue
        raise AssertionError(f"accepted X of shape {bad[0].shape}, y of shape {bad[1].shape}")
    _same(reg, plain)
    _same(reg.partial_fit(*third), plain.partial_fit(*third))


class _Interrupted(Strategy):
    """The strategy in ``inner``, interrupted at the end of its second experience."""

    seen_ = 0

    def __init__(self, inner: Strategy) -> None:
        self.inner = inner

    def begin(self, experience: Any, learner: Any) -> Any:
        return self.inner.begin(experience, learner)

    def rehearse(self, batch: Any, learner: Any) -> Any:
        return self.inner.rehearse(batch, learner)

    def penalty(self, batch: Any, learner: Any) -> Any:
        return self.inner.penalty(batch, learner)

    def adjust(self, grad: Any, learner: Any) -> None:
        self.inner.adjust(grad, learner)

    def consolidate(self, experience: Any, learner: Any) -> None:
        self.inner.consolidate(experience, learner)
        self.seen_ += 1
        if self.seen_ == 2:
            raise KeyboardInterrupt


def _check_interrupt_changes_nothing(strategy: Strategy) -> None:
    first, second, _ = _stream()
    reg = _learnt(_Interrupted(clone(strategy)), [first])
    for _attempt in range(2):
        try:
            reg.partial_fit(*second)
        except KeyboardInterrupt:
            _same(reg, _learnt(strategy, [first]))
            assert reg.n_experiences_ == 1 and len(reg.experiences_) == 1
        else:
            raise AssertionError("the interrupt did not reach the caller")


def _check_small_experiences(strategy: Strategy) -> None:
    first, (X, y), _ = _stream()
    for n_rows in (17, 2, 1):
        reg = _learnt(strategy, [first, (X[:n_rows], y[:n_rows])])
        assert np.isfinite(reg.predict(X)).all(), n_rows
    reg = _learnt(strategy, [(X[:1], y[:1]), first, (X, np.zeros_like(y)), (X, 1e9 * y)])
    assert np.isfinite(reg.predict(X)).all()


def _check_weights_and_outputs(strategy: Strategy) -> None:
    reg = _regressor(strategy)
    for X, y in _stream():
        weight = np.linspace(0, 2, len(y))
        reg.partial_fit(X, np.column_stack([y, -y]), sample_weight=weight)
        assert reg.predict(X).shape == (len(y), 2) and np.isfinite(reg.predict(X)).all()


def _check_dtypes_and_devices(strategy: Strategy) -> None:
    single = _learnt(strategy, _stream())
    double = _learnt(strategy, _stream(), dtype="float64")
    X, y = _stream()[0]
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=0.05 * np.ptp(y))
    assert single.predict(X.astype(np.float32)).dtype == np.float32
    if torch.cuda.is_available():
        reg = _learnt(strategy, _stream(), device="cuda")
        np.testing.assert_allclose(reg.predict(X), single.predict(X), atol=0.05 * np.ptp(y))


def _check_state_is_bounded(strategy: Strategy) -> None:
    reg = _learnt(strategy, _stream())
    assert reg.experiences_[-1].state_bytes == reg.strategy_.n_bytes >= 0
    assert len(pickle.dumps(reg.strategy_)) < reg.strategy_.n_bytes + 20_000
