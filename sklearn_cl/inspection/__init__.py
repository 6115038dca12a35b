"""Pictures of what was learnt and what was forgotten."""

from sklearn_cl.inspection._displays import (
    ForgettingDisplay,
    ScoreMatrixDisplay,
    StrategyComparisonDisplay,
)

__all__ = ["ForgettingDisplay", "ScoreMatrixDisplay", "StrategyComparisonDisplay"]
