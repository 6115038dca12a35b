"""Measure how long numerical kernels take while the software below them is upgraded.

    python benchmarks/collect_kernel_timings.py [--configurations 3000] [--table FILE]
    python benchmarks/collect_kernel_timings.py --summary [--table FILE]

This made the table behind `sklearn_cl.datasets.load_kernel_timings`; run it to have the same
table for your machine (about 15 minutes; keep the machine idle). It needs numpy and Python 3.11,
the only one for which all six releases of numpy have wheels. `--summary` measures nothing: it
prints each kernel's time over that in the first state, in the median over its configurations.

The design is fixed by `--seed`: configurations of 28 kernels, drawn at random, each measured in
every one of six states of the software (`STATES`). Each state is a virtual environment with
pinned releases and one process that stays alive; for each configuration the states take turns,
in an order that rotates, so that what else the machine does falls on all of them alike. A timing
is the median of seven repeats of as many calls as take a millisecond, after one call to warm up.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from functools import partial
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

N_REPEATS = 7
LEAST_SECONDS = 1e-3
PYTHON = (3, 11)


class State(NamedTuple):
    """A state of the software: releases, and what the application finds behind its calls."""

    numpy: str
    scipy: str
    json: str
    compressor: str
    threads: int


# In the order of the releases of numpy.
STATES = [
    State("1.23.5", "1.9.3", "json", "zlib", 1),
    State("1.25.2", "1.11.4", "ujson==5.8.0", "zlib", 1),
    State("1.26.4", "1.12.0", "ujson==5.9.0", "isal==1.5.3", 1),
    State("2.0.2", "1.14.1", "orjson==3.10.7", "isal==1.6.1", 2),
    State("2.2.6", "1.15.3", "orjson==3.10.18", "zlib-ng==0.5.1", 2),
    State("2.4.6", "1.17.1", "orjson==3.11.9", "zlib-ng==1.0.0", 2),
]

FLOATS = ("float64", "float32")
NUMBERS = (*FLOATS, "int64", "int32", "int16")
ORDERS = ("random", "sorted", "reversed", "few")
AXES = ("rows", "columns")
TEXTS = ("prose", "numbers", "noise")


class Kernel(NamedTuple):
    """What a configuration of a kernel may be."""

    least: float
    most: float
    dtypes: tuple[str, ...] = FLOATS
    layouts: tuple[str, ...] = ("random",)
    levels: tuple[int, ...] = (0,)


KERNELS = {
    "sort": Kernel(3e2, 1e5, NUMBERS, ORDERS),
    "argsort": Kernel(3e2, 6e4, NUMBERS, ORDERS),
    "partition": Kernel(3e2, 1e5, NUMBERS, ORDERS),
    "unique": Kernel(3e2, 6e4, NUMBERS, ORDERS),
    "isin": Kernel(3e2, 3e4, ("int64", "float64"), ORDERS),
    "searchsorted": Kernel(3e2, 2e4, NUMBERS, ("random", "sorted")),
    "sum": Kernel(1e3, 3e5, NUMBERS, AXES),
    "std": Kernel(1e3, 1e5, FLOATS, AXES),
    "argmax": Kernel(1e3, 3e5, NUMBERS, AXES),
    "median": Kernel(1e3, 1e5, FLOATS, AXES),
    "cumsum": Kernel(1e3, 1e5, NUMBERS),
    "add": Kernel(1e3, 3e5, NUMBERS, ("contiguous", "strided")),
    "exp": Kernel(1e3, 1e5, FLOATS, ("contiguous", "strided")),
    "sin": Kernel(1e3, 1e5, FLOATS, ("contiguous", "strided")),
    "power": Kernel(1e3, 1e5, FLOATS, ("contiguous", "strided")),
    "floor_divide": Kernel(1e3, 1e5, NUMBERS, ("contiguous", "strided")),
    "matmul": Kernel(1e3, 1e5, FLOATS, AXES),
    "solve": Kernel(4e2, 4e4, FLOATS),
    "numpy_fft": Kernel(1e3, 1e5, FLOATS, ("power of two", "smooth", "prime")),
    "scipy_fft": Kernel(1e3, 1e5, FLOATS, ("power of two", "smooth", "prime")),
    "spmv": Kernel(1e3, 1e5, FLOATS, ("csr", "csc", "coo")),
    "gaussian_filter": Kernel(1e3, 6e4, FLOATS),
    "histogram": Kernel(1e3, 1e5, FLOATS, ("random", "few")),
    "char_find": Kernel(1e2, 1e4, ("str",), ("prose",)),
    "compress": Kernel(1e3, 1e5, ("bytes",), TEXTS, tuple(range(1, 10))),
    "decompress": Kernel(1e3, 3e5, ("bytes",), TEXTS, tuple(range(1, 10))),
    "json_dumps": Kernel(1e2, 1e4, ("float64", "int64", "str")),
    "json_loads": Kernel(1e2, 1e4, ("float64", "int64", "str")),
}


class Configuration(NamedTuple):
    """One thing to time; ``n`` counts elements, or bytes of what is compressed."""

    kernel: str
    n: int
    dtype: str
    layout: str
    level: int


def design(n_configurations: int, seed: int) -> list[Configuration]:
    """Configurations of all kernels in equal numbers; sizes are uniform in their logarithm."""
    chance = np.random.default_rng(seed)
    names = list(KERNELS)
    made = []
    for i in range(n_configurations):
        name = names[i % len(names)]
        kernel = KERNELS[name]
        n = int(np.exp(chance.uniform(np.log(kernel.least), np.log(kernel.most))))
        pick = [
            options[chance.integers(len(options))]
            for options in (kernel.dtypes, kernel.layouts, kernel.levels)
        ]
        made.append(Configuration(name, n, *pick))
    return [made[i] for i in chance.permutation(len(made))]


# What runs in each state. Only numpy, scipy and what the state names may be imported.


def values(config: Configuration, chance: np.random.Generator) -> np.ndarray:
    """Numbers of the configuration's type in its order."""
    distinct = 30 if config.layout == "few" else 30000
    x = chance.integers(-distinct, distinct, config.n)
    x = x + chance.uniform(size=config.n) if config.dtype.startswith("f") else x
    x = x.astype(config.dtype)
    if config.layout == "few" and config.dtype.startswith("f"):
        x = np.floor(x)
    if config.layout in ("sorted", "reversed"):
        x = np.sort(x)[:: 1 if config.layout == "sorted" else -1].copy()
    return x


