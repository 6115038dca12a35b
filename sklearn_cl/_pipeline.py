"""A Pipeline that goes on learning."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._experiences import split_experiences, take
from sklearn_cl.drift import detect_experiences


def _last_has(name: str) -> Any:
    return lambda self: hasattr(self.steps[-1][1], name)


class ContinualPipeline(Pipeline):
    """A Pipeline whose ``partial_fit`` learns one more experience.

    It is scikit-learn's Pipeline in everything else. No transformer ever sees an experience
    before it is learnt, which scaling a whole stream at once would let it do, and
    ``predict(X, after=i)`` transforms as it did after experience ``i``.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers, and a last step with ``partial_fit``.
    transformers : {"first", "partial_fit"}, default="first"
        What transformers learn after the first experience: nothing, or, where they have it, by
        ``partial_fit``. What the last step remembers of the past, rows as well as weights, was
        made with the old transformation, so "partial_fit" suits last steps that keep nothing.
    transform_input : list of str or None, default=None
        As in `sklearn.pipeline.Pipeline`.
    memory : str, object with the joblib.Memory interface or None, default=None
        Caches what transformers learn of the first experience.
    verbose : bool, default=False
        Whether to print the time of each step of a plain ``fit``.

    See Also
    --------
    sklearn.pipeline.Pipeline : Its ``fit`` learns a whole stream at once.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_cl import ContinualMLPRegressor, ContinualPipeline
    >>> from sklearn_cl.datasets import make_drift_stream
    >>> X, y, labels = make_drift_stream(n_experiences=2, random_state=0)
    >>> reg = ContinualMLPRegressor(max_iter=5, random_state=0)
    >>> pipe = ContinualPipeline([("scale", StandardScaler()), ("reg", reg)])
    >>> for k in range(2):
    ...     _ = pipe.partial_fit(X[labels == k], y[labels == k])
    >>> pipe.predict(X[:3], after=0).shape
    (3,)
    """

    steps: list[tuple[str, Any]]

    def __init__(
        self,
        steps: list[tuple[str, Any]],
        *,
        transformers: str = "first",
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.transformers = transformers

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Forget everything, and learn all rows or, with labels, one experience after the other.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets.
        **params : dict
            ``experience``, array-like of shape (n_samples,): the label of the experience of
            each row, learnt in ascending order as by `partial_fit`, or "auto" to look for them
            with `sklearn_cl.drift.detect_experiences`; other parameters are then
            those of `partial_fit`. Without it all are as in `sklearn.pipeline.Pipeline`.

        Returns
        -------
        self : object
            The fitted pipeline.

        Raises
        ------
        ValueError
            If a parameter or an input is not what it must be.
        """
        check_option("transformers", self.transformers, ["first", "partial_fit"])
        name = self.steps[-1][0]
        experience = params.pop("experience", params.pop(f"{name}__experience", None))
        if experience is None:
            # On a copy, since what was learnt of the past is asked for until this has succeeded.
            fresh = clone(self)
            Pipeline.fit(fresh, X, y, **params)
            self.steps, self._fronts, self._n_fronts = fresh.steps, [fresh.steps[:-1]], 1
            return self
        if isinstance(experience, str):
            check_option("experience", experience, ["auto"])
            experience = detect_experiences(X, y)
        fresh = clone(self)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        for _, rows in split_experiences(experience, n_rows):
            own = {k: _rows_of(v, rows, n_rows) for k, v in params.items()}
            fresh.partial_fit(take(X, rows), take(y, rows), **own)
        for learnt in ("steps", "_fronts", "_n_fronts"):
            setattr(self, learnt, getattr(fresh, learnt))
        return self

    @available_if(_last_has("partial_fit"))
    def partial_fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Learn one more experience.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Inputs of the experience.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets.
        **params : dict
            Parameters of the last step's ``partial_fit``, such as ``sample_weight``; the name
            of the step may stand before them, as in ``reg__sample_weight``.

        Returns
        -------
        self : object
            The fitted pipeline.

        Raises
        ------
        ValueError
            If a step refuses its input. No transformer has then changed.
        """
        check_option("transformers", self.transformers, ["first", "partial_fit"])
        name, last = self.steps[-1]
        own = {key.removeprefix(f"{name}__"): value for key, value in params.items()}
        if own.get("experience") is not None and self.transformers != "first":
            raise ValueError(
                "transformers must be 'first' for a stream in pieces (experience='auto'), whose "
                f"rows are kept as they were transformed; got {self.transformers!r}."
            )
        first = not self.__sklearn_is_fitted__()
        if first:
            # A pipeline of its own, so that `memory` works as scikit-learn does it.
            front, Xt = [], X
            if len(self.steps) > 1:
                begun = Pipeline(
                    [(key, _clone(step)) for key, step in self.steps[:-1]],
                    memory=self.memory,
                    verbose=self.verbose,
                )
                Xt = begun.fit_transform(X, y)
                front = begun.steps
        else:
            front, Xt = self._advanced(X, y)
        known, n_known = ([], 0) if first else self._history()
        last.partial_fit(Xt, y, **own)
        self.steps = [*front, (name, last)]
        limit = getattr(last, "max_snapshots", None)
        # A piece of an experience that is open takes the place of those before it.
        n = getattr(last, "n_experiences_", n_known + 1)
        kept = [*(known if n > n_known else known[:-1]), front]
        self._fronts = kept if limit is None else kept[-limit:]
        self._n_fronts = n
        return self

    @available_if(_last_has("predict"))
    def predict(self, X: Any, **params: Any) -> Any:
        """Transform, and predict with the last step.

        Parameters
        ----------
        X : {array-like, DataFrame, sparse matrix} of shape (n_samples, n_features)
            Inputs.
        **params : dict
            ``after``, int: the number of an experience, counted from 0, or from the end if
            negative; the answer is that of all steps as they stood after it. Other parameters
            are as in `sklearn.pipeline.Pipeline`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.

        Raises
        ------
        ValueError
            If there is no such experience, or it is no longer kept.
        """
        after = params.pop("after", None)
        if after is None:
            return super().predict(X, **params)
        check_is_fitted(self)
        fronts, n = self._history()
        check_number("after", after, low=-n, high=n - 1, integer=True)
        place = after % n - n
        if -place > len(fronts):
            raise ValueError(
                f"after must be one of the last {len(fronts)} of {n} experiences, which are kept; "
                f"got {after!r}. Raise max_snapshots of the last step."
            )
        for _, step in fronts[place]:
            X = X if _is_nothing(step) else step.transform(X)
        return self.steps[-1][1].predict(X, after=after, **params)

    def __getitem__(self, ind: Any) -> Any:
        part = super().__getitem__(ind)
        if isinstance(ind, slice):
            part.transformers = self.transformers
        return part

    def _advanced(self, X: Any, y: Any) -> tuple[list[tuple[str, Any]], Any]:
        """The transformers after one more experience, and what they make of it."""
        front = []
        for name, old in self.steps[:-1]:
            step = old
            if not _is_nothing(step):
                if self.transformers == "partial_fit" and hasattr(step, "partial_fit"):
                    step = copy.deepcopy(step).partial_fit(X, y)
                X = step.transform(X)
            front.append((name, step))
        return front, X

    def _history(self) -> tuple[list[list[tuple[str, Any]]], int]:
        """The transformers after each experience that is kept, and the number of all.

        What the last step has learnt by itself, or before it came into this pipeline, it learnt
        with the transformers as they are.
        """
        fronts, known = getattr(self, "_fronts", []), getattr(self, "_n_fronts", 0)
        n = max(known, getattr(self.steps[-1][1], "n_experiences_", known), 1)
        return [*fronts, *[self.steps[:-1]] * (n - known)], n


def _is_nothing(step: Any) -> bool:
    return step is None or isinstance(step, str)


def _clone(step: Any) -> Any:
    return clone(step) if isinstance(step, BaseEstimator) else copy.deepcopy(step)


def _rows_of(value: Any, rows: Any, n_rows: int) -> Any:
    """A parameter that has one entry for each row, of these rows; any other as it is."""
    shape = getattr(value, "shape", None) or (len(value) if isinstance(value, list | tuple) else 0,)
    return take(value, rows) if shape[0] == n_rows else value
