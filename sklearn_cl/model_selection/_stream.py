"""Where the experiences of a stream begin: by labels, rows, times or a detector."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from sklearn_cl._checks import check_number
from sklearn_cl._experiences import split_experiences

Starts = npt.NDArray[np.intp]


def labelled_starts(groups: Any, n_rows: int) -> Starts:
    """First row of each experience of labels that ascend from row to row."""
    parts = split_experiences(groups, n_rows)
    place = np.empty(n_rows, dtype=np.intp)
    for k, (_, rows) in enumerate(parts):
        place[rows] = k
    falls = np.flatnonzero(place[1:] < place[:-1]) + 1
    if len(falls):
        row = int(falls[0])
        raise ValueError(
            "Rows must be sorted by time, so that the labels of their experiences never descend; "
            f"row {row} has {parts[place[row]][0]!r} after {parts[place[row - 1]][0]!r}. Sort the "
            "rows by label (order = np.argsort(labels, kind='stable')), or give labels whose "
            "order is not the alphabet's as an ordered pandas Categorical."
        )
    return np.array([rows[0] for _, rows in parts], dtype=np.intp)


def equal_starts(n_rows: int, size: int, n_experiences: int | None = None) -> Starts:
    """Experiences of ``size`` rows, the first one with the rest, as TimeSeriesSplit cuts."""
    count = n_rows // size if n_experiences is None else n_experiences
    return np.array([0, *range(n_rows - (count - 1) * size, n_rows, size)], dtype=np.intp)


def given_starts(boundaries: Iterable[Any], n_rows: int, times: Any) -> Starts:
    """Experiences that begin at these rows, or at these times if there are times."""
    if not np.iterable(boundaries) or isinstance(boundaries, str):
        raise ValueError(
            "boundaries must be a list of rows or times, 'auto', or an object with fit_predict; "
            f"got {boundaries!r}."
        )
    values = list(boundaries)
    if times is None:
        starts = np.asarray(values)
        if starts.ndim != 1 or (len(starts) and not np.issubdtype(starts.dtype, np.integer)):
            raise ValueError(
                "boundaries must be numbers of rows; to give times, name their column in "
                f"time_column; got {values!r}."
            )
    else:
        try:
            starts = times.searchsorted(_like(values, times), side="left")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"boundaries must be times like those of time_column ({times.dtype}); got "
                f"{values!r}: {error}."
            ) from error
    if len(starts) and (
        starts[0] < 1 or starts[-1] >= n_rows or (np.diff(starts.astype(np.int64)) <= 0).any()
    ):
        raise ValueError(
            f"boundaries must ascend and lie between the first and the last of the {n_rows} rows, "
            f"with rows between them; got {values!r}, which begin at rows {starts.tolist()}."
        )
    return np.array([0, *starts], dtype=np.intp)


def detected_starts(detector: Any, X: Any, y: Any, n_rows: int) -> Starts:
    """Experiences that an object with ``fit_predict`` tells apart."""
    labels = np.asarray(detector.fit_predict(X) if y is None else detector.fit_predict(X, y))
    if labels.shape != (n_rows,):
        raise ValueError(
            f"boundaries.fit_predict must return one label for each of the {n_rows} rows; got "
            f"shape {labels.shape}."
        )
    return np.append(0, np.flatnonzero(labels[1:] != labels[:-1]) + 1).astype(np.intp)


def periodic_starts(period: Any, times: Any) -> Starts:
    """Experiences of one period each: a number in the unit of the times, or a pandas offset."""
    import pandas as pd

    if times is None:
        raise ValueError(
            "period needs times: name their column, or level of the index, in time_column."
        )
    if isinstance(period, np.timedelta64):
        period = pd.Timedelta(period)
    if isinstance(period, int | float | np.number) and not isinstance(period, bool):
        check_number("period", period, low=0, open_low=True)
        if not pd.api.types.is_numeric_dtype(times.dtype):
            raise ValueError(
                "period must be a pandas offset such as '7D' where time_column holds dates; "
                f"got {period!r}."
            )
        # As many digits as a float has, since 0.3 is not 3 times 0.1.
        codes = np.floor((times - times[0]) / float(period) + 1e-9)
    else:
        try:
            rows = pd.Series(np.arange(len(times)), index=times)
            codes = rows.groupby(pd.Grouper(freq=period)).ngroup()
        except (TypeError, ValueError) as error:
            raise ValueError(
                "period must be a number, or a pandas offset such as '7D' or 'MS' with dates in "
                f"time_column; got {period!r} with {times.dtype}: {error}."
            ) from error
    codes = np.asarray(codes)
    return np.append(0, np.flatnonzero(codes[1:] != codes[:-1]) + 1).astype(np.intp)


def find_times(X: Any, time_column: Any) -> Any:
    """The times of the rows as an ascending pandas Index; None if there are none.

    Parameters
    ----------
    X : {array-like, DataFrame}
        The table.
    time_column : str, int or None
        A column or a level of the index of a DataFrame, or the number of a column of an
        array. None takes the index of a DataFrame if it holds dates.

    Raises
    ------
    ValueError
        If there is no such column, or its values are no times, missing, or not sorted.
    """
    frame = hasattr(X, "iloc")
    if time_column is None:
        if not frame or (X.index.dtype.kind not in "Mm" and not hasattr(X.index, "to_timestamp")):
            return None
        if not hasattr(X.index, "freq"):
            return None
        values, name = X.index, "the index"
    elif not frame:
        array = np.asarray(X)
        n_columns = array.shape[1] if array.ndim == 2 else 0
        if (
            not isinstance(time_column, int | np.integer)
            or not -n_columns <= time_column < n_columns
        ):
            raise ValueError(
                f"time_column must be the number of one of the {n_columns} columns of an array; "
                f"got {time_column!r}."
            )
        values, name = array[:, time_column], f"column {time_column}"
    elif time_column in X.columns:
        values, name = X[time_column], f"column {time_column!r}"
    elif time_column in X.index.names:
        values = X.index.get_level_values(time_column)
        name = f"level {time_column!r} of the index"
    else:
        raise ValueError(
            "time_column must name a column or a level of the index of X; got "
            f"{time_column!r}, and X has {list(X.columns)!r} and {list(X.index.names)!r}."
        )
    return _ascending(_as_times(values, name), name)


def _as_times(values: Any, name: str) -> Any:
    import pandas as pd

    index = pd.Index(values).infer_objects()
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.TimedeltaIndex):
        index = pd.Index(index.total_seconds())
    if pd.api.types.is_numeric_dtype(index.dtype) and index.dtype != bool and not index.hasnans:
        return index.astype(np.float64)
    if index.dtype.kind in "OUS" or isinstance(index.dtype, pd.StringDtype):
        try:
            with warnings.catch_warnings():
                # pandas before 3 only warns of them.
                mixed = ".*parsing datetimes with mixed time zones"
                warnings.filterwarnings("error", mixed, FutureWarning)
                index = pd.DatetimeIndex(pd.to_datetime(index))
        except (TypeError, ValueError, FutureWarning) as error:
            raise ValueError(
                f"Times must be of one kind and one time zone, which those in {name} are not "
                f"({error}). Convert them first: pd.to_datetime(values, utc=True)."
            ) from error
    return index


def _ascending(times: Any, name: str) -> Any:
    missing = np.flatnonzero(times.isna())
    if len(missing):
        raise ValueError(
            f"Times must not be missing; {name} lacks {len(missing)}, the first in row "
            f"{missing[0]}."
        )
    if not times.is_monotonic_increasing:
        values = times.to_numpy()
        row = int(np.flatnonzero(values[1:] < values[:-1])[0]) + 1
        raise ValueError(
            f"Rows must be sorted by time; row {row} of {name} has {times[row]!r} after "
            f"{times[row - 1]!r}. Sort the table first: X.sort_values(...), and y with it."
        )
    return times


def _like(values: list[Any], times: Any) -> Any:
    """Boundaries as an index of the same kind, so that time zones are compared and not lost."""
    import pandas as pd

    if not hasattr(times, "tz"):
        return np.asarray(values, dtype=np.float64)
    wanted = pd.DatetimeIndex(pd.to_datetime(values))
    if (wanted.tz is None) != (times.tz is None):
        have = "no time zone" if times.tz is None else f"the time zone {times.tz}"
        raise ValueError(f"those of time_column have {have}")
    return wanted
