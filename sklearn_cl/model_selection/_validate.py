"""The score matrix of an estimator along a stream."""

from __future__ import annotations

import time
import warnings
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv, train_test_split
from sklearn.utils import Bunch, indexable
from tqdm import tqdm

from sklearn_cl._checks import check_number
from sklearn_cl._experiences import split_experiences, take
from sklearn_cl.model_selection._split import ExperienceKFold


def continual_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    experience: Any,
    scoring: Any = None,
    cv: Any = None,
    test_size: float | int = 0.3,
    n_jobs: int | None = None,
    error_score: Any = np.nan,
    return_estimator: bool = False,
    verbose: bool = False,
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
    scoring : str, callable, list, tuple or dict, default=None
        As in `sklearn.model_selection.cross_validate`; several give several matrices. None
        takes the estimator's own ``score``.
    cv : int, splitter, iterable or None, default=None
        Folds. A number means `ExperienceKFold`; every fold must have rows of every experience
        on both sides. None holds out rows once, ``test_size`` of each experience.
    test_size : float or int, default=0.3
        Rows of each experience to hold out if ``cv`` is None: a share, or a number.
    n_jobs : int or None, default=None
        Folds to run at once, by joblib; so its backends spread them over a cluster.
    error_score : "raise" or number, default=numpy.nan
        What the matrix of a fold holds from the experience on at which the estimator failed;
        a warning is given. "raise" raises the error.
    return_estimator : bool, default=False
        Whether to return the estimators as they stand after the last experience.
    verbose : bool, default=False
        Whether to show a progress bar over the folds.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out rows if ``cv`` is None.

    Returns
    -------
    Bunch
        A dictionary with the entries below. With ``cv`` the arrays have one more axis in
        front, of the folds.

        R : ndarray of shape (T, T)
            ``R[i, j]`` is the score on experience ``j`` after learning experience ``i``. For a
            score such as "neg_mean_absolute_error", greater is better. The functions of
            `sklearn_cl.metrics` take it, with or without folds. Several scores give
            ``R_<name>`` each instead.
        labels : list of length T
            The experiences.
        fit_time, score_time : ndarray of shape (T,)
            Seconds of learning each, and of scoring after it.
        state_bytes : ndarray of shape (T,)
            Bytes that the strategy keeps after each; 0 for estimators that do not tell.
        estimator : estimator object or list of them
            With ``return_estimator``.

    Raises
    ------
    ValueError
        If there are fewer than two experiences, if one has too few rows, or if a fold lacks one.

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
    >>> folds = continual_validate(
    ...     SGDRegressor(random_state=0), X, y, experience=experience, cv=4, scoring=["r2"]
    ... )
    >>> folds["R_r2"].shape
    (4, 3, 3)
    """
    X, y, experience = indexable(X, y, experience)
    parts = split_experiences(experience, len(y))
    if len(parts) < 2:
        raise ValueError(f"experience must label at least two experiences; got {len(parts)}.")
    one = scoring is None or isinstance(scoring, str) or callable(scoring)
    names = None if one else list(scoring)
    scorer = check_scoring(estimator, scoring=scoring)
    _warn_if_joint(estimator)
    if error_score != "raise":
        check_number("error_score", error_score, low=-float("inf"), also=[np.nan])
    folds = (
        [_held_out(parts, test_size, random_state)]
        if cv is None
        else list(_folds(cv, X, y, experience, parts))
    )
    jobs = (
        joblib.delayed(_run_fold)(clone(estimator), X, y, fold, scorer, names, error_score)
        for fold in tqdm(folds, disable=not verbose, unit="fold")
    )
    found = joblib.Parallel(n_jobs=n_jobs)(jobs)
    result = Bunch(labels=[label for label, _ in parts])
    for name in found[0]:
        values = [one[name] for one in found]
        if name == "failure":
            _warn(values)
        elif name == "estimator":
            if return_estimator:
                result[name] = values[0] if cv is None else values
        else:
            result[name] = values[0] if cv is None else np.stack(values)
    return result


Fold = list[tuple[Any, Any]]


def _held_out(parts: list[tuple[Any, Any]], test_size: float | int, random_state: Any) -> Fold:
    """Rows to learn and to test of each experience."""
    fold = []
    for label, rows in parts:
        if len(rows) < 2:
            raise ValueError(
                f"experience {label!r} must have at least 2 rows, one to learn and one to "
                f"test; got {len(rows)}."
            )
        kept, held = train_test_split(rows, test_size=test_size, random_state=random_state)
        fold.append((np.sort(kept), np.sort(held)))
    return fold


def _folds(cv: Any, X: Any, y: Any, experience: Any, parts: list[tuple[Any, Any]]) -> list[Fold]:
    """For each fold of a splitter the rows to learn and to test of each experience."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        cv = ExperienceKFold(int(cv))
    folds: list[Fold] = []
    for train, test in check_cv(cv).split(X, y, experience):
        fold = [(np.intersect1d(rows, train), np.intersect1d(rows, test)) for _, rows in parts]
        for (label, _), (kept, held) in zip(parts, fold, strict=True):
            if not len(kept) or not len(held):
                raise ValueError(
                    "cv must put rows of every experience into the training and the test part of "
                    f"every fold, as ExperienceKFold does; fold {len(folds)} has {len(kept)} and "
                    f"{len(held)} of experience {label!r}."
                )
        folds.append(fold)
    return folds


