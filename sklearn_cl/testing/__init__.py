"""Checks for authors of strategies."""

from sklearn_cl.testing._checks import check_strategy, strategy_checks

__all__ = ["check_strategy", "strategy_checks"]
