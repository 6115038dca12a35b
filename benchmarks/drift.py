"""Does `detect_experiences` find the changes, and nothing where there are none?

    python benchmarks/drift.py [--seeds 4] [--jobs 2] [--large]

Seeded streams of 2 000 and 20 000 rows (``--large``: also 200 000, on one core), 8 and 30
inputs, 1 to 5 changes. A run time is a smooth function of some inputs, and

- concept: some effects change their sign or size;
- scale: everything takes 1.5 times as long, or as short;
- gradual: as concept, over a tenth of the shortest experience;
- covariate: the inputs move and the function does not (found with ``signal="data"``, and not to
  be found with ``signal="performance"``);
- waves: as scale, while two inputs come and go once to ten times in the stream;
- still waves: the same inputs, and the function does not change (nothing is to be found);
- none.

Noise is normal, of heavy tails (t with 3 degrees of freedom), or remembers (an autoregression
with 0.7 in noise and inputs). A boundary is right if it lies within 2 % of the rows of a true one
that no other has taken. Printed: F1 by kind, number of rows and noise, false boundaries per
stream, and seconds.

Then the real streams: both dated upgrades of tokio_cori, and tokio_mira, where nothing changed.

Carried rows: 3 000 rows before a drift that scales and shifts the answer, while the inputs move
too, and 30, 100 or 300 after it. Printed is the mean absolute error on the new regime of the old
model, a fresh one, the old one trained on the new rows, and a fresh one on the new rows together
with the old ones: as they are, and carried by each kind of `MomentMatching`.

Pieces: tokio_cori in pieces of 100 rows without labels, ``partial_fit(experience="auto")``,
against the run with labels; the mean absolute error of log throughput on held-out rows of all
three experiences.

Alarms: of `DriftAlarm` on errors that do not change, and on errors that grow 2.5-fold.
"""

from __future__ import annotations

import copy
import os
import time
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from _report import machine, parser, save
from _streams import load
from threadpoolctl import threadpool_limits

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.drift import DriftAlarm, MomentMatching, detect_experiences

KINDS = ["concept", "scale", "gradual", "covariate", "none", "waves", "still waves"]
SIGNALS = ["performance", "data"]
NOISES = ["normal", "heavy", "memory"]


def remember(values: np.ndarray, factor: float) -> np.ndarray:
    """An autoregression of variance one driven by the values."""
    out = values.copy()
    for t in range(1, len(out)):
        out[t] = factor * out[t - 1] + np.sqrt(1 - factor**2) * values[t]
    return out


