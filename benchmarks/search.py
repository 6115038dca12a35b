"""Is a choice without looking ahead as good as the best in hindsight?

    python benchmarks/search.py [--seeds 3] [--rows 600] [--jobs 2]

On each of five real streams (`_streams.py`, log target) `ContinualSearchCV` learns 70 % of the
rows with nine candidates: strategies and their strengths. Then every candidate is scored on the
other 30 % of all experiences, which it has never seen. Printed: the mean absolute error of the
chosen candidate over that of the best one, of the worst one, and of `Naive`.
The data are read from the folder in SKLEARN_CL_SHARED, else from `../shared`.
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
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.model_selection import ContinualSearchCV
from sklearn_cl.strategies import DER, EWC, MAS, LwF, Naive, PseudoRehearsal, Replay

GRID = [
    {"strategy": [Naive(), LwF(), MAS(), DER(), PseudoRehearsal()]},
    {"strategy": [EWC()], "strategy__strength": [0.1, 1.0]},
    {"strategy": [Replay(capacity=200)], "strategy__distill": [0.0, 0.75]},
]


def run(stream: str, seed: int, folder: Path, rows: int) -> dict[str, Any]:
    """One stream and seed."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y, labels = load(stream, folder, rows, seed)
    learnt, held = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed)
    learnt.sort()
    net = ContinualMLPRegressor(batch_size=32, max_iter=30, random_state=seed)
    search = ContinualSearchCV(net, GRID, random_state=seed)
    search.fit(X[learnt], y[learnt], experience=labels[learnt])

    def error(model: Any) -> float:
        answer = model.predict(X[held])
        parts = [labels[held] == label for label in np.unique(labels)]
        return float(np.mean([mean_absolute_error(y[held][p], answer[p]) for p in parts]))

    errors = [error(model) for model in search.candidates_]
    chosen = errors[search.best_index_]
    return {
        "stream": stream,
        "chosen / best": chosen / min(errors),
        "chosen / naive": chosen / errors[0],
        "chosen / worst": chosen / max(errors),
        "chosen": " ".join(map(repr, search.best_params_.values())),
    }


def main() -> None:
    """Print the table and write the figures."""
    options_of = parser(__doc__, "search")
    options_of.add_argument("--seeds", type=int, default=3)
    options_of.add_argument("--rows", type=int, default=600)
    options_of.add_argument("--jobs", type=int, default=2)
    options = options_of.parse_args()
    folder = shared_data()
    found = joblib.Parallel(options.jobs)(
        joblib.delayed(run)(stream, seed, folder, options.rows)
        for stream in STREAMS
        for seed in range(options.seeds)
    )
    table = pd.DataFrame(found)
    about = machine("torch", "scikit-learn", "numpy")
    print(about)
    print(table.to_string(index=False, float_format="{:.3f}".format))
    means = table.drop(columns="chosen").groupby("stream", sort=False).mean()
    near = int((means["chosen / best"] <= 1.05).sum())
    print()
    print(means.to_string(float_format="{:.3f}".format))
    print(f"\nstreams within 5 % of the best in hindsight: {near} of {len(means)}")
    save(options.json, {"machine": about, "table": means.to_dict("index"), "near": near})


if __name__ == "__main__":
    main()
