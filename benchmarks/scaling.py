"""Statistics of the first experience, or statistics that follow?

    python benchmarks/scaling.py [--seeds 2] [--rows 500] [--jobs 2]

On the seven shared streams (`_streams.py`; log target, and the target as it was measured) the mean
absolute error over all experiences in the end with ``standardize="running"`` over that with
``standardize=True``, for three strategies. The data are read from the folder in
SKLEARN_CL_SHARED, else from `../shared`.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from _report import machine, parser, save
from _streams import STREAMS, load, shared_data

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.metrics import final_score

SEVEN = [*STREAMS, "tokio_mira", "gpu_dedispersion"]


def run(
    stream: str, strategy: str, seed: int, folder: Path, rows: int, log: bool
) -> dict[str, Any]:
    """Both on one stream."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y, experience = load(stream, folder, rows, seed)
    error = {}
    for standardize in (True, "running"):
        reg = ContinualMLPRegressor(
            strategy=strategy,
            standardize=standardize,
            batch_size=32,
            max_iter=30,
            random_state=seed,
        )
        R = continual_validate(
            reg,
            X,
            y if log else np.exp(y),
            experience=experience,
            scoring="neg_mean_absolute_error",
            random_state=seed,
        )["R"]
        error[standardize] = -final_score(R)
    return {
        "stream": stream,
        "target": "log" if log else "raw",
        "strategy": strategy,
        "ratio": error["running"] / error[True],
    }


def main() -> None:
    """Print the table and write the figures."""
    options_of = parser(__doc__, "scaling")
    options_of.add_argument("--seeds", type=int, default=2)
    options_of.add_argument("--rows", type=int, default=500)
    options_of.add_argument("--jobs", type=int, default=2)
    options = options_of.parse_args()
    folder = shared_data()
    runs = pd.DataFrame(
        joblib.Parallel(options.jobs)(
            joblib.delayed(run)(stream, strategy, seed, folder, options.rows, log)
            for log in (True, False)
            for stream in SEVEN
            for strategy in ("naive", "replay", "pseudo")
            for seed in range(options.seeds)
        )
    )
    runs["ratio"] = np.log(runs["ratio"])
    means = np.exp(runs.groupby(["target", "stream", "strategy"], sort=False)["ratio"].mean())
    table = means.unstack()
    overall = np.exp(runs.groupby(["target", "strategy"], sort=False)["ratio"].mean()).unstack()
    about = machine("torch", "scikit-learn", "numpy")
    print(about)
    print("error with running over error with first\n")
    print(table.to_string(float_format="{:.3f}".format))
    print()
    print(overall.to_string(float_format="{:.3f}".format))
    rows = {f"{target} {stream}": dict(row) for (target, stream), row in table.iterrows()}
    save(options.json, {"machine": about, "table": rows, "all": overall.to_dict("index")})


if __name__ == "__main__":
    main()
