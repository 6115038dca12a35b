"""Run times of numerical kernels through five upgrades of their software."""

from __future__ import annotations

import csv
import gzip
from importlib import resources
from typing import Any

import numpy as np

from sklearn_cl.datasets._bunch import description, table_bunch

_CATEGORIES = {
    "kernel": (
        "add",
        "argmax",
        "argsort",
        "char_find",
        "compress",
        "cumsum",
        "decompress",
        "exp",
        "floor_divide",
        "gaussian_filter",
        "histogram",
        "isin",
        "json_dumps",
        "json_loads",
        "matmul",
        "median",
        "numpy_fft",
        "partition",
        "power",
        "scipy_fft",
        "searchsorted",
        "sin",
        "solve",
        "sort",
        "spmv",
        "std",
        "sum",
        "unique",
    ),
    "dtype": ("bytes", "float32", "float64", "int16", "int32", "int64", "str"),
    "layout": (
        "columns",
        "contiguous",
        "coo",
        "csc",
        "csr",
        "few",
        "noise",
        "numbers",
        "power of two",
        "prime",
        "prose",
        "random",
        "reversed",
        "rows",
        "smooth",
        "sorted",
        "strided",
    ),
    "json_library": ("json", "orjson", "ujson"),
    "compressor": ("isal", "zlib", "zlib-ng"),
}
_NUMBERS = ("experience", "n", "level", "numpy_minor", "scipy_minor", "threads", "seconds")
#: The columns that tell in which state the software was.
STATE = ("numpy_minor", "scipy_minor", "json_library", "compressor", "threads")


def load_kernel_timings(*, as_frame: bool = False, return_X_y: bool = False) -> Any:
    """Load run times of numerical kernels while the software below them was upgraded.

    3 000 configurations of 28 kernels (sorting, reductions, elementwise functions, linear
    algebra, Fourier transforms, sparse products, compression, JSON), each measured in six
    states of the software: releases of numpy from 1.23 to 2.4 with scipy's of their time, three
    JSON libraries, three compressors, one thread and two. In between, powers, sorting and string
    functions became faster, and the sine of float64 and `unique` of integers slower.

    =============  ==================
    Rows           18 000
    Experiences    6, of 3 000 rows
    Inputs         10 (63 as an array)
    Target         0.4 us to 23 ms
    =============  ==================

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas objects, with categories as such. Otherwise these are columns of 0 and 1.
    return_X_y : bool, default=False
        Return ``(data, target)`` only. The experiences are in the Bunch.

    Returns
    -------
    data : `sklearn.utils.Bunch`
        What was loaded, by name:

        data : {ndarray, DataFrame} of shape (18000, n_features)
            Configuration of the call (``kernel``, ``n`` in elements or bytes, ``dtype``,
            ``layout``, ``level`` of compression) and state of the software (``numpy_minor``,
            minor releases since numpy 1.0; ``scipy_minor``, ``json_library``, ``compressor``,
            ``threads``).
        target : {ndarray, Series} of shape (18000,)
            Run time of one call, in seconds. It spans four decades: learn its logarithm.
        experience : {ndarray, Series} of shape (18000,)
            State of the software, from 0, in the order of the releases.
        frame : DataFrame
            All columns; only with ``as_frame=True``.
        feature_names, target_names, state_names : list of str
            Names of the columns, and of those inputs that tell the state of the software.
        DESCR : str
            The data card.

    Notes
    -----
    ``benchmarks/collect_kernel_timings.py`` made the table, and makes it for your machine.

    Examples
    --------
    >>> from sklearn_cl.datasets import load_kernel_timings
    >>> timings = load_kernel_timings()
    >>> timings.data.shape, timings.target.shape, set(timings.experience.tolist())
    ((18000, 63), (18000,), {0, 1, 2, 3, 4, 5})
    """
    packed = resources.files("sklearn_cl.datasets") / "data" / "kernel_timings.csv.gz"
    lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
    header, *rows = csv.reader(lines)
    columns: dict[str, Any] = dict(zip(header, map(np.array, zip(*rows, strict=True)), strict=True))
    for name in _NUMBERS:
        columns[name] = columns[name].astype(float if name == "seconds" else int)
    features = [name for name in header if name not in ("experience", "seconds")]
    bunch = table_bunch(
        columns,
        features,
        _CATEGORIES,
        "seconds",
        as_frame=as_frame,
        DESCR=description("kernel_timings"),
    )
    bunch.state_names = [name for name in bunch.feature_names if name.partition("=")[0] in STATE]
    return (bunch.data, bunch.target) if return_X_y else bunch
