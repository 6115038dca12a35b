"""Tables of columns as what scikit-learn's loaders return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
from sklearn.utils import Bunch


def description(name: str) -> str:
    """The data card."""
    return (resources.files("sklearn_cl.datasets") / "descr" / f"{name}.rst").read_text("utf-8")


def import_pandas(asked_for: str) -> Any:
    """Pandas, or an error that says who needs it."""
    try:
        import pandas
    except ImportError:
        raise ImportError(f"{asked_for} needs pandas: pip install pandas.") from None
    return pandas


def table_bunch(
    columns: Mapping[str, Any],
    features: Sequence[str],
    categories: Mapping[str, Sequence[str]],
    target: str,
    *,
    as_frame: bool,
    **more: Any,
) -> Bunch:
    """Inputs, target and experiences; as arrays, categories are columns of 0 and 1."""
    frame = None
    if as_frame:
        pd = import_pandas("as_frame=True")
        frame = pd.DataFrame(dict(columns))
        for name, levels in categories.items():
            frame[name] = pd.Categorical(frame[name], categories=list(levels))
        data, y, experience = frame[list(features)], frame[target], frame["experience"]
        names = list(features)
    else:
        parts, names = [], []
        for name in features:
            values = np.asarray(columns[name])
            for level in categories.get(name, ()):
                parts.append((values == level).astype(float))
                names.append(f"{name}={level}")
            if name not in categories:
                parts.append(values.astype(float))
                names.append(name)
        data = np.column_stack(parts)
        y, experience = np.asarray(columns[target]), np.asarray(columns["experience"])
    return Bunch(
        data=data,
        target=y,
        experience=experience,
        frame=frame,
        feature_names=names,
        target_names=[target],
        **more,
    )
