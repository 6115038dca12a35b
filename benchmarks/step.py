"""Time of a training step: a bare PyTorch loop, scikit-learn, and this package.

All in one process, interleaved, on one thread; medians of CPU time, and ratios of the paired
rounds. 20 000 x 32 rows of float32, a 64-64 perceptron, batches of 128, Adam.

    python benchmarks/step.py [--rounds 7] [--epochs 10] [--guard]
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from _report import machine, parser, save
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits
from torch import nn

from sklearn_cl import ContinualMLPRegressor

N_ROWS, N_FEATURES, HIDDEN, BATCH = 20_000, 32, (64, 64), 128


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


def second_experience(strategy: str, epochs: int) -> Callable[[], None]:
    """A call that learns a second experience of as many rows after a first one."""
    (X, y), (X2, y2) = make_data(0), make_data(1)
    reg = ContinualMLPRegressor(
        HIDDEN, strategy=strategy, batch_size=BATCH, max_iter=1, random_state=0
    )

    def learn() -> None:
        reg.partial_fit(X2, y2)

    reg.partial_fit(X, y).set_params(max_iter=epochs, n_iter_no_change=epochs)
    return learn


BARS = [
    ("naive", "bare", 0.5),
    ("naive", "scikit-learn", 0.5),
    ("ewc, 2nd", "naive, 2nd", 1.15),
    ("replay, 2nd", "naive, 2nd", 2.0),
]
GUARD = 0.65


def main() -> None:
    """Print the table and write the figures; with ``--guard`` fail where the step is slow."""
    options_of = parser(__doc__, "step")
    options_of.add_argument("--rounds", type=int, default=7)
    options_of.add_argument("--epochs", type=int, default=10)
    options_of.add_argument(
        "--guard", action="store_true", help=f"fail if naive / bare is above {GUARD}"
    )
    options = options_of.parse_args()
    torch.set_num_threads(1)
    X, y = make_data(0)
    naive = ContinualMLPRegressor(
        HIDDEN,
        strategy="naive",
        batch_size=BATCH,
        max_iter=options.epochs,
        n_iter_no_change=options.epochs,
        random_state=0,
    )
    runs: dict[str, Callable[[], object]] = {
        "bare": lambda: bare(X, y, options.epochs),
        "scikit-learn": lambda: scikit_learn(X, y, options.epochs),
        "naive": lambda: naive.fit(X, y),
        "naive, 2nd": second_experience("naive", options.epochs),
        "ewc, 2nd": second_experience("ewc", options.epochs),
        "replay, 2nd": second_experience("replay", options.epochs),
    }
    # What torch imports at the first step of an optimizer is not in question.
    bare(X[:BATCH], y[:BATCH], 1)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    with threadpool_limits(1):
        for _ in range(options.rounds):
            for name, run in runs.items():
                begun = time.process_time()
                run()
                seconds[name].append(time.process_time() - begun)
    steps = options.epochs * -(-N_ROWS // BATCH)
    about = machine("torch", "scikit-learn", "numpy")
    print(about)
    print(f"{options.rounds} rounds of {options.epochs} epochs, {steps} steps each, one thread\n")
    print(f"{'':14}{'ms per step':>12}")
    for name, values in seconds.items():
        print(f"{name:14}{1e3 * np.median(values) / steps:12.3f}")
    print()
    ratios = []
    for top, bottom, bar in BARS:
        ratio = float(np.median(np.divide(seconds[top], seconds[bottom])))
        ratios.append({"ratio": f"{top} / {bottom}", "value": ratio, "at_most": bar})
        print(f"{top + ' / ' + bottom:28}{ratio:6.2f}   to reach: <= {bar}")
    ms = {name: 1e3 * float(np.median(values)) / steps for name, values in seconds.items()}
    save(options.json, {"machine": about, "ms_per_step": ms, "bars": ratios})
    if options.guard and ratios[0]["value"] > GUARD:
        sys.exit(f"naive / bare must be at most {GUARD}; got {ratios[0]['value']:.2f}.")


if __name__ == "__main__":
    main()
