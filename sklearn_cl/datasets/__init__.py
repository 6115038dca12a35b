"""Data sets that drift."""

from sklearn_cl.datasets._kernels import load_kernel_timings
from sklearn_cl.datasets._stream import make_drift_stream
from sklearn_cl.datasets._tokio import fetch_tokio

__all__ = ["fetch_tokio", "load_kernel_timings", "make_drift_stream"]
