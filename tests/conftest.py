"""Data that several tests share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_cl import ContinualRegressor

ROOT = Path(__file__).parents[1]

# Nets as small as these are slower on two threads than on one, and much slower if both are busy.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the real data; the test skips where it is absent."""
    folder = Path(os.environ.get("SKLEARN_CL_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip("the shared data are absent; set SKLEARN_CL_SHARED to their folder")
    return folder


@pytest.fixture
def tiny() -> list[tuple[np.ndarray, np.ndarray]]:
    """Three experiences of a linear problem, whose fits are known by hand."""
    return [
        (np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([1.0, 2, 2])),
        (np.array([[2.0, 1], [1, -1]]), np.array([1.0, 0])),
        (np.array([[1.0, 2], [0, 1]]), np.array([3.0, -1])),
    ]


class At(nn.Linear):
    """A linear model that starts at given coefficients."""

    def __init__(self, n_features: int, start: list[float]) -> None:
        super().__init__(n_features, 1, bias=False)
        with torch.no_grad():
            self.weight.copy_(torch.tensor([start]))


def linear(n_features: int, n_outputs: int) -> nn.Module:
    """A linear model without intercept."""
    return nn.Linear(n_features, n_outputs, bias=False)


@pytest.fixture
def make_linear() -> Any:
    """A linear model trained to its optimum by full-batch gradient descent in float64."""

    def make(strategy: Any, **params: Any) -> ContinualRegressor:
        settings = {
            "solver": "sgd",
            "momentum": 0.0,
            "learning_rate_init": 0.1,
            "alpha": 0.0,
            "batch_size": 1000,
            "max_iter": 5000,
            "tol": 0.0,
            "standardize": False,
            "dtype": "float64",
            "random_state": 0,
        }
        return ContinualRegressor(linear, strategy=strategy, **(settings | params))

    return make


def weights(reg: ContinualRegressor) -> np.ndarray:
    """The coefficients of a linear model: its predictions of unit vectors."""
    return reg.predict(np.eye(reg.n_features_in_))
