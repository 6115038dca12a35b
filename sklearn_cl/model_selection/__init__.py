"""Split a stream, score an estimator along it, and choose a strategy."""

from sklearn_cl.model_selection._scorers import (
    continual_report,
    forgetting_scorer,
    make_continual_scorer,
    score_matrix,
)
from sklearn_cl.model_selection._search import ContinualSearchCV
from sklearn_cl.model_selection._split import DriftSplitter, ExperienceKFold, experience_labels
from sklearn_cl.model_selection._validate import continual_validate

__all__ = [
    "ContinualSearchCV",
    "DriftSplitter",
    "ExperienceKFold",
    "continual_report",
    "continual_validate",
    "experience_labels",
    "forgetting_scorer",
    "make_continual_scorer",
    "score_matrix",
]
