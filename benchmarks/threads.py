"""Where a second thread pays: wall time of a step on one and on two threads, by its size.

    python benchmarks/threads.py [--rounds 5]

The default of the package (one thread below 10^7 rows times parameters of a step) is read from
this table. Interleaved; medians of wall time; nothing else should run meanwhile.
"""

from __future__ import annotations

import itertools
import time
import warnings
from typing import Any

import numpy as np
import torch
from _report import machine, parser, save
from sklearn.exceptions import ConvergenceWarning

from sklearn_cl import ContinualMLPRegressor, _threads

N_FEATURES, N_STEPS = 32, 60


def seconds(width: int, batch: int, threads: int) -> tuple[float, int]:
    """Wall time of a step, and the parameters of the net."""
    X = np.random.default_rng(0).normal(size=(batch * 4, N_FEATURES)).astype(np.float32)
    reg = ContinualMLPRegressor((width, width), strategy="naive", batch_size=batch, max_iter=1)
    reg.fit(X[:batch], X[:batch, 0]).set_params(max_iter=N_STEPS // 4, n_iter_no_change=N_STEPS)
    torch.set_num_threads(threads)
    begun = time.perf_counter()
    reg.partial_fit(X, X[:, 0])
    return (time.perf_counter() - begun) / N_STEPS, len(reg.net_.engine_.flat.theta)


def main() -> None:
    """Print the table and write the figures."""
    options_of = parser(__doc__, "threads")
    options_of.add_argument("--rounds", type=int, default=5)
    options = options_of.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    # The default that is in question must not decide.
    small, _threads._SMALL = _threads._SMALL, 0
    about = machine("torch", "numpy")
    print(about)
    print(
        f"{'width':>6}{'batch':>7}{'rows x parameters':>19}{'one, ms':>9}{'two, ms':>9}{'ratio':>7}"
    )
    rows: list[dict[str, Any]] = []
    for width, batch in itertools.product((32, 64, 128, 256, 512), (128, 512, 2048)):
        times = np.empty((options.rounds, 2))
        for round_, threads in itertools.product(range(options.rounds), (1, 2)):
            times[round_, threads - 1], n_parameters = seconds(width, batch, threads)
        one, two = 1e3 * np.median(times, 0)
        ratio = float(np.median(times[:, 1] / times[:, 0]))
        work = batch * n_parameters
        rows.append({"width": width, "batch": batch, "work": work, "ratio": ratio})
        print(f"{width:6}{batch:7}{work:15.1e}{one:9.3f}{two:9.3f}{ratio:7.2f}")
    print(f"\none thread is the default below {small:.0e}")
    save(options.json, {"machine": about, "steps": rows, "default": small})


if __name__ == "__main__":
    main()