def make(
    kind: str, noise: str, n: int, d: int, n_changes: int, seed: int
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """A stream and its boundaries."""
    chance = np.random.default_rng([seed, n, d, n_changes, KINDS.index(kind), NOISES.index(noise)])
    X = chance.normal(size=(n, d))
    error = chance.standard_t(3, size=n) if noise == "heavy" else chance.normal(size=n)
    if noise == "memory":
        X, error = remember(X, 0.7), remember(error, 0.7)
    lengths = chance.dirichlet(np.full(n_changes + 1, 8.0)) * 0.6 + 0.4 / (n_changes + 1)
    bounds = np.round(lengths.cumsum()[:-1] / lengths.sum() * n).astype(int)
    label = np.searchsorted(bounds, np.arange(n), side="right").astype(float)
    if "waves" in kind:
        time = np.arange(n) / n
        for column in (0, 3):
            X[:, column] += np.sin(2 * np.pi * (chance.uniform(1, 10) * time + chance.uniform()))
    if kind in ("none", "still waves"):
        return X, surface(X, np.ones((1, 4)), label * 0) + 0.3 * error, []
    if kind == "gradual":
        ramp = int(0.1 * np.diff([0, *bounds, n]).min())
        label = np.convolve(label, np.ones(ramp) / ramp, mode="same")
        label[:ramp], label[-ramp:] = 0, n_changes
        label = label.round(9).clip(0, n_changes)
    effects = np.ones((n_changes + 1, 4))
    factor = np.ones(n_changes + 1)
    if kind in ("concept", "gradual"):
        for k in range(1, n_changes + 1):
            effects[k] = effects[k - 1]
            for which in chance.choice(4, size=2, replace=False):
                effects[k, which] = -effects[k, which]
    elif kind in ("scale", "waves"):
        factor = 1.5 ** (np.arange(n_changes + 1) % 2 * chance.choice([-1, 1]))
    else:
        moved = chance.choice(d, size=max(2, d // 4), replace=False)
        X[:, moved] += 0.8 * (label % 2)[:, None]
    y = surface(X, effects, label)
    y = (3 + y + 0.3 * error) * factor[np.round(label).astype(int)]
    return X, y, bounds.tolist()


def surface(X: np.ndarray, effects: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The function of the inputs, between two regimes where the label is."""
    low, high = np.floor(label).astype(int), np.ceil(label).astype(int)
    w = effects[low] + (label - low)[:, None] * (effects[high] - effects[low])
    parts = [X[:, 0], np.sin(2 * X[:, 1]), X[:, 2] * X[:, 3], np.abs(X[:, 3])]
    return sum(w[:, k] * part for k, part in enumerate(parts))


def hits(found: list[int], truth: list[int], tolerance: float) -> int:
    """Boundaries that are right, one to one."""
    left, right = sorted(truth), 0
    for row in sorted(found):
        near = [t for t in left if abs(t - row) <= tolerance]
        if near:
            left.remove(min(near, key=lambda t: abs(t - row)))
            right += 1
    return right


def run(
    kind: str, noise: str, n: int, d: int, n_changes: int, seed: int, signal: str
) -> dict[str, Any]:
    """One stream."""
    X, y, truth = make(kind, noise, n, d, n_changes, seed)
    if kind == "covariate" and signal == "performance":
        truth = []
    with threadpool_limits(1):
        begun = time.process_time()
        _, report = detect_experiences(X, y, signal=signal, return_report=True)
        seconds = time.process_time() - begun
    right = hits(report.boundaries, truth, 0.02 * n)
    return {
        "kind": kind if signal == "performance" else f"{kind}, data",
        "noise": noise,
        "rows": n,
        "inputs": d,
        "right": right,
        "found": len(report.boundaries),
        "true": len(truth),
        "seconds": seconds,
    }


def f1(runs: pd.DataFrame) -> float:
    """Of the boundaries of all runs together."""
    return 2 * runs["right"].sum() / max(1, runs["found"].sum() + runs["true"].sum())


def real(folder: Path) -> dict[str, dict[str, Any]]:
    """Boundaries on the logs, in rows from the dated upgrades."""
    found = {}
    for name in ("tokio_cori", "tokio_mira"):
        table = pd.read_csv(folder / f"{name}.csv.gz")
        dropped = ["experience", "timestamp", "run_time_s", "target"]
        _, report = detect_experiences(
            table.drop(columns=dropped),
            table["target"],
            timestamps=table["timestamp"],
            return_report=True,
        )
        label = table["experience"].to_numpy()
        found[name] = {
            "rows": len(table),
            "dated": [] if "mira" in name else (np.flatnonzero(np.diff(label)) + 1).tolist(),
            "found": report.boundaries,
            "evidence": [round(float(e), 2) for e in report.evidence],
            "times": [str(t) for t in report.times],
        }
    return found


def carried(seed: int, n: int) -> dict[str, float]:
    """Errors after a drift of the answer and a move of the inputs."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    chance = np.random.default_rng([seed, n])
    scale, offset = chance.uniform(0.5, 2.5), chance.normal()
    move = np.array([0.6, 0.0, 0.3, 0.0, 0.0, 0.0])

    def draw(rows: int, new: bool) -> tuple[np.ndarray, np.ndarray]:
        X = chance.normal(size=(rows, 6)) + new * move
        y = surface(X, np.ones((1, 4)), np.zeros(rows)) + 0.1 * chance.normal(size=rows)
        return X, scale * y + offset if new else y

    (X_old, y_old), (X_new, y_new), (X, y) = draw(3000, False), draw(n, True), draw(2000, True)

    def make(epochs: int = 60) -> ContinualMLPRegressor:
        return ContinualMLPRegressor(
            strategy="naive", batch_size=32, max_iter=epochs, random_state=seed
        )

    def error(model: Any) -> float:
        return float(np.abs(model.predict(X) - y).mean())

    old = make().fit(X_old, y_old)
    found = {"old model": error(old), "fresh on new": error(make(400).fit(X_new, y_new))}
    found["old model, trained on new"] = error(copy.deepcopy(old).partial_fit(X_new, y_new))
    found["together"] = error(make().fit(np.vstack([X_old, X_new]), np.append(y_old, y_new)))
    for kind in ("marginal", "joint", "anchored"):
        match = MomentMatching(kind, old).fit(X_new, y_new, X_old, y_old)
        X_then, y_then = match.carry(X_old, y_old)
        found[kind] = error(make().fit(np.vstack([X_then, X_new]), np.append(y_then, y_new)))
    return {"new rows": n, **found}


def pieces(folder: Path, strategy: str, seed: int) -> dict[str, Any]:
    """tokio_cori with labels, and in pieces without."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y, label = load("tokio_cori", folder, None, seed)
    held = np.random.default_rng(seed).random(len(y)) < 0.3
    rows = np.flatnonzero(~held)

    def make() -> ContinualMLPRegressor:
        return ContinualMLPRegressor(
            strategy=strategy, batch_size=32, max_iter=30, random_state=seed
        )

    def error(model: Any) -> float:
        wrong = np.abs(model.predict(X) - y)
        return float(np.mean([wrong[held & (label == k)].mean() for k in range(3)]))

    told = error(make().fit(X[rows], y[rows], experience=label[rows]))
    reg, each = make(), make()
    for start in range(0, len(rows), 100):
        piece = rows[start : start + 100]
        reg.partial_fit(X[piece], y[piece], experience="auto")
        each.partial_fit(X[piece], y[piece])
    return {
        "strategy": strategy,
        "labels": told,
        "auto": error(reg),
        "each piece an experience": error(each),
        "experiences": reg.n_experiences_,
    }


def alarms(noise: str, seed: int) -> dict[str, Any]:
    """False alarms in 5 000 rows, and rows until a true one."""
    chance = np.random.default_rng(seed)
    X, error = chance.normal(size=(5000, 4)), chance.normal(size=5000)
    if noise == "heavy":
        error = chance.standard_t(3, size=5000)
    elif noise == "memory":
        error = remember(error, 0.7)
    false = len(DriftAlarm().update(X, error))
    error[3000:] *= 2.5
    rows = [alarm.row - 3000 for alarm in DriftAlarm().update(X, error) if alarm.row >= 3000]
    return {"noise": noise, "false": false, "delay": min(rows, default=np.inf)}


def main() -> None:
    """Print the tables and write the figures."""
    options_of = parser(__doc__, "drift")
    options_of.add_argument("--seeds", type=int, default=4)
    options_of.add_argument("--jobs", type=int, default=2)
    options_of.add_argument("--large", action="store_true")
    options = options_of.parse_args()
    torch.set_num_threads(1)
    about = machine("scikit-learn", "scipy", "numpy")
    jobs = [
        (kind, noise, n, d, 1 + (seed + j) % 5, seed, signal)
        for n in [2000, 20_000, *([200_000] if options.large else [])]
        for j, d in enumerate([8, 30])
        for kind in KINDS
        for noise in NOISES
        for seed in range(options.seeds if n < 200_000 else 1)
        for signal in (
            ["performance", "data"] if kind in ("covariate", "none") else ["performance"]
        )
    ]
    runs = pd.DataFrame(joblib.Parallel(options.jobs)(joblib.delayed(run)(*job) for job in jobs))
    print(about)
    drifting = runs[runs["true"] > 0]
    print("\nF1 within 2 % of the rows")
    by_kind = drifting.groupby(["rows", "kind", "noise"], sort=False)[["right", "found", "true"]]
    print(
        by_kind.sum()
        .groupby(["rows", "kind", "noise"], sort=False)
        .apply(f1)
        .unstack()
        .to_string(float_format="{:.2f}".format)
    )
    still = runs[runs["true"] == 0]
    false = still.groupby(["rows", "kind", "noise"], sort=False)["found"].mean().unstack()
    print("\nfalse boundaries in a stream")
    print(false.to_string(float_format="{:.2f}".format))
    print("\nseconds")
    print(
        runs.groupby(["rows", "inputs"])["seconds"]
        .max()
        .unstack()
        .to_string(float_format="{:.1f}".format)
    )
    middle = drifting[drifting["rows"] == 20_000]
    stationary = still[still["kind"].str.startswith("none")]
    bars = {
        "F1 at 20 000 rows, to reach 0.90": float(f1(middle)),
        "false boundaries in a stationary stream, at most 0.05": float(stationary["found"].mean()),
    }
    if options.large:
        bars["seconds of 200 000 x 30, at most 10"] = float(
            runs[(runs["rows"] == 200_000) & (runs["inputs"] == 30)]["seconds"].max()
        )
    folder = (
        Path(os.environ.get("SKLEARN_CL_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    )
    logs = real(folder) if folder.is_dir() else {}
    parallel = joblib.Parallel(options.jobs)
    jobs = [joblib.delayed(carried)(seed, n) for n in (30, 100, 300) for seed in range(3)]
    moved = pd.DataFrame(parallel(jobs)).groupby("new rows").mean()
    print("\ncarried rows: error on the new regime")
    print(moved.T.to_string(float_format="{:.2f}".format))
    rung = pd.DataFrame([alarms(noise, seed) for noise in NOISES for seed in range(40)])
    rung = rung.groupby("noise", sort=False).agg({"false": "mean", "delay": "median"})
    print("\nalarms: false ones in 5 000 rows, and rows until a true one")
    print(rung.to_string(float_format="{:.2f}".format))
    cut = pd.DataFrame()
    if folder.is_dir():
        jobs = [
            joblib.delayed(pieces)(folder, strategy, seed)
            for strategy in ("replay", "pseudo", "ewc")
            for seed in range(3)
        ]
        cut = pd.DataFrame(parallel(jobs)).groupby("strategy", sort=False).mean()
        cut["auto / labels"] = cut["auto"] / cut["labels"]
        print("\ntokio_cori in pieces")
        print(cut.to_string(float_format="{:.3f}".format))
    print()
    for what, value in bars.items():
        print(f"{what:60}{value:8.2f}")
    for name, figures in logs.items():
        print(name, figures)
    save(
        options.json,
        {
            "machine": about,
            "bars": bars,
            "logs": logs,
            "carried": {str(n): dict(row) for n, row in moved.iterrows()},
            "alarms": rung.to_dict("index"),
            "pieces": cut.to_dict("index"),
        },
    )


if __name__ == "__main__":
    main()
