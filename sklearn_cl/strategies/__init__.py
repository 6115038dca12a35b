"""Strategies: what keeps the past alive."""

from sklearn_cl.strategies._base import Strategy
from sklearn_cl.strategies._baselines import Cumulative, FromScratch, Naive, NoRetrain
from sklearn_cl.strategies._chain import Chain, chain
from sklearn_cl.strategies._ewc import EWC, KroneckerEWC
from sklearn_cl.strategies._registry import available
from sklearn_cl.strategies._replay import Replay

__all__ = [
    "EWC",
    "Chain",
    "Cumulative",
    "FromScratch",
    "KroneckerEWC",
    "Naive",
    "NoRetrain",
    "Replay",
    "Strategy",
    "available",
    "chain",
]
