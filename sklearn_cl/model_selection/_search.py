"""A search that goes along with the stream and never looks ahead."""

from __future__ import annotations

import copy
import time
import warnings
from typing import Any, ClassVar, Self

import joblib
import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, check_random_state, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._experiences import split_experiences, take
from sklearn_cl.drift import detect_experiences

Held = list[tuple[Any, Any]]


class ContinualSearchCV(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Choose strategy and hyper-parameters while the stream goes on, without looking ahead.

    All candidates learn each experience but for a few rows, which are kept aside, and are then
    scored on the rows kept aside of this experience and of all before. The one with the best
    score serves until the next experience. What it is chosen on is never learnt, and nothing
    of the future is needed; a grid search over a whole stream knows how the stream ends.

    Parameters
    ----------
    estimator : estimator object
        A regressor with ``partial_fit``; `ContinualPipeline` has it.
    param_grid : dict or list of dict
        Candidates, as in `sklearn.model_selection.GridSearchCV`.
    scoring : str, callable or None, default="neg_mean_absolute_error"
        A name or a scorer of scikit-learn; greater is better. None takes the estimator's own
        ``score``.
    stability : float or None, default=None
        Weight of all past experiences together in the choice, from 0, the newest only, to 1,
        the past only. None leaves the weights to ``objective``.
    objective : {"all", "recent"}, default="all"
        "all" weighs every experience alike, which is the final score of the score matrix;
        "recent" weighs each half as much as the one after it, for systems whose old states do
        not come back.
    test_size : float, default=0.1
        Share of the rows of each experience to keep aside, between 0 and 1.
    n_held : int, default=2000
        Rows to keep aside of all experiences together, at least 1; each has as many.
    n_jobs : int or None, default=None
        Candidates that learn at once, by joblib.
    random_state : int, RandomState instance or None, default=None
        Draws the rows to keep aside.

    Attributes
    ----------
    best_estimator_ : estimator object
        The candidate that serves.
    best_index_ : int
        Its place in ``cv_results_``.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its score in the choice.
    cv_results_ : dict of str to array or list of length n_candidates
        What was tried and what came out after the latest experience: "params"; "mean_test_score"
        as weighed by ``stability``, and "rank_test_score"; "past_test_score" and
        "present_test_score"; "split<j>_test_score" on the rows of experience j; "fit_time",
        seconds for all experiences.
    choices_ : list of int
        ``best_index_`` after each experience.
    candidates_ : list of estimator object
        All of them, as they learnt.
    n_experiences_ : int
        Experiences learnt.

    See Also
    --------
    sklearn.model_selection.GridSearchCV : Chooses on the whole stream.

    Examples
    --------
    >>> from sklearn_cl import ContinualMLPRegressor
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> from sklearn_cl.model_selection import ContinualSearchCV
    >>> from sklearn_cl.strategies import Naive, Replay
    >>> X, y, labels = make_drift_stream(n_experiences=3, random_state=0)
    >>> search = ContinualSearchCV(
    ...     ContinualMLPRegressor(max_iter=20, random_state=0),
    ...     {"strategy": [Naive(), Replay(capacity=200)]},
    ...     random_state=0,
    ... )
    >>> search.fit(X, y, experience=labels).best_params_
    {'strategy': Replay(capacity=200)}
    """

    _held: Held
    _chance: np.random.RandomState
    choices_: list[int]
    cv_results_: dict[str, Any]
    candidates_: list[Any]

    __metadata_request__fit: ClassVar = {"experience": True}
    __metadata_request__predict: ClassVar = {"after": True}

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = "neg_mean_absolute_error",
        stability: float | None = None,
        objective: str = "all",
        test_size: float = 0.1,
        n_held: int = 2000,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.stability = stability
        self.objective = objective
        self.test_size = test_size
        self.n_held = n_held
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, experience: Any = None) -> Self:
        """Forget everything, and learn one experience after the other.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        experience : array-like of shape (n_samples,) or "auto", default=None
            Label of the experience of each row, learnt in ascending order as by `partial_fit`.
            "auto" looks for them with `sklearn_cl.drift.detect_experiences`. None means that all
            rows are one.

        Returns
        -------
        self : object
            The fitted search.

        Raises
        ------
        ValueError
            If a parameter or an input is not what it must be. Nothing has then changed.
        """
        if isinstance(experience, str):
            check_option("experience", experience, ["auto"])
            experience = detect_experiences(X, y)
        X, y, experience = indexable(X, y, experience)
        fresh = clone(self)
        for _, rows in split_experiences(experience, len(y)):
            fresh.partial_fit(take(X, rows), take(y, rows))
        learnt = {name: value for name, value in vars(fresh).items() if name.endswith("_")}
        self.__dict__.update(learnt, _held=fresh._held, _chance=fresh._chance)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn one more experience with every candidate, and choose anew.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Inputs of the experience. One row is learnt; of more, some are kept aside.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        self : object
            The fitted search.

        Raises
        ------
        ValueError
            If a parameter or an input is not what it must be, or if every candidate fails.
            Nothing has then changed.
        """
        self._check_params()
        X, y = indexable(X, y)
        first = not hasattr(self, "candidates_")
        params = list(ParameterGrid(self.param_grid)) if first else self.cv_results_["params"]
        if not params:
            raise ValueError(f"param_grid must have a candidate; got {self.param_grid!r}.")
        candidates = [self._candidate(p) for p in params] if first else self.candidates_
        chance = check_random_state(self.random_state) if first else copy.deepcopy(self._chance)
        order = chance.permutation(len(y))
        n_aside = min(len(y) - 1, max(1, round(self.test_size * len(y))))
        aside, kept = order[:n_aside], np.sort(order[n_aside:])
        held: Held = [] if first else list(self._held)
        held.append((take(X, aside), take(y, aside)))
        room = max(1, self.n_held // len(held))
        held = [(take(a, slice(room)), take(b, slice(room))) for a, b in held]
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        found = joblib.Parallel(n_jobs=self.n_jobs)(
            joblib.delayed(_learn)(model, take(X, kept), take(y, kept), held, scorer)
            for model in candidates
        )
        results = self._results(params, found)
        self.candidates_ = [one[0] for one in found]
        self.n_experiences_ = len(held)
        self._held, self._chance = held, chance
        self.cv_results_ = results
        self.best_index_ = int(np.argmin(results["rank_test_score"]))
        self.best_estimator_ = self.candidates_[self.best_index_]
        self.best_params_ = params[self.best_index_]
        self.best_score_ = float(results["mean_test_score"][self.best_index_])
        self.choices_ = [*([] if first else self.choices_), self.best_index_]
        return self

    def predict(self, X: Any, **params: Any) -> npt.NDArray[Any]:
        """Predict with the candidate that serves.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Inputs.
        **params : dict
            Parameters of its ``predict``, such as ``after``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        check_is_fitted(self)
        answer: npt.NDArray[Any] = self.best_estimator_.predict(X, **params)
        return answer

    @property
    def n_features_in_(self) -> int:
        """Columns of X."""
        check_is_fitted(self)
        return int(self.best_estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the columns of X, if it had any."""
        check_is_fitted(self)
        names: npt.NDArray[Any] = self.best_estimator_.feature_names_in_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        tags.regressor_tags = inner.regressor_tags
        return tags

    def _check_params(self) -> None:
        if not hasattr(self.estimator, "partial_fit"):
            raise ValueError(
                "estimator must have partial_fit; got "
                f"{type(self.estimator).__name__}. ContinualPipeline gives it to a pipeline."
            )
        check_number("stability", self.stability, low=0, high=1, also=[None])
        check_option("objective", self.objective, ["all", "recent"])
        check_number("test_size", self.test_size, low=0, high=1, open_low=True, open_high=True)
        check_number("n_held", self.n_held, low=1, integer=True)

    def _candidate(self, params: dict[str, Any]) -> Any:
        # What a grid holds belongs to the user.
        own = {name: clone(value, safe=False) for name, value in params.items()}
        return clone(self.estimator).set_params(**own)

    def _results(
        self, params: list[dict[str, Any]], found: list[tuple[Any, Any, float, str | None]]
    ) -> dict[str, Any]:
        """The table of what was tried."""
        failures = [
            f"{p}: {failure}" for p, (*_, failure) in zip(params, found, strict=True) if failure
        ]
        if len(failures) == len(found):
            raise ValueError("Every candidate failed.\n" + "\n".join(failures))
        if failures:
            warnings.warn(
                f"{len(failures)} of {len(found)} candidates failed and are out.\n"
                + "\n".join(failures),
                FitFailedWarning,
                stacklevel=3,
            )
        scores = np.array([score for _, score, _, _ in found])
        past, present = _mean(scores[:, :-1]), scores[:, -1]
        age = np.arange(scores.shape[1])[::-1]
        total = _mean(scores, 0.5**age if self.objective == "recent" else None)
        if self.stability is not None and scores.shape[1] > 1:
            # An experience of one row has no row aside.
            now = np.where(np.isnan(present), past, present)
            then = np.where(np.isnan(past), present, past)
            total = self.stability * then + (1 - self.stability) * now
        failed = np.array([failure is not None for *_, failure in found])
        # A score that is no number is the worst, and a failure is worse.
        worth = np.where(failed, -np.inf, np.nan_to_num(total, nan=np.finfo(float).min))
        times = [seconds for _, _, seconds, _ in found]
        before = getattr(self, "cv_results_", {}).get("fit_time", np.zeros(len(found)))
        return {
            "params": params,
            "mean_test_score": np.where(failed, np.nan, total),
            "rank_test_score": rankdata(-worth, method="min").astype(np.int32),
            "past_test_score": past,
            "present_test_score": present,
            **{f"split{j}_test_score": scores[:, j] for j in range(scores.shape[1])},
            "fit_time": before + times,
        }


def _learn(
    model: Any, X: Any, y: Any, held: Held, scorer: Any
) -> tuple[Any, npt.NDArray[np.float64], float, str | None]:
    """One candidate after one more experience: model, scores, seconds, and why it failed."""
    scores = np.full(len(held), np.nan)
    if model is None:
        return None, scores, 0.0, "failed before"
    begun, failure = time.perf_counter(), None
    # So that a failure of one leaves all of them as they were.
    model = copy.deepcopy(model)
    try:
        model.partial_fit(X, y)
        seconds = time.perf_counter() - begun
        for j, (a, b) in enumerate(held):
            if len(b):
                scores[j] = scorer(model, a, b)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        return None, np.full(len(held), np.nan), time.perf_counter() - begun, told
    return model, scores, seconds, failure


def _mean(scores: npt.NDArray[np.float64], weight: Any = None) -> npt.NDArray[np.float64]:
    """Weighted mean over the experiences that have rows aside; NaN if none has."""
    known = ~np.isnan(scores) * (1.0 if weight is None else weight)
    total = (np.nan_to_num(scores, nan=0.0) * known).sum(1)
    count = known.sum(1)
    mean: npt.NDArray[np.float64] = np.full(len(scores), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean
