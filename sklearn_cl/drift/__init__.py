"""Where a stream changes."""

from sklearn_cl.drift._detect import DriftReport, ExperienceDetector, detect_experiences

__all__ = ["DriftReport", "ExperienceDetector", "detect_experiences"]
