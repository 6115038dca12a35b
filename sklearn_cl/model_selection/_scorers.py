"""Scores of what a fitted estimator knew after each experience."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from sklearn_cl._checks import check_option
from sklearn_cl._experiences import split_experiences, take
from sklearn_cl.metrics import (
    anytime_score,
    backward_transfer,
    final_score,
    forgetting,
    learning_score,
)

_METRICS = {
    "final": final_score,
    "forgetting": lambda R: -forgetting(R),
    "backward_transfer": backward_transfer,
    "learning": learning_score,
    "anytime": anytime_score,
}
_LABELLED = (
    "sklearn.set_config(enable_metadata_routing=True)\n"
    "search.fit(X, y, experience=labels)        # or cross_validate(..., params=dict(experience="
    "labels))"
)


class ContinualScorer:
    """Made by `make_continual_scorer`; called as ``scorer(estimator, X, y, experience=labels)``.

    Parameters
    ----------
    metric, scoring, experience
        As for `make_continual_scorer`.
    """

    def __init__(self, metric: str, scoring: Any, experience: Any) -> None:
        self.metric = metric
        self.scoring = scoring
        self.experience = experience

    def __call__(self, estimator: Any, X: Any, y: Any, experience: Any = None) -> float:
        """Score a fitted estimator.

        Parameters
        ----------
        estimator : estimator object
            Has learnt at least two experiences and answers ``predict(X, after=i)``; pipelines,
            `TransformedTargetRegressor` and fitted searches around one do.
        X : {array-like, DataFrame} of shape (n_samples, n_features)
            Rows that it has not learnt, of every experience.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        experience : array-like of shape (n_samples,), default=None
            Label of the experience of each row; None reads it from X.

        Returns
        -------
        float
            The metric of the score matrix; greater is better.

        Raises
        ------
        ValueError
            If the labels are missing, or if the estimator has not learnt as many experiences.
        """
        if experience is None:
            experience = self._read(X)
        R, _ = score_matrix(estimator, X, y, experience, scoring=self.scoring)
        return float(_METRICS[self.metric](R))

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask searches for ``experience``.

        Returns
        -------
        MetadataRequest
            What `__call__` wants.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="experience", alias=True)
        return request

    def __repr__(self) -> str:
        return f"make_continual_scorer({self.metric!r}, {self.scoring!r})"

    def _accept_sample_weight(self) -> bool:
        # Searches ask every scorer.
        return False

    def _read(self, X: Any) -> Any:
        """The labels from a column or a level of the index."""
        name = self.experience
        if hasattr(X, "iloc"):
            if name in X.columns:
                return X[name]
            if name in X.index.names:
                return X.index.get_level_values(name)
        raise ValueError(
            "experience must come with the rows to score; got None, and X has no column or level "
            f"of its index named {name!r}. Write\n\n{_LABELLED}"
        )


class _Then(RegressorMixin, BaseEstimator):
    """An estimator as it stood after an experience, for a scorer that knows `predict` only."""

    def __init__(self, estimator: Any, after: int) -> None:
        self.estimator = estimator
        self.after = after

    def predict(self, X: Any) -> Any:
        return self.estimator.predict(X, after=self.after)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def make_continual_scorer(
    metric: str, scoring: Any = "neg_mean_absolute_error", *, experience: Any = "experience"
) -> ContinualScorer:
    """A scorer of the whole stream for `GridSearchCV` and `cross_validate`.

    It asks a fitted estimator what it knew after each experience, ``predict(X, after=i)``,
    makes the score matrix R of that, and takes one number of it. So the rows to score must
    cover all experiences, as the folds of `ExperienceKFold` do.

    Parameters
    ----------
    metric : {"final", "forgetting", "backward_transfer", "learning", "anytime"}
        The number, as the function of `sklearn_cl.metrics` gives it; "forgetting" with a minus
        sign, so that for each of them greater is better. Do not select on "forgetting" alone: a
        model that learns nothing forgets nothing.
    scoring : str or callable, default="neg_mean_absolute_error"
        What R holds; a name or a scorer of scikit-learn for which ``predict`` is enough.
    experience : str, default="experience"
        Column, or level of the index, of a DataFrame that has the label of each row, where none
        are passed.

    Returns
    -------
    ContinualScorer
        A callable ``(estimator, X, y, experience=None)``.

    Raises
    ------
    ValueError
        If ``metric`` or ``scoring`` is not known.

    See Also
    --------
    forgetting_scorer : The same, ready, for forgetting of the mean absolute error.
    continual_report : All of these numbers at once.

    Examples
    --------
    >>> from sklearn_cl import ContinualMLPRegressor
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> from sklearn_cl.model_selection import make_continual_scorer
    >>> X, y, labels = make_drift_stream(n_experiences=3, random_state=0)
    >>> reg = ContinualMLPRegressor(strategy="naive", max_iter=20, random_state=0)
    >>> _ = reg.fit(X, y, experience=labels)
    >>> scorer = make_continual_scorer("backward_transfer")
    >>> scorer(reg, X, y, experience=labels) < 0
    True
    """
    check_option("metric", metric, list(_METRICS))
    get_scorer(scoring)
    return ContinualScorer(metric, scoring, experience)


def continual_report(
    estimator: Any,
    X: Any,
    y: Any,
    experience: Any,
    *,
    scoring: Any = "neg_mean_absolute_error",
) -> dict[str, list[Any]]:
    """What a fitted estimator knows of each experience, knew, has lost, and on average.

    Parameters
    ----------
    estimator : estimator object
        Has learnt at least two experiences and answers ``predict(X, after=i)``.
    X : {array-like, DataFrame} of shape (n_samples, n_features)
        Rows that it has not learnt, of every experience.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    experience : array-like of shape (n_samples,)
        Label of the experience of each row.
    scoring : str or callable, default="neg_mean_absolute_error"
        A name or a scorer of scikit-learn for which ``predict`` is enough.

    Returns
    -------
    dict of str to list
        Ready for ``pandas.DataFrame``; a row for each experience, then the one "mean" over
        them. Columns: "experience", the label; "final", the score in the end; "learning", the
        score when it had just been learnt; "forgetting", by how much the final score is below
        the best earlier one; "transfer", by how much it is above that of learning. The newest
        experience has neither of the last two (NaN).

    Examples
    --------
    >>> from sklearn_cl import ContinualMLPRegressor
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> from sklearn_cl.model_selection import continual_report
    >>> X, y, labels = make_drift_stream(n_experiences=3, random_state=0)
    >>> reg = ContinualMLPRegressor(strategy="naive", max_iter=20, random_state=0)
    >>> _ = reg.fit(X, y, experience=labels)
    >>> report = continual_report(reg, X, y, labels)
    >>> report["experience"]
    [0, 1, 2, 'mean']
    >>> report["forgetting"][-1] > 0
    True
    """
    R, labels = score_matrix(estimator, X, y, experience, scoring=scoring)
    last, when_learnt = R[-1], R.diagonal()
    lost = R[:-1].max(0) - last
    lost[-1] = np.nan
    transfer = last - when_learnt
    transfer[-1] = np.nan
    columns = {"final": last, "learning": when_learnt, "forgetting": lost, "transfer": transfer}
    return {
        "experience": [*labels, "mean"],
        **{name: [*map(float, v), float(np.nanmean(v))] for name, v in columns.items()},
    }


forgetting_scorer = make_continual_scorer("forgetting")


def score_matrix(
    estimator: Any,
    X: Any,
    y: Any,
    experience: Any,
    *,
    scoring: Any = "neg_mean_absolute_error",
) -> tuple[npt.NDArray[np.float64], list[Any]]:
    """The score matrix of an estimator that has learnt a stream.

    Parameters
    ----------
    estimator : estimator object
        Has learnt at least two experiences and answers ``predict(X, after=i)``.
    X : {array-like, DataFrame} of shape (n_samples, n_features)
        Rows that it has not learnt, of every experience.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    experience : array-like of shape (n_samples,)
        Label of the experience of each row.
    scoring : str or callable, default="neg_mean_absolute_error"
        A name or a scorer of scikit-learn for which ``predict`` is enough.

    Returns
    -------
    R : ndarray of shape (T, T)
        ``R[i, j]`` is the score on experience ``j`` of the estimator as it stood after ``i``.
    labels : list of length T
        The experiences.

    Raises
    ------
    ValueError
        If the estimator cannot tell, has learnt one experience only, or others than these.

    See Also
    --------
    continual_validate : Learns the stream, and scores after each experience.

    Examples
    --------
    >>> from sklearn_cl import ContinualMLPRegressor
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> from sklearn_cl.model_selection import score_matrix
    >>> X, y, labels = make_drift_stream(n_experiences=3, random_state=0)
    >>> reg = ContinualMLPRegressor(max_iter=5, random_state=0).fit(X, y, experience=labels)
    >>> R, _ = score_matrix(reg, X, y, labels, scoring="r2")
    >>> R.shape
    (3, 3)
    """
    check_is_fitted(estimator)
    X, y, experience = indexable(X, y, experience)
    parts = split_experiences(experience, len(y))
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    n = n_learnt(estimator)
    if n is None or not _answers_after(estimator, take(X, slice(1))):
        raise ValueError(
            "estimator must answer predict(X, after=i), as those of sklearn_cl do; got "
            f"{type(estimator).__name__}. For others, continual_validate learns and scores in turn."
        )
    if n < 2:
        raise ValueError(
            "estimator must have learnt at least two experiences; got one, so there is nothing to "
            f"forget. Tell fit where they begin:\n\n{_LABELLED}"
        )
    if len(parts) != n:
        raise ValueError(
            f"The rows to score must be of each of the {n} experiences that the estimator has "
            f"learnt; got {len(parts)}: {[label for label, _ in parts]!r}. ExperienceKFold makes "
            "such folds."
        )
    pieces = [(take(X, rows), take(y, rows)) for _, rows in parts]
    scorer = get_scorer(scoring)
    R = [[scorer(_Then(estimator, i), *piece) for piece in pieces] for i in range(n)]
    return np.array(R, dtype=np.float64), [label for label, _ in parts]


def _answers_after(estimator: Any, X: Any) -> bool:
    """Whether the estimator passes ``after`` on to the one inside it that knows it."""
    try:
        estimator.predict(X, after=-1)
    except TypeError:
        return False
    return True


def n_learnt(estimator: Any) -> int | None:
    """Experiences that the estimator, or the one inside it, has learnt; None if it can't tell."""
    if hasattr(estimator, "n_experiences_"):
        return int(estimator.n_experiences_)
    for inner in ("best_estimator_", "regressor_", "estimators_", "steps"):
        found = getattr(estimator, inner, None)
        if isinstance(found, list) and found:
            found = found[-1][1] if isinstance(found[-1], tuple) else found[-1]
        if found is not None and not isinstance(found, list):
            return n_learnt(found)
    return None
