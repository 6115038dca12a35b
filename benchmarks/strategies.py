"""Every strategy with its defaults on five real streams.

    python benchmarks/strategies.py [--seeds 3] [--rows 1000] [--jobs 1]

Streams: tokio_cori, tokio_edison, gpu_convolution, x264_versions, x264_inputs, prepared as in
`_streams.py` (log target). At most ``--rows`` rows of each experience, drawn by the seed; 30 % of
each are held out. Net 64-64, batches of 32, 30 epochs an experience, no early end; all else at
its default. The rows "... 10 %" are memories of a tenth of all training rows.

Printed for each stream: the mean absolute error over all experiences in the end relative to
naive and to cumulative, and over all streams the geometric means of these, forgetting (of the
error) and learning error relative to naive's error, CPU time relative to naive, and KiB of state.
The data are read from the folder in SKLEARN_CL_SHARED, else from `../shared`.
"""

from __future__ import annotations

import time
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
from sklearn_cl.metrics import final_score, forgetting, learning_score
from sklearn_cl.strategies import PseudoRehearsal, Replay, available, chain

EPOCHS, BATCH, HIDDEN = 30, 32, (64, 64)


def candidates(n_rows: int) -> dict[str, Any]:
    """What is compared; ``n_rows`` are all training rows of the stream."""
    tenth = max(1, n_rows // 10)
    return {
        **{name: name for name in available()},
        "replay 10 %": Replay(tenth),
        "replay, distill 10 %": Replay(tenth, distill=0.75),
        "pseudo + replay 10 %": chain(PseudoRehearsal(10), Replay(tenth, distill=0.9)),
    }


def run(stream: str, name: str, seed: int, folder: Path, rows: int) -> dict[str, Any]:
    """One strategy on one stream."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y, experience = load(stream, folder, rows, seed)
    reg = ContinualMLPRegressor(
        HIDDEN,
        strategy=candidates(int(0.7 * len(y)))[name],
        batch_size=BATCH,
        max_iter=EPOCHS,
        n_iter_no_change=EPOCHS,
        random_state=seed,
    )
    begun = time.process_time()
    result = continual_validate(
        reg, X, y, experience=experience, scoring="neg_mean_absolute_error", random_state=seed
    )
    R = result["R"]
    return {
        "stream": stream,
        "strategy": name,
        "seed": seed,
        "error": -final_score(R),
        "forgetting": forgetting(R),
        "learning": -learning_score(R),
        "seconds": time.process_time() - begun,
        "kib": result["state_bytes"][-1] / 2**10,
    }


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds, relative to naive and to cumulative, by stream and over all."""
    means = runs.groupby(["strategy", "stream"], sort=False).mean().drop(columns="seed")
    error = means["error"].unstack()
    naive, cumulative = error.loc["naive"], error.loc["cumulative"]
    table = (error / naive).add_suffix(" / naive")
    table["all / naive"] = np.exp(np.log(error / naive).mean(axis=1))
    table["all / cumulative"] = np.exp(np.log(error / cumulative).mean(axis=1))
    table["forgetting"] = (means["forgetting"].unstack() / naive).mean(axis=1)
    table["learning"] = (means["learning"].unstack() / naive).mean(axis=1)
    seconds = runs.groupby(["strategy", "stream"])["seconds"].median().unstack()
    table["time"] = np.exp(np.log(seconds / seconds.loc["naive"]).mean(axis=1))
    table["KiB"] = means["kib"].unstack().mean(axis=1)
    return table.sort_values("all / naive")


def bars(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """What the defaults and the best memory of a tenth have to reach."""
    means = runs.groupby(["strategy", "stream"], sort=False).mean().drop(columns="seed")
    error = means["error"].unstack()
    # The first run of a process imports.
    seconds = runs.groupby(["strategy", "stream"])["seconds"].median().unstack()
    ratio = error.div(error.loc["naive"]).drop(["naive", "no_retrain", "from_scratch"])
    worst = ratio.stack()
    tenth = error.loc[[name for name in error.index if name.endswith("%")]]
    near = (tenth / error.loc["cumulative"] <= 1.1).sum(axis=1)
    best = near.idxmax()
    long = ["gpu_convolution", "x264_versions", "x264_inputs"]
    time_ratio = (seconds.loc[best] / seconds.loc["cumulative"])[long].max()
    return [
        {
            "what": f"worst of all: {' on '.join(worst.idxmax())}",
            "value": float(worst.max()),
            "at_most": 1.03,
        },
        {"what": f"streams where {best} is near", "value": int(near.max()), "at_least": 3},
        {"what": "its time / cumulative", "value": float(time_ratio), "at_most": 0.7},
    ]


def main() -> None:
    """Print the table and write the figures."""
    options_of = parser(__doc__, "strategies")
    options_of.add_argument("--seeds", type=int, default=3)
    options_of.add_argument("--rows", type=int, default=1000)
    options_of.add_argument("--jobs", type=int, default=1)
    options = options_of.parse_args()
    folder = shared_data()
    jobs = [
        (stream, name, seed, folder, options.rows)
        for stream in STREAMS
        for name in candidates(0)
        for seed in range(options.seeds)
    ]
    runs = pd.DataFrame(
        joblib.Parallel(options.jobs)(joblib.delayed(run)(*job) for job in jobs),
    )
    about = machine("torch", "scikit-learn", "numpy")
    table, reached = summary(runs), bars(runs)
    print(about)
    print(f"{options.seeds} seeds, at most {options.rows} rows of each experience\n")
    print(table.to_string(float_format="{:.2f}".format))
    print()
    for bar in reached:
        limit = f"<= {bar['at_most']}" if "at_most" in bar else f">= {bar['at_least']}"
        print(f"{bar['what']:60}{bar['value']:8.2f}   to reach: {limit}")
    save(
        options.json,
        {"machine": about, "table": table.to_dict("index"), "bars": reached},
    )


if __name__ == "__main__":
    main()
