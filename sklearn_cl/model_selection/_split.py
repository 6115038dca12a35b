"""Splitters of a stream: the past predicts the next, and folds inside each experience."""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.utils import indexable

from sklearn_cl._checks import check_number, check_option
from sklearn_cl._experiences import split_experiences
from sklearn_cl.drift import ExperienceDetector
from sklearn_cl.model_selection._stream import (
    Starts,
    detected_starts,
    equal_starts,
    find_times,
    given_starts,
    labelled_starts,
    periodic_starts,
)

Rows = npt.NDArray[np.intp]
_WAYS = ("n_experiences", "experience_size", "period", "boundaries")
_HOW = (
    "Pass the label of the experience of each row: split(X, y, groups=labels), or "
    "experience=labels to cross_validate and searches with metadata routing on, and "
    "groups=labels with it off"
)


class DriftSplitter(BaseCrossValidator):
    """The past predicts the next: train on some experiences, test on the one that follows.

    Where experiences begin is told by labels, which win over everything else, or by one of
    ``n_experiences``, ``experience_size``, ``period`` and ``boundaries``; without any of them,
    ``n_splits`` cuts as many experiences of equal size as it needs. Rows must be in the order of
    time.

    Parameters
    ----------
    n_splits : int or None, default=None
        Folds: one for each boundary from the last one back. None means every boundary that
        leaves something to train on.
    n_experiences : int or None, default=None
        Cut so many experiences of equal size; the first one takes the rest of the rows.
    experience_size : int or None, default=None
        Cut experiences of so many rows; the first one takes the rest.
    period : number, str, pandas offset or None, default=None
        Cut where a period of ``time_column`` ends: a number in its unit, counted from the first
        row, or an offset such as ``"7D"`` or ``"MS"``. Periods without rows do not count.
    boundaries : "auto", array-like, object with ``fit_predict`` or None, default=None
        "auto" looks for them with `sklearn_cl.drift.ExperienceDetector`. An array has the first
        rows of all experiences but the first: their numbers, or times if there is a
        ``time_column``. An object gets ``fit_predict(X, y)``, or ``fit_predict(X)`` without y,
        and answers with a label for each row; a new experience begins where the label changes.
    time_column : str, int or None, default=None
        Where the times are: a column or a level of the index of a DataFrame, or the number of
        a column of an array. None takes the index of a DataFrame if it holds dates.
    max_train_experiences : int or None, default=None
        Train on so many of the latest experiences; None means on all.
    gap : int, default=0
        Experiences to leave out between training and test.

    See Also
    --------
    ExperienceKFold : Folds inside each experience, to measure what is forgotten.
    experience_labels : The labels of the experiences that this finds.
    sklearn.model_selection.TimeSeriesSplit : The same for equal numbers of rows.

    Notes
    -----
    What an object with ``fit_predict`` has found is remembered for as long as the same X and y
    live (do not change them in place), so that ``get_n_splits`` and ``split`` need not look
    twice. `freeze` makes it last.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_cl.model_selection import DriftSplitter
    >>> X, release = np.zeros((7, 1)), ["1.0", "1.0", "1.1", "1.1", "1.1", "2.0", "2.0"]
    >>> for train, test in DriftSplitter().split(X, groups=release):
    ...     print(train, test)
    [0 1] [2 3 4]
    [0 1 2 3 4] [5 6]
    >>> DriftSplitter(n_splits=1, n_experiences=3).get_n_splits()
    1
    """

    __metadata_request__split: ClassVar = {"groups": "experience"}

    def __init__(
        self,
        n_splits: int | None = None,
        *,
        n_experiences: int | None = None,
        experience_size: int | None = None,
        period: Any = None,
        boundaries: Any = None,
        time_column: str | int | None = None,
        max_train_experiences: int | None = None,
        gap: int = 0,
    ) -> None:
        self.n_splits = n_splits
        self.n_experiences = n_experiences
        self.experience_size = experience_size
        self.period = period
        self.boundaries = boundaries
        self.time_column = time_column
        self.max_train_experiences = max_train_experiences
        self.gap = gap

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Rows to train on and to test on, fold by fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, in the order of time.
        y : array-like of shape (n_samples,), default=None
            Targets; only an object with ``fit_predict`` reads them.
        groups : array-like of shape (n_samples,), default=None
            Label of the experience of each row, never descending. With metadata routing this
            is the parameter ``experience``.

        Yields
        ------
        train, test : ndarray
            Numbers of rows.

        Raises
        ------
        ValueError
            If a parameter is not what it must be, if there are fewer experiences than the
            folds need, or if rows are not in the order of time.
        """
        starts, n_rows = self._starts(X, y, groups)
        n_folds = self._count_folds(len(starts))
        ends = [*starts[1:].tolist(), n_rows]
        rows = np.arange(n_rows)
        for test in range(len(starts) - n_folds, len(starts)):
            last = test - 1 - self.gap
            first = (
                0 if self.max_train_experiences is None else last + 1 - self.max_train_experiences
            )
            yield rows[starts[max(0, first)] : ends[last]], rows[starts[test] : ends[test]]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds; without data where the parameters tell it.

        Parameters
        ----------
        X, y, groups : array-like, default=None
            As for `split`.

        Returns
        -------
        int
            The number.

        Raises
        ------
        ValueError
            If only the data can tell, and there are none.
        """
        self._check_params()
        if X is None and groups is None:
            if self.n_splits is not None:
                return self.n_splits
            known = self.n_experiences
            if self.boundaries is not None and self._detector() is None:
                known = len(self.boundaries) + 1
            if known is None:
                raise ValueError(
                    "The number of folds depends on the data: pass them, get_n_splits(X, y, "
                    "groups), or use splitter.freeze(X, y, groups), which knows it."
                )
            return self._count_folds(known)
        return self._count_folds(len(self._starts(groups if X is None else X, y, groups)[0]))

    def freeze(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """A splitter of the same folds that knows the rows where experiences begin.

        Parameters
        ----------
        X, y, groups : array-like
            As for `split`.

        Returns
        -------
        DriftSplitter
            With ``boundaries`` as numbers of rows.
        """
        starts, _ = self._starts(X, y, groups)
        frozen = copy.copy(self)
        for name in (*_WAYS, "time_column"):
            setattr(frozen, name, None)
        frozen.boundaries = starts[1:].tolist()
        return frozen

    def __getstate__(self) -> dict[str, Any]:
        # A weak reference can neither be pickled nor copied.
        return {name: value for name, value in vars(self).items() if name != "_found"}

    def _check_params(self) -> None:
        for name, low in [("n_splits", 1), ("n_experiences", 2), ("experience_size", 1)]:
            check_number(name, getattr(self, name), low=low, integer=True, also=[None])
        check_number(
            "max_train_experiences", self.max_train_experiences, low=1, integer=True, also=[None]
        )
        check_number("gap", self.gap, low=0, integer=True)
        given = {name: getattr(self, name) for name in _WAYS if getattr(self, name) is not None}
        if len(given) > 1:
            raise ValueError(
                f"Only one of {', '.join(_WAYS)} may be given, since each of them cuts the "
                f"stream; got {given!r}."
            )

    def _count_folds(self, n_experiences: int) -> int:
        possible = n_experiences - 1 - self.gap
        if possible < 1:
            raise ValueError(
                f"There must be at least {2 + self.gap} experiences to train on one and test on "
                f"another with gap={self.gap}; got {n_experiences}. {_HOW}."
            )
        if self.n_splits is None:
            return possible
        if self.n_splits > possible:
            raise ValueError(
                f"n_splits={self.n_splits} needs {self.n_splits + 1 + self.gap} experiences with "
                f"gap={self.gap}; got {n_experiences}. Lower n_splits to at most {possible}, or "
                "give None for every boundary."
            )
        return self.n_splits

    def _starts(self, X: Any, y: Any, groups: Any) -> tuple[Starts, int]:
        """First rows of the experiences, and the number of rows."""
        self._check_params()
        X, y, groups = indexable(X, y, groups)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if groups is not None:
            return labelled_starts(groups, n_rows), n_rows
        # Whatever cuts the stream, the past must come first.
        times = find_times(X, self.time_column)
        if self.n_experiences is not None or self.experience_size is not None:
            return self._equal(n_rows), n_rows
        detector = self._detector()
        if detector is not None:
            return self._detected(detector, X, y, n_rows), n_rows
        if self.boundaries is not None:
            if self.time_column is None and _are_rows(self.boundaries):
                times = None
            return given_starts(self.boundaries, n_rows, times), n_rows
        if self.period is not None:
            return periodic_starts(self.period, times), n_rows
        if self.n_splits is None:
            raise ValueError(
                f"DriftSplitter must be told where experiences begin. {_HOW}; or give "
                f"n_splits or one of {', '.join(_WAYS)}."
            )
        return self._equal(n_rows), n_rows

    def _equal(self, n_rows: int) -> Starts:
        count, size = self.n_experiences, self.experience_size
        if size is None and count is None:
            assert self.n_splits is not None
            count = self.n_splits + 1 + self.gap
        if size is None:
            assert count is not None
            size = n_rows // count
        elif n_rows // size < 2:
            raise ValueError(
                f"experience_size must leave room for two experiences; got {size} with {n_rows} "
                "rows."
            )
        if not size:
            raise ValueError(
                f"There must be a row for each experience; got {n_rows} rows for {count}."
            )
        return equal_starts(n_rows, size, count)

    def _detector(self) -> Any:
        """What finds the experiences; None if that is told."""
        if isinstance(self.boundaries, str):
            check_option("boundaries", self.boundaries, ["auto"])
            return ExperienceDetector()
        return self.boundaries if hasattr(self.boundaries, "fit_predict") else None

    def _detected(self, detector: Any, X: Any, y: Any, n_rows: int) -> Starts:
        asked = [X, *([] if y is None else [y])]
        found: tuple[list[Any], Any, Starts] | None = getattr(self, "_found", None)
        if found is not None and found[1] is self.boundaries:
            seen = [one() for one in found[0]]
            if len(seen) == len(asked) and all(a is b for a, b in zip(seen, asked, strict=True)):
                return found[2]
        starts = detected_starts(detector, X, y, n_rows)
        # A list has no weak reference: another one may come to its place in memory.
        with contextlib.suppress(TypeError):
            self._found = ([weakref.ref(one) for one in asked], self.boundaries, starts)
        return starts


class ExperienceKFold(BaseCrossValidator):
    """Cut every experience into folds: train on the rest of each, test on a part of each.

    This is what measures forgetting: a model learns one experience after the other and is
    tested on rows of all of them. Each row is tested once.

    Parameters
    ----------
    n_splits : int, default=5
        Folds, at least 2.
    shuffle : bool, default=False
        Whether to draw the rows of each fold; otherwise they are consecutive.
    random_state : int, RandomState instance or None, default=None
        Draws them; needs ``shuffle=True``.

    See Also
    --------
    DriftSplitter : The past predicts the next.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_cl.model_selection import ExperienceKFold
    >>> X, release = np.zeros((7, 1)), ["1.0", "1.0", "1.1", "1.1", "1.1", "2.0", "2.0"]
    >>> for train, test in ExperienceKFold(2).split(X, groups=release):
    ...     print(train, test)
    [1 4 6] [0 2 3 5]
    [0 2 3 5] [1 4 6]
    """

    __metadata_request__split: ClassVar = {"groups": "experience"}

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        """Rows to train on and to test on, fold by fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,), default=None
            Not used.
        groups : array-like of shape (n_samples,)
            Label of the experience of each row, in any order. With metadata routing this is the
            parameter ``experience``.

        Yields
        ------
        train, test : ndarray
            Numbers of rows, ascending.

        Raises
        ------
        ValueError
            If there are no labels, fewer than two experiences, or one with fewer rows than
            there are folds.
        """
        check_number("n_splits", self.n_splits, low=2, integer=True)
        X, y, groups = indexable(X, y, groups)
        if groups is None:
            raise ValueError(f"ExperienceKFold must know the experiences. {_HOW}.")
        parts = split_experiences(groups, X.shape[0] if hasattr(X, "shape") else len(X))
        if len(parts) < 2:
            raise ValueError(
                f"There must be at least two experiences; got {len(parts)}. For one experience "
                "use sklearn.model_selection.KFold."
            )
        for label, rows in parts:
            if len(rows) < self.n_splits:
                raise ValueError(
                    f"n_splits={self.n_splits} needs as many rows in every experience; got "
                    f"{len(rows)} in {label!r}. Lower n_splits, or join small experiences."
                )
        codes = np.empty(sum(len(rows) for _, rows in parts), dtype=np.intp)
        for code, (_, rows) in enumerate(parts):
            codes[rows] = code
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        yield from folds.split(codes, codes)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds.

        Parameters
        ----------
        X, y, groups : array-like, default=None
            Not used.

        Returns
        -------
        int
            ``n_splits``.
        """
        return self.n_splits


def experience_labels(
    X: Any,
    y: Any = None,
    *,
    n_experiences: int | None = None,
    experience_size: int | None = None,
    period: Any = None,
    boundaries: Any = None,
    time_column: str | int | None = None,
) -> npt.NDArray[np.intp]:
    """Number the experiences of a stream, as `DriftSplitter` would cut it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Inputs, in the order of time.
    y : array-like of shape (n_samples,), default=None
        Targets; only an object with ``fit_predict`` reads them.
    n_experiences : int or None, default=None
        Cut so many experiences of equal size; this, or one of the next three.
    experience_size : int or None, default=None
        Cut experiences of so many rows.
    period : number, str, pandas offset or None, default=None
        Cut where a period of ``time_column`` ends.
    boundaries : "auto", array-like, object with ``fit_predict`` or None, default=None
        First rows or times of all experiences but the first, or what finds them.
    time_column : str, int or None, default=None
        Where the times are. All as for `DriftSplitter`.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels from 0 on, for ``fit(X, y, experience=labels)``.

    Raises
    ------
    ValueError
        As `DriftSplitter.split`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_cl.model_selection import experience_labels
    >>> experience_labels(np.zeros((7, 1)), boundaries=[2, 5])
    array([0, 0, 1, 1, 1, 2, 2])
    """
    splitter = DriftSplitter(
        n_experiences=n_experiences,
        experience_size=experience_size,
        period=period,
        boundaries=boundaries,
        time_column=time_column,
    )
    starts, n_rows = splitter._starts(X, y, None)
    return np.searchsorted(starts, np.arange(n_rows), side="right") - 1


def _are_rows(boundaries: Any) -> bool:
    return np.iterable(boundaries) and np.asarray(list(boundaries)).dtype.kind in "iu"
