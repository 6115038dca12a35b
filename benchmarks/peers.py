"""Speed, accuracy and memory beside the tools that one would otherwise take, in one run.

A stream of 5 experiences of 4 000 x 32 rows of float32; a 64-64 perceptron; Adam at 1e-3, batches
of 128, 10 epochs an experience, float32, one thread for everybody. Every run learns the whole
stream; the runs of all tools are interleaved, and the table has the medians of CPU time, the
medians of paired ratios, the mean absolute error over all experiences in the end (1 000 other
rows of each), and the peak memory of a process that does only that.

The tools:

- a loop in bare PyTorch: tensors indexed directly, fused Adam, no DataLoader;
- scikit-learn's MLPRegressor: as many calls of `partial_fit`, one epoch each;
- skorch's NeuralNetRegressor with its defaults (which hold out a fifth for validation);
- Avalanche 0.6.0, each strategy with the settings closest to ours. One that cannot do
  regression is listed with the error that it gives.

    pip install -e ".[bench]"
    pip install torch==2.13.0 avalanche-lib==0.6.0 quadprog      # for Avalanche's rows
    python benchmarks/peers.py [--rounds 5] [--strategies naive,ewc] [--no-avalanche]

Avalanche imports torchvision, whose usual build does not import beside a CPU build of torch until
two of its operators are declared; `_import_avalanche` does that. Its route to regression: a
`TensorDataset` for each experience, made an `AvalancheDataset` with the attributes `targets` and
`targets_task_labels`, `benchmark_from_datasets`, and `MSELoss` as criterion.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from _report import machine, parser, peak_rss, save
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from skorch import NeuralNetRegressor
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.datasets import make_drift_stream
from sklearn_cl.strategies import Replay, available

N_EXPERIENCES, N_ROWS, N_TEST, N_FEATURES = 5, 4000, 1000, 32
HIDDEN, BATCH, EPOCHS, CAPACITY = (64, 64), 128, 10, 500
FLOORS = {"gdumb": 2.0}
Part = tuple[np.ndarray, np.ndarray]
Predict = Callable[[np.ndarray], np.ndarray]


def make_stream() -> tuple[list[Part], list[Part]]:
    """Training and test rows of each experience, standardised with the first."""
    n = N_ROWS + N_TEST
    X, y, experience = make_drift_stream(N_EXPERIENCES, n, N_FEATURES, random_state=0)
    first = experience == 0
    X = ((X - X[first].mean(0)) / X[first].std(0)).astype(np.float32)
    y = ((y - y[first].mean()) / y[first].std()).astype(np.float32)
    parts = [(X[experience == k], y[experience == k]) for k in range(N_EXPERIENCES)]
    return [(a[:N_ROWS], b[:N_ROWS]) for a, b in parts], [
        (a[N_ROWS:], b[N_ROWS:]) for a, b in parts
    ]


def perceptron() -> nn.Sequential:
    """The net that every tool trains."""
    layers: list[nn.Module] = []
    for n_in, n_out in itertools.pairwise([N_FEATURES, *HIDDEN]):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(HIDDEN[-1], 1))


def bare(stream: list[Part]) -> Predict:
    """What a careful user writes in PyTorch."""
    net, criterion = perceptron(), nn.MSELoss()
    for X, y in stream:
        inputs, targets = torch.from_numpy(X), torch.from_numpy(y).unsqueeze(1)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
        for _ in range(EPOCHS):
            order = torch.randperm(len(inputs))
            for start in range(0, len(inputs), BATCH):
                rows = order[start : start + BATCH]
                optimizer.zero_grad()
                criterion(net(inputs[rows]), targets[rows]).backward()
                optimizer.step()
    return _predictor(net)


def scikit_learn(stream: list[Part]) -> Predict:
    """MLPRegressor, an epoch a call."""
    net = MLPRegressor(hidden_layer_sizes=HIDDEN, batch_size=BATCH, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for X, y in stream:
            for _ in range(EPOCHS):
                net.partial_fit(X, y)
    return net.predict


def skorch(stream: list[Part]) -> Predict:
    """NeuralNetRegressor, with its defaults where the task does not fix them."""
    net = NeuralNetRegressor(
        perceptron,
        max_epochs=EPOCHS,
        batch_size=BATCH,
        optimizer=torch.optim.Adam,
        lr=1e-3,
        verbose=0,
    )
    for X, y in stream:
        net.partial_fit(X, y[:, None])
    return lambda X: net.predict(X).ravel()


def ours(strategy: str) -> Callable[[list[Part]], Predict]:
    """A strategy of this package, with its defaults but for the size of the memory."""

    def run(stream: list[Part]) -> Predict:
        reg = ContinualMLPRegressor(
            HIDDEN,
            strategy=Replay(CAPACITY) if strategy == "replay" else strategy,
            batch_size=BATCH,
            max_iter=EPOCHS,
            n_iter_no_change=EPOCHS,
            random_state=0,
        )
        for X, y in stream:
            reg.partial_fit(X, y)
        return reg.predict

    return run


def _import_avalanche() -> Any:
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _import_avalanche.library = library  # type: ignore[attr-defined]  # else it is undone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from avalanche.training import supervised
    return supervised


# Our name: Avalanche's class and its settings.
AVALANCHE: dict[str, tuple[str, dict[str, Any]]] = {
    "naive": ("Naive", {}),
    "cumulative": ("Cumulative", {}),
    "replay": ("Replay", {"mem_size": CAPACITY}),
    "ewc": ("EWC", {"ewc_lambda": 1.0, "mode": "online", "decay_factor": 1.0}),
    "si": ("SynapticIntelligence", {"si_lambda": 1.0}),
    "mas": ("MAS", {}),
    "lwf": ("LwF", {"alpha": 1.0, "temperature": 2.0}),
    "agem": ("AGEM", {"patterns_per_exp": CAPACITY // N_EXPERIENCES, "sample_size": BATCH}),
    "gem": ("GEM", {"patterns_per_exp": CAPACITY // N_EXPERIENCES}),
    "gss": ("GSS_greedy", {"mem_size": CAPACITY, "mem_strength": 5, "input_size": [N_FEATURES]}),
    "mir": ("MIR", {"mem_size": CAPACITY, "subsample": 2 * BATCH, "batch_size_mem": BATCH}),
    "der": ("DER", {"mem_size": CAPACITY, "batch_size_mem": BATCH, "beta": 0.0}),
    "der++": ("DER", {"mem_size": CAPACITY, "batch_size_mem": BATCH}),
    "gdumb": ("GDumb", {"mem_size": CAPACITY}),
}


def avalanche(strategy: str) -> Callable[[list[Part]], Predict]:
    """Avalanche's strategy of that name, without loggers or evaluation."""
    supervised = _import_avalanche()
    from avalanche.benchmarks import benchmark_from_datasets
    from avalanche.benchmarks.utils import AvalancheDataset, DataAttribute
    from avalanche.training.plugins import EvaluationPlugin
    from torch.utils.data import TensorDataset

    def dataset(X: np.ndarray, y: np.ndarray) -> Any:
        table = TensorDataset(torch.from_numpy(X), torch.from_numpy(y).unsqueeze(1))
        return AvalancheDataset(
            [table],
            data_attributes=[
                DataAttribute(y.tolist(), "targets"),
                DataAttribute([0] * len(y), "targets_task_labels", use_in_getitem=True),
            ],
        )

    def run(stream: list[Part]) -> Predict:
        name, settings = AVALANCHE[strategy]
        net = perceptron()
        benchmark = benchmark_from_datasets(train=[dataset(X, y) for X, y in stream])
        learner = getattr(supervised, name)(
            model=net,
            optimizer=torch.optim.Adam(net.parameters(), lr=1e-3),
            criterion=nn.MSELoss(),
            train_mb_size=BATCH,
            train_epochs=EPOCHS,
            evaluator=EvaluationPlugin(),
            **settings,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for experience in benchmark.train_stream:
                learner.train(experience)
        return _predictor(net)

    return run


def _predictor(net: nn.Module) -> Predict:
    def predict(X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            f: Tensor = net(torch.from_numpy(X))
            return f.numpy().ravel()

    return predict


def make_runs(names: list[str], with_avalanche: bool) -> dict[str, Callable[[], Any]]:
    """What makes each run, by 'tool strategy'; nothing is imported yet."""
    runs: dict[str, Callable[[], Any]] = {
        "PyTorch naive": lambda: bare,
        "scikit-learn naive": lambda: scikit_learn,
        "skorch naive": lambda: skorch,
    }
    for name in names:
        runs[f"sklearn_cl {name}"] = lambda name=name: ours(name)
        if with_avalanche and name in AVALANCHE:
            runs[f"Avalanche {name}"] = lambda name=name: avalanche(name)
    return runs


def attempt(make: Callable[[], Any], stream: list[Part], test: list[Part]) -> tuple[float, float]:
    """CPU seconds, and mean absolute error over the experiences in the end."""
    torch.manual_seed(0)
    run = make()
    begun = time.process_time()
    # Avalanche prints while it trains.
    with contextlib.redirect_stdout(sys.stderr):
        predict = run(stream)
    seconds = time.process_time() - begun
    return seconds, float(np.mean([np.abs(predict(X) - y).mean() for X, y in test]))


def memory_of(name: str) -> float:
    """Peak memory [MiB] of a process that does one run."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", name],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def measure(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, dict[str, Any]]:
    """All rounds of all runs; a run that fails once is not tried again."""
    stream, test = make_stream()
    for make in runs.values():
        # What a tool imports or compiles at its first use is not in question here.
        with contextlib.suppress(Exception):
            attempt(make, [(X[:BATCH], y[:BATCH]) for X, y in stream[:2]], test)
    found: dict[str, dict[str, Any]] = {name: {"seconds": [], "mae": []} for name in runs}
    for _ in range(rounds):
        for name, make in runs.items():
            if "error" in found[name]:
                continue
            try:
                seconds, mae = attempt(make, stream, test)
            except Exception as error:
                text = str(error).strip().splitlines()
                found[name] = {"error": f"{type(error).__name__}: {text[0] if text else ''}"}
                continue
            found[name]["seconds"].append(seconds)
            found[name]["mae"].append(mae)
    for name, figures in found.items():
        if "error" not in figures:
            figures["peak_mib"] = memory_of(name)
    return found


def ratio(found: dict[str, Any], top: str, bottom: str) -> float:
    """Median of the paired ratios of time."""
    return float(np.median(np.divide(found[top]["seconds"], found[bottom]["seconds"])))


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The table."""
    yield f"{'':26}{'CPU s':>8}{'x naive':>9}{'MAE':>8}{'peak MiB':>10}"
    for name, figures in found.items():
        if "error" in figures:
            yield f"{name:26}  {figures['error'][:96]}"
            continue
        yield (
            f"{name:26}{np.median(figures['seconds']):8.2f}"
            f"{ratio(found, name, 'sklearn_cl naive'):9.2f}"
            f"{np.mean(figures['mae']):8.3f}{figures['peak_mib']:10.0f}"
        )


def verdicts(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every ratio that has a bar."""
    for peer in ("PyTorch", "scikit-learn"):
        value = ratio(found, "sklearn_cl naive", f"{peer} naive")
        yield {"ratio": f"naive / {peer}", "value": value, "at_most": 0.5}
    for name, figures in found.items():
        tool, _, strategy = name.partition(" ")
        if tool == "Avalanche" and "error" not in figures:
            value = ratio(found, name, f"sklearn_cl {strategy}")
            floor = FLOORS.get(strategy, 5.0)
            yield {"ratio": f"{name} / ours", "value": value, "at_least": floor}


def main() -> None:
    """Print the table and write the figures."""
    options_of = parser(__doc__, "peers")
    options_of.add_argument("--rounds", type=int, default=5)
    options_of.add_argument("--strategies", default=",".join([*available()]))
    options_of.add_argument("--no-avalanche", action="store_true")
    options_of.add_argument("--one", help="do this run once and print the peak memory")
    options = options_of.parse_args()
    names = options.strategies.split(",")
    torch.set_num_threads(1)
    missing = find_spec("avalanche") is None
    runs = make_runs(names, not (missing or options.no_avalanche))
    with threadpool_limits(1):
        if options.one:
            attempt(runs[options.one], *make_stream())
            print(json.dumps(peak_rss()))
            return
        found = measure(runs, options.rounds)
    about = machine("torch", "scikit-learn", "skorch", "numpy", "avalanche-lib")
    print(about)
    print(f"{options.rounds} rounds\n")
    print("\n".join(lines(found)))
    if missing:
        print("Avalanche is left out: avalanche-lib is not installed.")
    print()
    bars = list(verdicts(found))
    for bar in bars:
        limit = f"<= {bar['at_most']}" if "at_most" in bar else f">= {bar['at_least']}"
        print(f"{bar['ratio']:28}{bar['value']:7.2f}   to reach: {limit}")
    save(options.json, {"machine": about, "runs": found, "bars": bars})


if __name__ == "__main__":
    main()
