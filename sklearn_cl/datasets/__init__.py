"""Data sets that drift."""

from sklearn_cl.datasets._stream import make_drift_stream

__all__ = ["make_drift_stream"]
