"""Whether time and memory stay flat when a stream is long.

    python benchmarks/long_run.py [--calls 100000] [--only experiences,calls,chunks]

Three streams, one thread, a 64-64 perceptron:

- *experiences*: 120 experiences of 100 rows for every strategy; CPU time of the last 20 over that
  of the 20 after the first two (Cumulative, which trains on all rows seen, must grow).
- *calls*: `partial_fit` of 8 rows, 100 000 times; time of a call, resident memory and size of the
  pickle at call 1 000 and at the end.
- *chunks*: 2 M x 32 rows in 200 chunks of float64; peak memory before and after, the caller's
  chunk included; then one chunk of 20 and one of 40 times the size, whose difference says how many
  bytes the peak has for each byte of a chunk.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from _report import machine, parser, peak_rss, rss, save
from sklearn.exceptions import ConvergenceWarning

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import available

HIDDEN = (64, 64)


def make_part(n_rows: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose target drifts with the seed."""
    X = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    return X, np.sin(X[:, :3].sum(1) + seed / 20)


def timed(reg: ContinualMLPRegressor, X: np.ndarray, y: np.ndarray) -> float:
    """CPU seconds of one call."""
    begun = time.process_time()
    reg.partial_fit(X, y)
    return time.process_time() - begun


def experiences(n: int = 120) -> Iterator[dict[str, Any]]:
    """Time of an experience late in a stream over that of an early one, by strategy."""
    parts = [make_part(100, 8, k) for k in range(n)]
    for name in available():
        reg = ContinualMLPRegressor(HIDDEN, strategy=name, max_iter=10, random_state=0)
        seconds = [timed(reg, X, y) for X, y in parts]
        early, late = (1e3 * float(np.median(seconds[k])) for k in (slice(2, 22), slice(-20, None)))
        yield {
            "strategy": name,
            "early_ms": early,
            "late_ms": late,
            "ratio": late / early,
            "state_kib": reg.experiences_[-1].state_bytes / 2**10,
        }


def calls(strategy: str, n: int) -> dict[str, Any]:
    """Time, memory and pickle of small calls, early and late."""
    parts = [make_part(8, 8, k) for k in range(500)]
    reg = ContinualMLPRegressor(HIDDEN, strategy=strategy, max_iter=1, random_state=0)
    seconds, found = np.empty(n), {}
    for call in range(n):
        seconds[call] = timed(reg, *parts[call % len(parts)])
        if call + 1 in (2000, n):
            when = "early" if call + 1 == 2000 else "late"
            found[f"{when}_rss_mib"] = rss()
            found[f"{when}_pickle_kib"] = len(pickle.dumps(reg)) / 2**10
    early, late = (1e3 * float(np.median(seconds[k])) for k in (slice(1000, 2000), slice(-1000, n)))
    return {
        "strategy": strategy,
        "early_ms": early,
        "late_ms": late,
        "ratio": late / early,
        **found,
    }


def chunks(n: int = 200, size: int = 10_000, large: int = 20) -> dict[str, Any]:
    """Peak memory of a stream of chunks, and how it grows with the size of a chunk."""
    reg = ContinualMLPRegressor(HIDDEN, strategy="replay", max_iter=1, random_state=0)
    reg.partial_fit(*make_part(2000, 32, 0)).partial_fit(*make_part(2000, 32, 0))
    peaks = [peak_rss()]
    for k in range(n):
        reg.partial_fit(*make_part(size, 32, k))
    peaks.append(peak_rss())
    for factor in (large, 2 * large):
        reg.partial_fit(*make_part(factor * size, 32, n))
        peaks.append(peak_rss())
    chunk = size * 33 * 8 / 2**20
    return {
        "rows": n * size,
        "chunk_mib": chunk,
        "before_mib": peaks[0],
        "peak_mib": peaks[1],
        "large_peak_mib": peaks[2],
        "larger_peak_mib": peaks[3],
        "peak_per_chunk": (peaks[3] - peaks[2]) / (large * chunk),
    }


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """A table of figures."""
    print(f"\n{title}")
    print("".join(f"{name:>20}" for name in rows[0]))
    for row in rows:
        print("".join(f"{v:>20.2f}" if isinstance(v, float) else f"{v:>20}" for v in row.values()))


def main() -> None:
    """Print the tables and write the figures."""
    options_of = parser(__doc__, "long_run")
    options_of.add_argument("--calls", type=int, default=100_000)
    options_of.add_argument("--only", default="chunks,calls,experiences")
    options = options_of.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    about = machine("torch", "scikit-learn", "numpy")
    print(about)
    found: dict[str, Any] = {"machine": about}
    wanted = options.only.split(",")
    # Peak memory can be told for the first of them only.
    if "chunks" in wanted:
        found["chunks"] = [chunks()]
        show("2 M rows in chunks", found["chunks"])
    if "calls" in wanted:
        found["calls"] = [calls(name, options.calls) for name in ("naive", "replay", "ewc")]
        show(f"{options.calls} calls of 8 rows", found["calls"])
    if "experiences" in wanted:
        found["experiences"] = list(experiences())
        show("120 experiences of 100 rows", found["experiences"])
    save(options.json, found)


if __name__ == "__main__":
    main()
