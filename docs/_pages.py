"""Pages and tables that are made from the results of the benchmarks and from the code."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGE = ROOT / "sklearn_cl"


def write(folder: Path) -> None:
    """Make all of them anew."""
    folder.mkdir(exist_ok=True)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    headline = importlib.import_module("headline")
    pages = {
        "strategies.rst": strategies_table(),
        "strategies_reference.rst": strategies_reference(),
        "peers.rst": peers_table(),
        "step.rst": ratios_table("step"),
        "search.rst": search_table(),
        "headline.rst": headline.page(RESULTS),
        "changelog.rst": changelog(),
    }
    for name, text in pages.items():
        path = folder / name
        # Untouched where nothing changed, so that Sphinx need not read it again.
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    draw_ladder(folder / "ladder.svg")
    draw_headline(headline, folder / "headline.svg")


def results(name: str) -> dict[str, Any]:
    """The figures of the last run of a benchmark."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def list_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :stub-columns: 1", ""]
    for row in [header, *rows]:
        lines += [f"   {' ' if k else '*'} - {cell}" for k, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def strategies_table() -> str:
    """Every strategy on five real streams."""
    table = results("strategies")["table"]
    rows = [
        [name, *(f"{row[key]:.2f}" for key in ("all / naive", "time")), f"{row['KiB']:.0f}"]
        for name, row in table.items()
    ]
    return list_table(["strategy", "final error / naive", "CPU time / naive", "KiB kept"], rows)


def strategies_reference() -> str:
    """A section for each strategy: its docstring, and what it cost in the benchmark."""
    module = importlib.import_module("sklearn_cl.strategies")
    measured = results("strategies")["table"]
    classes = [getattr(module, name) for name in module.__all__]
    named = [c for c in classes if isinstance(c, type) and getattr(c, "name", "")]
    parts = [
        ".. _strategies-reference:\n",
        "====================\nStrategies reference\n====================\n",
        "From the docstrings; the figures are those of :ref:`the table <strategies-measured>`.\n",
    ]
    for cls in sorted(named, key=lambda c: c.__name__.lower()):
        title = f'{cls.__name__}, ``strategy="{cls.name}"``'
        parts.append(f"{title}\n{'=' * len(title)}\n")
        row = measured.get(cls.name)
        if row is not None:
            parts.append(
                f"*Measured: final error {row['all / naive']:.2f} of naive's at "
                f"{row['time']:.2f} of its time, {row['KiB']:.0f} KiB kept.*\n"
            )
        parts.append(f".. autoclass:: sklearn_cl.strategies.{cls.__name__}\n   :no-index:\n")
    return "\n".join(parts)


def peers_table() -> str:
    """Time and error of ours and Avalanche's, strategy by strategy."""
    figures = results("peers")
    runs = figures["runs"]
    ratio = {bar["ratio"].split()[1]: bar["value"] for bar in figures["bars"]}
    rows = []
    for name, run in runs.items():
        library, strategy = name.rsplit(" ", 1)
        if library != "sklearn_cl" or f"Avalanche {strategy}" not in runs:
            continue
        theirs = runs[f"Avalanche {strategy}"]
        errors = [_mean_error(run), _mean_error(theirs)]
        times = f"{ratio[strategy]:.1f}" if strategy in ratio else "does not run"
        rows.append([strategy, times, *errors])
    return list_table(["strategy", "Avalanche's time / ours", "our error", "Avalanche's"], rows)


def _mean_error(run: dict[str, Any]) -> str:
    errors = run.get("mae") or []
    return f"{sum(errors) / len(errors):.2f}" if errors else ""


def ratios_table(name: str) -> str:
    """Ratios and what was to be reached, as the benchmark printed them."""
    rows = [[bar["ratio"], f"{bar['value']:.2f}", limit(bar)] for bar in results(name)["bars"]]
    return list_table(["", "measured", "to reach"], rows)


def search_table() -> str:
    """What a search that does not look ahead chose, over the best in hindsight."""
    table = results("search")["table"]
    return list_table(
        ["stream", *next(iter(table.values()))],
        [[name, *(f"{value:.2f}" for value in row.values())] for name, row in table.items()],
    )


def limit(bar: dict[str, Any]) -> str:
    """What was to be reached."""
    if "at_most" in bar:
        return f"at most {bar['at_most']}"
    return f"at least {bar['at_least']}" if "at_least" in bar else ""


def changelog() -> str:
    """The fragments of the next release."""
    kinds = {"feature": "New", "change": "Changed", "fix": "Fixed"}
    parts = [".. _changelog:\n", "=========\nChangelog\n=========\n", "Unreleased\n==========\n"]
    for kind, title in kinds.items():
        found = sorted((ROOT / "changes").glob(f"*.{kind}.md"))
        if found:
            parts.append(f"{title}\n{'-' * len(title)}\n")
        for path in found:
            text = path.read_text().strip().replace("`", "``").replace("````", "``")
            parts.append("* " + text.replace("\n", "\n  ") + "\n")
    return "\n".join(parts)


def draw_headline(headline: Any, path: Path) -> None:
    """How many times smaller than naive's the final error is, stream by stream."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import pandas as pd

    runs = pd.read_csv(RESULTS / "headline.csv")
    chosen = ["no_retrain", "ewc", "replay 10 %", "recipe", "cumulative"]
    names = headline.STREAMS
    panels = {
        "with the columns that identify the regime": (names, chosen),
        "without them": ([n + headline.BLIND for n in names], [c for c in chosen if c != "ewc"]),
    }
    colours = dict(
        zip(chosen, ["0.7", "tab:orange", "tab:green", "tab:blue", "black"], strict=True)
    )
    fig, axes = plt.subplots(2, 1, figsize=(9, 7), layout="constrained", sharex=True)
    for ax, (title, (streams, methods)) in zip(axes, panels.items(), strict=True):
        ratio = headline.relative(runs)[streams]
        for k, method in enumerate(methods):
            x = [i + 0.8 * (k + 0.5) / len(methods) - 0.4 for i in range(len(streams))]
            width = 0.8 / len(methods)
            ax.bar(x, ratio.loc[method], width, color=colours[method], label=method)
        ax.axhline(1, color="tab:red", lw=1)
        ax.set_yscale("log")
        ax.set_ylim(0.5, 32)
        ax.set_yticks([0.5, 1, 2, 4, 8, 16], ["0.5", "1", "2", "4", "8", "16"])
        ax.set_title(title, loc="left")
        ax.set_ylabel("naive's error / this")
    short = headline.short(headline.relative(runs)[names])
    axes[1].set_xticks(range(len(names)), list(short))
    axes[0].legend(loc="upper left", ncols=len(chosen), fontsize=9)
    fig.savefig(path)
    plt.close(fig)


def draw_ladder(path: Path) -> None:
    """The modules as they import each other: an arrow to each package that a package uses."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    uses = imports()
    level: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in level:
            level[name] = 0
            level[name] = max((height(other) + 1 for other in uses[name]), default=0)
        return level[name]

    for name in uses:
        height(name)
    rungs: dict[int, list[str]] = {}
    for name, at in sorted(level.items()):
        rungs.setdefault(at, []).append(name)
    place = {}
    for at, names in rungs.items():
        for k, name in enumerate(names):
            place[name] = ((k + 0.5) / len(names) * 10, at)
    fig, ax = plt.subplots(figsize=(10, 0.8 * len(rungs) + 0.5))
    for name, others in uses.items():
        for other in others:
            ax.annotate(
                "",
                place[other],
                place[name],
                arrowprops={"arrowstyle": "->", "color": "0.75", "shrinkA": 9, "shrinkB": 9},
            )
    for name, (x, at) in place.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "tab:blue"}
        ax.text(x, at, name, ha="center", va="center", fontsize=8, bbox=box)
    ax.set(xlim=(0, 10), ylim=(-0.5, len(rungs) - 0.5))
    ax.set_axis_off()
    fig.savefig(path, bbox_inches="tight")
    plt.close(fig)


def imports() -> dict[str, set[str]]:
    """What each module at the top, or package, imports from the others, read from the code."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        here = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if here == "__init__":
            continue
        mine = found.setdefault(here, set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn_cl."):
                mine.add(node.module.split(".")[1])  # type: ignore[union-attr]
    return {name: {other for other in others if other != name} for name, others in found.items()}
