"""Evaluation of continual learners."""

from sklearn_cl.model_selection._validate import continual_validate

__all__ = ["continual_validate"]