def text(config: Configuration, chance: np.random.Generator) -> bytes:
    """Bytes to compress."""
    if config.layout == "noise":
        return bytes(chance.integers(0, 256, config.n, dtype="uint8"))
    if config.layout == "numbers":
        return b",".join(b"%.6g" % x for x in chance.normal(size=config.n // 7))
    words = [bytes(chance.integers(97, 123, size)) for size in chance.integers(2, 9, 500)]
    return b" ".join(words[i] for i in chance.zipf(1.4, config.n // 5) % 500)


def prepare(config: Configuration, state: State) -> Callable[[], Any]:
    """The call to be timed; making its data is not."""
    name, n, dtype, _, level = config
    chance = np.random.default_rng(n)
    if name in ("compress", "decompress"):
        package = state.compressor.split("==")[0].replace("-", "_")
        module = {"isal": "isal.isal_zlib", "zlib_ng": "zlib_ng.zlib_ng"}.get(package, package)
        library = importlib.import_module(module)
        # isal knows the levels up to 3; an application's 9 means its strongest.
        strength = min(level, 3) if package == "isal" else level
        raw = text(config, chance)
        if name == "compress":
            return partial(library.compress, raw, strength)
        return partial(library.decompress, library.compress(raw, strength))
    if name in ("json_dumps", "json_loads"):
        library = importlib.import_module(state.json.split("==")[0])
        numbers = chance.normal(size=n) if dtype == "float64" else chance.integers(0, 10**6, n)
        items = [str(x) for x in numbers] if dtype == "str" else numbers.tolist()
        record = {"values": items, "name": "run"}
        if name == "json_dumps":
            return partial(library.dumps, record)
        return partial(library.loads, library.dumps(record))
    if name == "char_find":
        return partial(np.char.find, np.array([str(x) for x in chance.integers(0, 10**9, n)]), "77")
    return _numerical(config, chance, state.threads)


def _numerical(
    config: Configuration, chance: np.random.Generator, threads: int
) -> Callable[[], Any]:
    import scipy.fft
    import scipy.linalg
    import scipy.ndimage
    import scipy.sparse

    name, n, dtype, layout, _ = config
    side = max(2, round(n**0.5))
    if name in ("sum", "std", "argmax", "median", "matmul"):
        plain = config._replace(n=side * side, layout="random")
        square = values(plain, chance).reshape(side, side)
        if name == "matmul":
            return partial(np.matmul, square, square if layout == "rows" else square.T)
        return partial(getattr(np, name), square, axis=1 if layout == "rows" else 0)
    if name in ("numpy_fft", "scipy_fft"):
        length = 2 ** round(np.log2(n))
        if layout == "smooth":
            length = scipy.fft.next_fast_len(n)
        if layout == "prime":
            length = next(k for k in range(n, 1, -1) if all(k % d for d in range(2, isqrt(k) + 1)))
        z = chance.normal(size=length) + 1j * chance.normal(size=length)
        z = z.astype("complex64" if dtype == "float32" else "complex128")
        return partial(np.fft.fft if name == "numpy_fft" else scipy.fft.fft, z)
    if name == "spmv":
        rows = max(10, n // 10)
        i, j = chance.integers(0, rows, (2, n))
        matrix = scipy.sparse.coo_matrix(
            (chance.normal(size=n).astype(dtype), (i, j)), shape=(rows, rows)
        ).asformat(layout)
        return partial(matrix.dot, np.ones(rows, dtype))
    if name == "solve":
        matrix = chance.normal(size=(side, side)) + side * np.eye(side)
        return partial(scipy.linalg.solve, matrix.astype(dtype), np.ones(side, dtype))
    if name == "gaussian_filter":
        image = chance.normal(size=(side, side)).astype(dtype)
        return partial(scipy.ndimage.gaussian_filter, image, 2.0)
    if layout in ("contiguous", "strided"):
        step = 3 if layout == "strided" else 1
        x = values(config._replace(n=n * step, layout="random"), chance)[::step]
        if name in ("exp", "sin"):
            return partial(getattr(np, name), x / x.dtype.type(3000))
        if name == "power":
            return partial(np.power, np.abs(x), x.dtype.type(1.5))
        return partial(getattr(np, name), x, x if name == "add" else x.dtype.type(7))
    x = values(config, chance)
    if name == "isin":
        return partial(np.isin, x, chance.choice(x, max(1, n // 50)))
    if name == "searchsorted":
        return partial(np.searchsorted, np.sort(x), x)
    if name == "partition":
        return partial(np.partition, x, n // 2)
    if name == "histogram":
        return partial(np.histogram, x, 50)
    return partial(getattr(np, name), x)


def seconds_of(call: Callable[[], Any]) -> float:
    """Median time of one call."""
    call()
    begun = time.perf_counter()
    call()
    number = max(1, round(LEAST_SECONDS / max(1e-9, time.perf_counter() - begun)))
    taken = []
    for _ in range(N_REPEATS):
        begun = time.perf_counter()
        for _ in range(number):
            call()
        taken.append((time.perf_counter() - begun) / number)
    return float(np.median(taken))


def serve(state: State) -> None:
    """Time each configuration that comes in, and answer with seconds."""
    for line in sys.stdin:
        taken = seconds_of(prepare(Configuration(*json.loads(line)), state))
        print(f"{taken:.9g}", flush=True)


def environment(state: State, folder: Path) -> Path:
    """The Python of a virtual environment with the releases of the state."""
    made = folder / f"numpy-{state.numpy}"
    python = made / ("Scripts" if os.name == "nt" else "bin") / "python"
    complete = made / "complete"
    if not complete.exists():
        print(f"setting up numpy {state.numpy}, scipy {state.scipy}", flush=True)
        venv.create(made, with_pip=True, clear=True)
        pinned = [package for package in (state.json, state.compressor) if "==" in package]
        packages = [f"numpy=={state.numpy}", f"scipy=={state.scipy}", *pinned]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        complete.touch()
    return python


def measure(configs: list[Configuration], folder: Path) -> Iterator[tuple[int, int, float]]:
    """Configuration, state and seconds, the states in turn."""
    workers = []
    for number, state in enumerate(STATES):
        workers.append(
            subprocess.Popen(
                [environment(state, folder), __file__, "--serve", str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # Threads of BLAS; its other settings stay as the machine has them.
                env=os.environ | {"OMP_NUM_THREADS": str(state.threads)},
            )
        )
    for i, config in enumerate(configs):
        for turn in range(len(workers)):
            k = (i + turn) % len(workers)
            asked, answered = workers[k].stdin, workers[k].stdout
            assert asked is not None and answered is not None
            asked.write(json.dumps(config) + "\n")
            asked.flush()
            yield i, k, float(answered.readline())
    for worker in workers:
        worker.communicate()


def minor(release: str) -> int:
    """Minor releases of numpy since 1.0; 2.0 followed 1.26."""
    major, number = map(int, release.split(".")[:2])
    return number + 27 * (major - 1)


def summary(table: Path) -> str:
    """Time of each kernel and type over that in the first state, medians over configurations."""
    with gzip.open(table, "rt") as lines:
        rows = list(csv.DictReader(lines))
    states = sorted({row["experience"] for row in rows}, key=int)
    # The same configurations in each state, in the same order.
    seconds = np.reshape([float(row["seconds"]) for row in rows], (len(states), -1))
    ratio = seconds / seconds[0]
    names = np.array([f"{row['kernel']}, {row['dtype']}" for row in rows[: ratio.shape[1]]])
    made = [f"{'time / first state':24}" + "".join(f"{state:>7}" for state in states)]
    for name in sorted(set(names)):
        middle = np.median(ratio[:, names == name], axis=1)
        made.append(f"{name:24}" + "".join(f"{value:7.2f}" for value in middle))
    return "\n".join(made)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configurations", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--table", type=Path, default="kernel_timings.csv.gz", help="default: %(default)s, here"
    )
    parser.add_argument("--environments", type=Path, help="keep the environments in this folder")
    parser.add_argument("--summary", action="store_true", help="of a table that is there")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(STATES[options.serve])
        return
    if options.summary:
        print(summary(options.table))
        return
    if sys.version_info[:2] != PYTHON:
        parser.error(f"Python {PYTHON[0]}.{PYTHON[1]} is needed, for the wheels of all releases")
    configs = design(options.configurations, options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        found = sorted(measure(configs, options.environments or Path(scratch)), key=lambda m: m[1])
    out = io.StringIO()
    print(
        "experience,kernel,n,dtype,layout,level,numpy_minor,scipy_minor,"
        "json_library,compressor,threads,seconds",
        file=out,
    )
    for i, k, taken in found:
        state = STATES[k]
        libraries = ",".join(name.split("==")[0] for name in (state.json, state.compressor))
        print(
            k,
            *configs[i],
            minor(state.numpy),
            int(state.scipy.split(".")[1]),
            libraries,
            state.threads,
            f"{taken:.4g}",
            sep=",",
            file=out,
        )
    options.table.parent.mkdir(parents=True, exist_ok=True)
    # No time and no name in the header, so that equal tables are equal files.
    options.table.write_bytes(gzip.compress(out.getvalue().encode(), mtime=0))
    print(f"{len(found)} rows, {options.table.stat().st_size / 2**10:.0f} KiB: {options.table}")


if __name__ == "__main__":
    main()
