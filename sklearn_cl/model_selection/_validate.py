"""The score matrix of an estimator along a stream."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch, indexable

from sklearn_cl._experiences import split_experiences
from sklearn_cl.model_selection._parts import take


def continual_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    experience: Any,
    scoring: Any = None,
    test_size: float | int = 0.3,
    random_state: Any = None,
) -> Bunch:
    """Score an estimator on every experience after learning each: the score matrix.

    Rows of every experience are held out. The estimator then learns the others one experience
    after the other, by ``partial_fit`` if it has one; one without is fitted anew on all
    rows up to that experience. After each it is scored on the held-out rows of all
    experiences, past and to come.

    Parameters
    ----------
    estimator : estimator object
        Any regressor or classifier, or a pipeline that ends in one. It is cloned.
    X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    experience : array-like of shape (n_samples,)
        Label of the experience of each row; at least two experiences, in ascending order.
    scoring : str or callable, default=None
        As in scikit-learn; None takes the estimator's own ``score``.
    test_size : float or int, default=0.3
        Rows of each experience to hold out: a share, or a number.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out rows.

    Returns
    -------
    Bunch
        A dictionary with the entries

        R : ndarray of shape (T, T)
            ``R[i, j]`` is the score on experience ``j`` after learning experience ``i``. For a
            score such as "neg_mean_absolute_error", greater is better.
        labels : list of length T
            The experiences.
        fit_time : ndarray of shape (T,)
            Seconds of learning each.
        state_bytes : ndarray of shape (T,)
            Bytes that the strategy keeps after each; 0 for estimators that do not tell.
        estimator : estimator object
            As it stands after the last experience.

    Raises
    ------
    ValueError
        If there are fewer than two experiences, or one has fewer than two rows.

    See Also
    --------
    sklearn_cl.metrics : Forgetting, transfer and final score of R.

    Examples
    --------
    >>> from sklearn.linear_model import SGDRegressor
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> from sklearn_cl.metrics import forgetting
    >>> from sklearn_cl.model_selection import continual_validate
    >>> X, y, experience = make_drift_stream(n_experiences=3, random_state=0)
    >>> result = continual_validate(
    ...     SGDRegressor(random_state=0), X, y, experience=experience, random_state=0
    ... )
    >>> result["R"].shape
    (3, 3)
    >>> forgetting(result["R"]) > 0
    True
    """
    X, y, experience = indexable(X, y, experience)
    parts = split_experiences(experience, len(y))
    if len(parts) < 2:
        raise ValueError(f"experience must label at least two experiences; got {len(parts)}.")
    scorer = check_scoring(estimator, scoring=scoring)
    train, test = [], []
    for label, rows in parts:
        if len(rows) < 2:
            raise ValueError(
                f"experience {label!r} must have at least 2 rows, one to learn and one to "
                f"test; got {len(rows)}."
            )
        kept, held = train_test_split(rows, test_size=test_size, random_state=random_state)
        train.append(np.sort(kept))
        test.append(np.sort(held))
    model = clone(estimator)
    incremental = hasattr(model, "partial_fit")
    R = np.empty((len(parts), len(parts)))
    fit_time, state_bytes = np.empty(len(parts)), np.zeros(len(parts), dtype=np.int64)
    for i, rows in enumerate(train):
        begun = time.perf_counter()
        if incremental:
            model.partial_fit(take(X, rows), take(y, rows))
        else:
            past = np.concatenate(train[: i + 1])
            model = clone(estimator).fit(take(X, past), take(y, past))
        fit_time[i] = time.perf_counter() - begun
        R[i] = [scorer(model, take(X, held), take(y, held)) for held in test]
        strategy = getattr(model, "strategy_", None)
        state_bytes[i] = getattr(strategy, "n_bytes", 0)
    return Bunch(
        R=R,
        labels=[label for label, _ in parts],
        fit_time=fit_time,
        state_bytes=state_bytes,
        estimator=model,
    )
