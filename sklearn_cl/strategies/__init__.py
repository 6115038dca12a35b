"""Strategies: what keeps the past alive."""

from sklearn_cl.strategies._base import Strategy
from sklearn_cl.strategies._baselines import Cumulative, FromScratch, Naive, NoRetrain
from sklearn_cl.strategies._chain import Chain, chain
from sklearn_cl.strategies._distill import DER, DERPlusPlus, LwF
from sklearn_cl.strategies._ewc import EWC, KroneckerEWC
from sklearn_cl.strategies._gradient import AGEM, GEM, OGD
from sklearn_cl.strategies._importance import MAS, SynapticIntelligence
from sklearn_cl.strategies._pseudo import PseudoRehearsal
from sklearn_cl.strategies._registry import available
from sklearn_cl.strategies._replay import Replay
from sklearn_cl.strategies._select import GSS, MIR, GDumb

__all__ = [
    "AGEM",
    "DER",
    "EWC",
    "GEM",
    "GSS",
    "MAS",
    "MIR",
    "OGD",
    "Chain",
    "Cumulative",
    "DERPlusPlus",
    "FromScratch",
    "GDumb",
    "KroneckerEWC",
    "LwF",
    "Naive",
    "NoRetrain",
    "PseudoRehearsal",
    "Replay",
    "Strategy",
    "SynapticIntelligence",
    "available",
    "chain",
]
