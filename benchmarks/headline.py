"""The headline on real data: I/O throughput of Cori through two upgrades of its file system.

4 989 daily I/O benchmark jobs on NERSC's Cori in three regimes, cut by two dated upgrades.
Inputs: one-hot application, direction and file mode, and the configuration and state columns,
log-scaled; target: log of the aggregate throughput. 30 % of every experience are held out.
Net 64-64, batches of 32, 60 epochs per experience, Adam at 1e-3; no early end.

    python benchmarks/headline.py [--seeds 3]

The data are read from the folder in the environment variable SKLEARN_CL_SHARED, else from
`../shared` beside the checkout.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from _report import machine, parser, save

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.metrics import final_score, forgetting, learning_score
from sklearn_cl.strategies import EWC, Replay

CATEGORIES = ["app", "io_dir", "file_mode"]
META = ["experience", "timestamp", "run_time_s", "target"]
STRATEGIES = {
    "naive": "naive",
    "replay(500)": Replay(capacity=500),
    "ewc": EWC(),
    "cumulative": "cumulative",
    "from_scratch": "from_scratch",
    "no_retrain": "no_retrain",
}


def load_cori(folder: Path) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Inputs (24 columns), log throughput [log GiB/s] and experience."""
    table = pd.read_csv(folder / "tokio_cori.csv.gz")
    state = table.drop(columns=META + CATEGORIES)
    X = pd.concat([pd.get_dummies(table[CATEGORIES], dtype=float), np.log1p(state)], axis=1)
    return X, np.log(table["target"]), table["experience"]


def run(folder: Path, n_seeds: int) -> pd.DataFrame:
    """One row for each strategy: means over the seeds."""
    X, y, experience = load_cori(folder)
    rows = []
    for seed in range(n_seeds):
        for name, strategy in STRATEGIES.items():
            reg = ContinualMLPRegressor(
                (64, 64),
                strategy=strategy,
                batch_size=32,
                max_iter=60,
                n_iter_no_change=60,
                random_state=seed,
            )
            begun = time.process_time()
            R = continual_validate(
                reg,
                X,
                y,
                experience=experience,
                scoring="neg_mean_absolute_error",
                random_state=seed,
            )["R"]
            rows.append(
                {
                    "strategy": name,
                    "final MAE": -final_score(R),
                    "forgetting": forgetting(R),
                    "learning MAE": -learning_score(R),
                    "CPU seconds": time.process_time() - begun,
                }
            )
    table = pd.DataFrame(rows).groupby("strategy", sort=False).mean()
    table.insert(1, "naive / this", table.loc["naive", "final MAE"] / table["final MAE"])
    return table


def main() -> None:
    """Print the table and write the figures."""
    options_of = parser(__doc__, "headline")
    options_of.add_argument("--seeds", type=int, default=3)
    options = options_of.parse_args()
    torch.set_num_threads(1)
    beside = Path(__file__).parents[2] / "shared"
    folder = Path(os.environ.get("SKLEARN_CL_SHARED", beside)) / "data"
    if not folder.is_dir():
        raise SystemExit("the shared data are absent; set SKLEARN_CL_SHARED to their folder")
    about = machine("torch", "scikit-learn", "numpy")
    print(about)
    print(f"tokio_cori, {options.seeds} seeds; errors of log throughput, means over experiences\n")
    table = run(folder, options.seeds)
    print(table.to_string(float_format="{:.3f}".format))
    save(options.json, {"machine": about, "tokio_cori": table.to_dict("index")})


if __name__ == "__main__":
    main()
