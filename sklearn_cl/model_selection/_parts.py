"""Rows of anything that scikit-learn takes for a table."""

from __future__ import annotations

from typing import Any

import numpy as np


def take(values: Any, rows: Any) -> Any:
    """The rows of an array, a sparse matrix, a DataFrame, a Series or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return (values if hasattr(values, "shape") else np.asarray(values))[rows]
