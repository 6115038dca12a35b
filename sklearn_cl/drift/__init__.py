"""Where a stream changes, and what to do with the rows from before."""

from sklearn_cl.drift._alarm import Alarm, BayesianChangePoint, DriftAlarm, PageHinkley
from sklearn_cl.drift._detect import DriftReport, ExperienceDetector, detect_experiences
from sklearn_cl.drift._moments import MomentMatching

__all__ = [
    "Alarm",
    "BayesianChangePoint",
    "DriftAlarm",
    "DriftReport",
    "ExperienceDetector",
    "MomentMatching",
    "PageHinkley",
    "detect_experiences",
]
