"""Continual learning of performance models as ordinary scikit-learn."""

from importlib.metadata import version

from sklearn_cl._regressor import ContinualMLPRegressor, ContinualRegressor
from sklearn_cl.model_selection import continual_validate

__version__ = version("sklearn-cl")

__all__ = ["ContinualMLPRegressor", "ContinualRegressor", "__version__", "continual_validate"]
