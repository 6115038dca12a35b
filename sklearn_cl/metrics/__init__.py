"""Metrics of a score matrix: what was kept, what was lost, what helped."""

from sklearn_cl.metrics._matrix import (
    anytime_score,
    backward_transfer,
    final_score,
    forgetting,
    forward_transfer,
    intransigence,
    learning_score,
)

__all__ = [
    "anytime_score",
    "backward_transfer",
    "final_score",
    "forgetting",
    "forward_transfer",
    "intransigence",
    "learning_score",
]
