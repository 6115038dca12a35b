"""What the README promises."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_cl import ContinualMLPRegressor
from sklearn_cl.strategies import available
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


SAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
EXPECTED = [
    r"final R2 0\.\d\d, forgetting -?\d\.\d\d\n",
    r"\{'net__strategy': 'replay'\}\n",
    "",
]


@pytest.mark.parametrize(("sample", "expected"), [*zip(SAMPLES, EXPECTED, strict=True)])
def test_samples_run(sample, expected):
    assert len(sample.strip().splitlines()) <= 16
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", sample], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(expected, done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plot_pipeline_search"])
def test_examples_run(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    with sklearn.config_context():
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


@pytest.mark.slow
def test_quickstart_shows_that_replay_forgets_less(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "plot_quickstart.py"))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    final, forgotten = ({row[0]: float(row[k]) for row in rows} for k in (1, 2))
    assert final["replay"] < 0.6 * final["naive"]
    assert forgotten["replay"] < 0.4 * forgotten["naive"]
    assert (tmp_path / "plot_quickstart.png").stat().st_size > 10_000


@pytest.mark.slow
def test_headline_on_real_data(shared_data, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import headline

    assert headline.prepared("tokio_cori", shared_data).X.shape == (4989, 24)
    assert headline.prepared(headline.PAPER, shared_data).X.shape == (4989, 18)
    methods = ["naive", "ewc", "replay 500", "cumulative", headline.RECIPE]
    how = (2, 2, shared_data, methods)
    runs = headline.measure(["tokio_cori", "tokio_mira"], headline.candidates, *how)
    ratio = headline.relative(runs)
    assert ratio.loc[headline.RECIPE, "tokio_cori"] >= 2
    assert ratio.loc["replay 500", "tokio_cori"] >= 1.5
    assert ratio.loc["cumulative", "tokio_cori"] >= 1.75
    assert ratio.loc["ewc", "tokio_cori"] > 1
    assert ratio["tokio_mira"].min() >= 0.97


def test_page_of_the_headline_shows_its_figures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import headline

    runs = pd.read_csv(headline.RESULTS / "headline.csv")
    page = headline.page(headline.RESULTS)
    mine = runs[(runs["stream"] == "tokio_cori")].groupby("method")["final"].mean()
    assert f"{mine['naive'] / mine[headline.RECIPE]:.2f}" in page
    assert "Split: 30 %" in page and "Where continual learning does not pay" in page


def test_real_stream_in_a_pipeline_forgets_less_than_naive(shared_data):
    table = pd.read_csv(shared_data / "tokio_cori.csv.gz")
    X = table.drop(columns=["experience", "timestamp", "run_time_s", "target"])
    y, past = np.log(table["target"]), table["experience"] == 0
    encode = make_column_transformer(
        (OneHotEncoder(), ["app", "io_dir", "file_mode"]), remainder="passthrough"
    )
    now, then = {}, {}
    for strategy in ("naive", "replay"):
        reg = ContinualMLPRegressor(
            (32,), strategy=strategy, batch_size=64, max_iter=20, random_state=0
        )
        pipe = make_pipeline(encode, reg)
        pipe.fit(X, y, continualmlpregressor__experience=table["experience"])
        now[strategy] = np.abs(pipe.predict(X[past]) - y[past]).mean()
        then[strategy] = np.abs(pipe.predict(X[past], after=0) - y[past]).mean()
    assert then["naive"] == then["replay"]
    assert now["replay"] < 0.7 * now["naive"]


def test_figures_of_the_comparison():
    bars = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())["bars"]
    measured = {bar["ratio"]: bar["value"] for bar in bars}
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:]]
        for cells in (line.split("|") for line in README.splitlines() if line.startswith("| "))
    }
    plain, replay = rows["time of plain training, ours 1"], rows["time of replay, ours 1"]
    assert plain[1] == f"{1 / measured['naive / scikit-learn']:.1f}"
    assert plain[2] == f"{measured['Avalanche naive / ours']:.1f}"
    assert replay[2] == f"{measured['Avalanche replay / ours']:.1f}"
    against = set(available()) - {"naive", "no_retrain", "from_scratch"}
    assert rows["strategies against forgetting, for regression"][0] == str(len(against))
    runs = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())["runs"]
    for line, strategy in {"error of replay": "replay", "error of plain training": "naive"}.items():
        for column, library in {0: "sklearn_cl", 2: "Avalanche"}.items():
            assert rows[line][column] == f"{np.mean(runs[f'{library} {strategy}']['mae']):.2f}"
    errors = {name: np.mean(run["mae"]) for name, run in runs.items() if run.get("mae")}
    kept_no_past = [e for name, e in errors.items() if "cumulative" not in name]
    assert errors["sklearn_cl pseudo"] == min(kept_no_past)
