"""Time of a training step: a bare PyTorch loop, scikit-learn, and this package.

All in one process, interleaved, on one thread; medians of CPU time, and ratios of the paired
rounds. 20 000 x 32 rows of float32, a 64-64 perceptron, batches of 128, Adam.

    python benchmarks/step.py [--rounds 7] [--epochs 10] [--guard]
"""

from __future__ import annotations

import copy
import itertools
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _report import machine, parser, save
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits
from torch import nn

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import available

N_ROWS, N_FEATURES, HIDDEN, BATCH = 20_000, 32, (64, 64), 128
Run = Callable[[], object]


def make_data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth target of standard normal inputs."""
    chance = np.random.default_rng(seed)
    X = chance.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    return X, np.sin(X[:, :3].sum(1) + seed).astype(np.float32)


def bare(X: np.ndarray, y: np.ndarray, epochs: int) -> None:
    """What a careful user writes: tensors indexed directly, fused Adam, no DataLoader."""
    inputs, targets = torch.from_numpy(X), torch.from_numpy(y).unsqueeze(1)
    widths = [N_FEATURES, *HIDDEN]
    layers: list[nn.Module] = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    net, criterion = nn.Sequential(*layers, nn.Linear(widths[-1], 1)), nn.MSELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    for _ in range(epochs):
        order = torch.randperm(len(inputs))
        for start in range(0, len(inputs), BATCH):
            rows = order[start : start + BATCH]
            optimizer.zero_grad()
            criterion(net(inputs[rows]), targets[rows]).backward()
            optimizer.step()


def scikit_learn(X: np.ndarray, y: np.ndarray, epochs: int) -> None:
    """MLPRegressor with as many epochs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        MLPRegressor(
            hidden_layer_sizes=HIDDEN, batch_size=BATCH, max_iter=epochs, n_iter_no_change=epochs
        ).fit(X, y)


def later_experience(strategy: str, epochs: int, past: int = 1) -> Callable[[], Run]:
    """What prepares a call that learns one more experience of as many rows after ``past``."""
    reg = ContinualMLPRegressor(
        HIDDEN, strategy=strategy, batch_size=BATCH, max_iter=1, random_state=0
    )
    for k in range(past):
        X, y = make_data(k)
        reg.partial_fit(X, y)
    reg.set_params(max_iter=epochs, n_iter_no_change=epochs)
    X, y = make_data(past)

    def prepare() -> Run:
        twin = copy.deepcopy(reg)
        return lambda: twin.partial_fit(X, y)

    return prepare


def consolidation(strategy: str) -> float:
    """CPU time of consolidating 4 000 rows, relative to ten epochs of naive on them."""
    X, y = make_data(0)
    X, y = X[:4000], y[:4000]
    times = {}
    for name in (strategy, "naive"):
        reg = ContinualMLPRegressor(HIDDEN, strategy=name, batch_size=BATCH, max_iter=10)
        reg.set_params(n_iter_no_change=10, random_state=0).fit(X, y)
        spent: list[float] = []
        kind = type(reg.strategy_)
        plain = kind.consolidate

        def timed(self: object, *args: object, plain: Any = plain, spent: Any = spent) -> None:
            begun = time.process_time()
            plain(self, *args)
            spent.append(time.process_time() - begun)

        kind.consolidate = timed
        try:
            whole = []
            for _ in range(5):
                begun = time.process_time()
                copy.deepcopy(reg).partial_fit(X, y)
                whole.append(time.process_time() - begun)
        finally:
            kind.consolidate = plain
        times[name] = (float(np.median(spent)), float(np.median(whole)))
    return times[strategy][0] / times["naive"][1]


# Relative to naive, for a later experience of as many rows.
LIMITS = {
    **dict.fromkeys(["ewc", "si", "mas"], 1.1),
    "lwf": 1.05,
    **dict.fromkeys(["agem", "replay", "der", "der++"], 2.2),
    "gem": 7.0,
    "gss": 3.0,
}
PAST = {"gem": 4}
CHEAP = ["ewc", "mas", "si"]
GUARD = 0.65


def main() -> None:
    """Print the table and write the figures; with ``--guard`` fail where the step is slow."""
    options_of = parser(__doc__, "step")
    options_of.add_argument("--rounds", type=int, default=7)
    options_of.add_argument("--epochs", type=int, default=10)
    options_of.add_argument(
        "--guard", action="store_true", help=f"naive only; fail if naive / bare is above {GUARD}"
    )
    options = options_of.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y = make_data(0)
    naive = ContinualMLPRegressor(
        HIDDEN,
        strategy="naive",
        batch_size=BATCH,
        max_iter=options.epochs,
        n_iter_no_change=options.epochs,
        random_state=0,
    )
    runs: dict[str, Callable[[], Run]] = {
        "bare": lambda: lambda: bare(X, y, options.epochs),
        "scikit-learn": lambda: lambda: scikit_learn(X, y, options.epochs),
        "first naive": lambda: lambda: naive.fit(X, y),
    }
    names = [] if options.guard else [*available()]
    for name in names:
        runs[name] = later_experience(name, options.epochs, PAST.get(name, 1))
    # What torch imports at the first step of an optimizer is not in question.
    bare(X[:BATCH], y[:BATCH], 1)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    with threadpool_limits(1):
        for _ in range(options.rounds):
            for name, prepare in runs.items():
                run = prepare()
                begun = time.process_time()
                run()
                seconds[name].append(time.process_time() - begun)
    steps = options.epochs * -(-N_ROWS // BATCH)
    about = machine("torch", "scikit-learn", "numpy")
    print(about)
    print(f"{options.rounds} rounds of {options.epochs} epochs, {steps} steps each, one thread\n")
    print(f"{'':14}{'ms per step':>12}")
    ms = {name: 1e3 * float(np.median(values)) / steps for name, values in seconds.items()}
    for name, value in ms.items():
        print(f"{name:14}{value:12.3f}")
    print()
    pairs = [("first naive", "bare", 0.5), ("first naive", "scikit-learn", 0.5)]
    pairs += [(name, "naive", LIMITS.get(name)) for name in names if name != "naive"]
    bars = []
    for top, bottom, limit in pairs:
        value = float(np.median(np.divide(seconds[top], seconds[bottom])))
        bars.append({"ratio": f"{top} / {bottom}", "value": value, "at_most": limit})
    for name in CHEAP if names else []:
        what = f"consolidation of {name} / 10 epochs"
        bars.append({"ratio": what, "value": consolidation(name), "at_most": 0.05})
    for bar in bars:
        limit = "" if bar["at_most"] is None else f"   to reach: <= {bar['at_most']}"
        print(f"{bar['ratio']:36}{bar['value']:6.2f}{limit}")
    save(options.json, {"machine": about, "ms_per_step": ms, "bars": bars})
    if options.guard and bars[0]["value"] > GUARD:
        sys.exit(f"naive / bare must be at most {GUARD}; got {bars[0]['value']:.2f}.")


if __name__ == "__main__":
    main()
