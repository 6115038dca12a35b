"""Labels of experiences: their order, and the rows of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def split_experiences(experience: Any, n_rows: int) -> list[tuple[Any, npt.NDArray[np.intp]]]:
    """The rows of each experience, in ascending order of the labels.

    Parameters
    ----------
    experience : array-like of shape (n_rows,) or None
        A label for each row: numbers, strings or times. An ordered pandas Categorical is
        taken in the order of its categories. None means that all rows are one experience.
    n_rows : int
        How many rows there are.

    Returns
    -------
    list of (label, ndarray)
        For each experience its label and its rows, in the order in which they came.

    Raises
    ------
    ValueError
        If the labels are not one for each row, if one is missing, or if they have no order.
    """
    if experience is None:
        return [(0, np.arange(n_rows))]
    if isinstance(experience, list | tuple) and len({isinstance(v, str) for v in experience}) > 1:
        raise ValueError(
            "experience must hold labels that can be ordered; got a mix of texts and others."
        )
    values = np.asarray(experience)
    if values.shape != (n_rows,):
        raise ValueError(
            f"experience must hold one label for each of the {n_rows} rows of X; "
            f"got an array of shape {values.shape}."
        )
    if _any_missing(values):
        raise ValueError("experience must label every row; got missing values.")
    categories = getattr(getattr(experience, "dtype", None), "categories", None)
    if categories is not None and experience.dtype.ordered:
        place = {category: code for code, category in enumerate(categories)}
        codes = np.array([place[value] for value in values])
        labels = [categories[code] for code in np.unique(codes)]
        codes = np.unique(codes, return_inverse=True)[1]
    else:
        try:
            found, codes = np.unique(values, return_inverse=True)
        except TypeError as error:
            raise ValueError(
                f"experience must hold labels that can be ordered; got a mix: {error}."
            ) from error
        labels = list(found)
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return [(_plain(label), part) for label, part in zip(labels, rows, strict=True)]


def _any_missing(values: npt.NDArray[Any]) -> bool:
    if values.dtype.kind != "O":
        return bool((values != values).any())
    # What pandas takes for missing is neither equal to itself nor not.
    return any(v is None or type(v).__name__ == "NAType" or bool(v != v) for v in values.flat)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.number | np.str_ | np.bool_) else label


def take(values: Any, rows: Any) -> Any:
    """The rows of an array, a sparse matrix, a DataFrame, a Series or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return (values if hasattr(values, "shape") else np.asarray(values))[rows]