def _run_fold(
    model: Any,
    X: Any,
    y: Any,
    fold: Fold,
    scorer: Any,
    names: list[str] | None,
    error_score: Any,
) -> dict[str, Any]:
    """Learn the stream once; the entries of the result, "failure" among them."""
    n = len(fold)
    R = {name: np.empty((n, n)) for name in names or [""]}
    fit_time, score_time = np.full(n, np.nan), np.full(n, np.nan)
    state_bytes, failure = np.zeros(n, dtype=np.int64), None
    incremental = hasattr(model, "partial_fit")
    for i, (rows, _) in enumerate(fold):
        begun = time.perf_counter()
        try:
            if incremental:
                model.partial_fit(take(X, rows), take(y, rows))
            else:
                past = np.concatenate([kept for kept, _ in fold[: i + 1]])
                model = clone(model).fit(take(X, past), take(y, past))
            fit_time[i] = time.perf_counter() - begun
            for j, (_, held) in enumerate(fold):
                score = scorer(model, take(X, held), take(y, held))
                for name, matrix in R.items():
                    matrix[i, j] = score[name] if names else score
        except Exception as error:
            if error_score == "raise":
                raise
            for matrix in R.values():
                matrix[i:] = error_score
            failure = f"experience number {i}: {type(error).__name__}: {error}"
            break
        score_time[i] = time.perf_counter() - begun - fit_time[i]
        strategy = getattr(_inner(model), "strategy_", None)
        state_bytes[i] = getattr(strategy, "n_bytes", 0)
    return {
        **{f"R_{name}" if names else "R": matrix for name, matrix in R.items()},
        "fit_time": fit_time,
        "score_time": score_time,
        "state_bytes": state_bytes,
        "estimator": model,
        "failure": failure,
    }


def _inner(model: Any) -> Any:
    """The regressor inside pipelines, searches and transformed targets."""
    for name in ("best_estimator_", "regressor_", "regressor"):
        if hasattr(model, name):
            return _inner(getattr(model, name))
    return _inner(model.steps[-1][1]) if hasattr(model, "steps") else model


def _warn_if_joint(estimator: Any) -> None:
    inner = _inner(estimator)
    if not hasattr(estimator, "partial_fit") and hasattr(inner, "partial_fit"):
        warnings.warn(
            f"{type(estimator).__name__} has no partial_fit, so it is fitted anew on all rows up "
            f"to each experience, although the {type(inner).__name__} inside could go on. To see "
            "what that forgets, put it into a ContinualPipeline.",
            UserWarning,
            stacklevel=3,
        )


def _warn(failures: list[str | None]) -> None:
    told = [f"fold {k}, {failure}" for k, failure in enumerate(failures) if failure]
    if told:
        warnings.warn(
            f"{len(told)} of {len(failures)} folds failed, and their scores are error_score. "
            "With error_score='raise' the error is raised.\n" + "\n".join(told),
            FitFailedWarning,
            stacklevel=3,
        )
