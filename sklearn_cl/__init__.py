"""Continual learning of performance models as ordinary scikit-learn."""

from importlib.metadata import version

from sklearn_cl._pipeline import ContinualPipeline
from sklearn_cl._regressor import ContinualMLPRegressor, ContinualRegressor
from sklearn_cl.model_selection import (
    DriftSplitter,
    ExperienceKFold,
    continual_validate,
    forgetting_scorer,
)

__version__ = version("sklearn-cl")

__all__ = [
    "ContinualMLPRegressor",
    "ContinualPipeline",
    "ContinualRegressor",
    "DriftSplitter",
    "ExperienceKFold",
    "__version__",
    "continual_validate",
    "forgetting_scorer",
]
