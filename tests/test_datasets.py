"""Data sets: known answers, the shared tables, a server of our own."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import importlib.util
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from sklearn_cl import ContinualMLPRegressor, continual_validate
from sklearn_cl.datasets import _tokio, fetch_tokio, load_kernel_timings, make_drift_stream
from sklearn_cl.metrics import forgetting
from tests.conftest import ROOT

KINDS = ["abrupt", "gradual", "recurring", "scale", "covariate", "hidden"]


@pytest.fixture(scope="module")
def collector():
    path = ROOT / "benchmarks" / "collect_kernel_timings.py"
    spec = importlib.util.spec_from_file_location("collect_kernel_timings", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestGeneratedStreams:
    @pytest.mark.parametrize("drift", KINDS)
    def test_facts_agree_with_rows(self, drift):
        X, y, experience, facts = make_drift_stream(
            4, 40_000, drift=drift, noise=0.5, facts=True, random_state=0
        )
        rows = [experience == k for k in range(4)]
        assert np.sqrt(np.mean((y - facts.clean) ** 2)) == pytest.approx(facts.noise_rmse, rel=0.01)
        assert np.mean(np.abs(y - facts.clean)) == pytest.approx(facts.noise_mae, rel=0.01)
        assert [y[r].mean() for r in rows] == pytest.approx(facts.best_constant, rel=0.01)
        assert [y[r].std() for r in rows] == pytest.approx(facts.constant_rmse, rel=0.02)
        assert X.min() >= 0 and X.max() <= 1

    @pytest.mark.parametrize("drift", KINDS)
    def test_blind_floor_by_binning(self, drift):
        X, y, _, facts = make_drift_stream(
            5, 40_000, drift=drift, noise=0.0, facts=True, random_state=0
        )
        # The best answer without the state is the surface times its factor's mean where x2 is.
        surface = facts.clean / facts.factor
        place = np.digitize(X[:, 2], [0.2, 0.4, 0.6, 0.8])
        mean = pd.Series(facts.factor).groupby(place).transform("mean")
        floor = np.sqrt(np.mean((y - mean * surface) ** 2))
        assert floor == pytest.approx(facts.blind_rmse, rel=0.02, abs=1e-9)

    def test_state_shows_unless_hidden(self):
        for drift in KINDS:
            X, _, experience = make_drift_stream(4, 500, drift=drift, random_state=0)
            told = (np.floor(X[:, -1] * 4) == experience).mean()
            assert told < 0.4 if drift == "hidden" else told == 1

    def test_gradual_has_no_jump(self):
        factor = make_drift_stream(5, 100, drift="gradual", facts=True, random_state=0)[3].factor
        abrupt = make_drift_stream(5, 100, drift="abrupt", facts=True, random_state=0)[3].factor
        assert np.abs(np.diff(factor)).max() < 0.01
        # Half a step of 0.62 or 0.38 is left when the next change begins.
        assert factor[99::100] == pytest.approx(abrupt[99::100], abs=0.0032)
        assert sorted(set(np.abs(np.diff(abrupt)).round(3))) == [0, 0.382, 0.618]

    def test_gradual_state_tells_how_far_the_change_is(self):
        X, *_, facts = make_drift_stream(
            5, 100, drift="gradual", noise=0, facts=True, random_state=0
        )
        assert np.diff(X[:, -1]) == pytest.approx(1 / 500)
        # One function fits all rows: the factor is piecewise linear in the column.
        knots = np.array([0, 0.2, 0.4, 0.6, 0.8, 1])
        levels = 0.5 + (np.array([0, 0, 1, 2, 3, 4]) * (1 + 5**0.5) / 2 + 0.5) % 1
        assert facts.factor == pytest.approx(np.interp(X[:, -1], knots, levels))

    def test_scale_is_finite_to_its_limit(self):
        *_, y, _, facts = make_drift_stream(300, 2, drift="scale", facts=True, random_state=0)
        assert np.isfinite(y).all() and np.isfinite(facts.constant_rmse).all()
        assert np.isfinite(facts.blind_rmse)

    def test_recurring_returns(self):
        c = make_drift_stream(7, 1, facts=True, random_state=0)[3].factor
        assert c[:4] == pytest.approx(c[3:]) and abs(c[0] - c[1]) > 0.5

    @pytest.mark.parametrize(
        ("bad", "match"),
        [
            ({"drift": "sudden"}, "drift must be one of 'abrupt'"),
            ({"n_experiences": 0}, "n_experiences must be an integer at least 1"),
            ({"n_features": 5}, "n_features must be an integer at least 6"),
            ({"n_experiences": 301, "drift": "scale"}, "n_experiences must be .* 300"),
            ({"noise": -1}, "noise must be a finite number at least 0"),
        ],
    )
    def test_bad_parameters(self, bad, match):
        with pytest.raises(ValueError, match=match):
            make_drift_stream(**bad)


class TestKernelTimings:
    def test_table(self):
        timings = load_kernel_timings(as_frame=True)
        assert timings.frame.shape == (18_000, 12) and timings.frame.notna().all(axis=None)
        assert list(timings.frame.columns) == ["experience", *timings.feature_names, "seconds"]
        assert timings.experience.value_counts().tolist() == [3000] * 6
        assert timings.experience.is_monotonic_increasing
        # The same configurations in every state; the state is the same within one.
        configuration = [n for n in timings.feature_names if n not in timings.state_names]
        parts = [part for _, part in timings.frame.groupby("experience")]
        for part in parts:
            same = part[configuration].to_numpy() == parts[0][configuration].to_numpy()
            assert same.all() and (part[timings.state_names].nunique() == 1).all()
        assert timings.target.min() > 1e-7 and timings.target.max() < 0.1
        assert "Kernel timings" in timings.DESCR

    def test_arrays_hold_the_frame(self):
        timings, frame = load_kernel_timings(), load_kernel_timings(as_frame=True)
        assert timings.data.shape == (18_000, len(timings.feature_names)) == (18_000, 63)
        assert timings.data.dtype == float and timings.frame is None
        wanted = pd.get_dummies(frame.data, prefix_sep="=", dtype=float)
        assert sorted(wanted) == sorted(timings.feature_names)
        assert np.array_equal(wanted[timings.feature_names].to_numpy(), timings.data)
        X, y = load_kernel_timings(return_X_y=True)
        assert np.array_equal(X, timings.data) and np.array_equal(y, timings.target)
        assert len(timings.state_names) == 9

    def test_naive_forgets(self):
        timings = load_kernel_timings()
        few = np.flatnonzero(np.arange(18_000) % 3000 < 700)
        errors = {}
        for strategy in ("naive", "replay"):
            reg = ContinualMLPRegressor(
                strategy=strategy, batch_size=32, max_iter=30, random_state=0
            )
            R = continual_validate(
                reg,
                timings.data[few],
                np.log(timings.target[few]),
                experience=timings.experience[few],
                scoring="neg_mean_absolute_error",
                random_state=0,
            )["R"]
            errors[strategy] = -R[-1].mean(), forgetting(R)
        assert errors["naive"][0] > 1.4 * errors["replay"][0]
        assert errors["naive"][1] > 2 * errors["replay"][1] > 0

    def test_collector_made_this_design(self, collector):
        timings = load_kernel_timings(as_frame=True).frame
        first = timings[timings.experience == 0]
        designed = pd.DataFrame(collector.design(3000, seed=0))
        for name in designed:
            assert (designed[name].to_numpy() == first[name].to_numpy()).all()
        states = timings.drop_duplicates("experience")
        assert states["numpy_minor"].tolist() == [
            collector.minor(s.numpy) for s in collector.STATES
        ]
        assert states["threads"].tolist() == [s.threads for s in collector.STATES]

    def test_collector_times_every_kernel(self, collector):
        state = collector.State("here", "here", "json", "zlib", 1)
        small = {c.kernel: c for c in sorted(collector.design(560, seed=0), key=lambda c: -c.n)}
        assert set(small) == set(collector.KERNELS)
        for config in small.values():
            call = collector.prepare(config, state)
            assert call() is not None

    def test_collector_sums_up(self, collector, tmp_path):
        table = pd.DataFrame(
            {
                "experience": [0, 0, 0, 0, 1, 1, 1, 1],
                "kernel": ["sum", "sum", "sum", "add"] * 2,
                "dtype": "int16",
                "seconds": [1.0, 2.0, 4.0, 8.0, 2.0, 1.0, 12.0, 4.0],
            }
        )
        table.to_csv(tmp_path / "table.csv.gz", index=False)
        header, *rows = collector.summary(tmp_path / "table.csv.gz").splitlines()
        # The sums take 2, 0.5 and 3 times as long.
        assert header.split()[-2:] == ["0", "1"]
        assert [row.split() for row in rows] == [
            ["add,", "int16", "1.00", "0.50"],
            ["sum,", "int16", "1.00", "2.00"],
        ]

    def test_collector_counts_a_call_once(self, collector, monkeypatch):
        clock = iter(np.arange(1000) * 2e-4)
        monkeypatch.setattr(collector.time, "perf_counter", lambda: next(clock))
        calls = []
        # By this clock a call takes 0.2 ms, so five make a repeat, which takes one tick.
        assert collector.seconds_of(lambda: calls.append(1)) == pytest.approx(2e-4 / 5)
        assert len(calls) == 2 + 5 * collector.N_REPEATS


KEYS = ["timestamp", "target", "run_time_s"]
SHAPES = {"cori": ((4989, 24), 3), "edison": ((7243, 27), 2), "mira": ((2261, 20), 3)}


@pytest.fixture
def small_file(tmp_path, monkeypatch):
    """A made-up file of Cori in place of the published one."""
    about = _tokio.SYSTEMS["cori"]
    n = 6
    table = pd.DataFrame({name: np.arange(1.0, n + 1) for name in about.state})
    table["darshan_total_gibs_posix"] = [2.0, 4, 8, 0.5, 16, 32]
    table["darshan_start_time"] = [5, 4, 3, 2, 1, 0]
    table["darshan_end_time"] = table["darshan_jobid"] = 9
    table["darshan_app"] = [
        "/home/x/ior",
        "ior",
        "vpicio_uni",
        "ior",
        "dbscan_read",
        "hacc_io_read",
    ]
    for way in ("read", "write"):
        table[f"darshan_biggest_{way}_api_bytes"] = [1, 2] * 3 if way == "read" else [2, 1] * 3
        table[f"darshan_biggest_{way}_api_files"] = [513, 513, 2, 2, 2, 2]
    table["darshan_nprocs"] = 512
    days = ["2018-01-01", "2017-08-10", "2017-08-09", "2017-05-01", "2017-03-24", "2017-03-23"]
    table["_datetime_start"] = (pd.to_datetime(days) - pd.Timestamp(0)) // pd.Timedelta("1s")
    table["darshan_walltime"] = 60
    table["darshan_agg_perf_by_slowest_posix"] = 1024.0
    published = gzip.compress(table.to_csv().encode())
    digest = hashlib.sha256(published).hexdigest()
    monkeypatch.setitem(_tokio.SYSTEMS, "cori", about._replace(sha256=digest))
    return published


@pytest.fixture
def server(monkeypatch, small_file):
    """Serves the small file on this machine; fails as often as it is told, and counts."""

    class Handler(http.server.BaseHTTPRequestHandler):
        failures, served, body = 0, 0, small_file

        def do_GET(self):
            Handler.served += 1
            if Handler.served <= Handler.failures:
                self.send_error(503)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(Handler.body)))
            self.end_headers()
            self.wfile.write(Handler.body)

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setattr(_tokio, "URL", f"http://127.0.0.1:{running.server_port}/")
        # The pause between tries is pooch's.
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        yield Handler
        running.shutdown()
        thread.join()


class TestTokio:
    @pytest.mark.filterwarnings("ignore:.*is not the published file")
    @pytest.mark.parametrize("system", SHAPES)
    def test_equals_the_shared_table(self, system, shared_data):
        made = fetch_tokio(system, data_home=shared_data / "upstream", as_frame=True)
        wanted = pd.read_csv(shared_data / f"tokio_{system}.csv.gz")
        assert list(made.frame) == list(wanted) and len(made.frame) == len(wanted)
        assert (made.frame["timestamp"].to_numpy() == wanted["timestamp"].to_numpy()).all()
        # Jobs that began in the same second may stand in another order.
        a, b = (t.sort_values(KEYS).reset_index(drop=True) for t in (made.frame, wanted))
        for name in wanted:
            if wanted[name].dtype.kind in "if":
                assert a[name].to_numpy(float) == pytest.approx(b[name].to_numpy(), rel=1e-5)
            else:
                assert (a[name].astype(str) == b[name].astype(str)).all()
        arrays = fetch_tokio(system, data_home=shared_data / "upstream")
        assert arrays.data.shape == SHAPES[system][0]
        assert set(arrays.experience) == set(range(SHAPES[system][1]))
        assert np.isfinite(arrays.data).all() and (arrays.target > 0).all()

    def test_another_file_is_taken_with_a_warning(self, shared_data):
        with pytest.warns(UserWarning, match="is not the published file"):
            X, y = fetch_tokio("mira", data_home=shared_data / "upstream", return_X_y=True)
        assert X.shape == (2261, 20) and y.shape == (2261,)

    def test_download_once_and_prepare(self, server, tmp_path):
        cori = fetch_tokio(data_home=tmp_path, as_frame=True)
        fetch_tokio(data_home=tmp_path)
        assert server.served == 1
        # The row of half a GiB is out; the rest is in the order of its start.
        assert cori.frame["volume_gib"].tolist() == [32, 16, 8, 4, 2]
        assert cori.frame["app"].tolist() == ["hacc", "bdcats", "vpic", "ior", "ior"]
        assert cori.frame["io_dir"].tolist() == ["read", "write", "write", "read", "write"]
        assert cori.frame["file_mode"].tolist() == ["shared", "shared", "shared", "fpp", "fpp"]
        assert cori.experience.tolist() == [0, 1, 1, 2, 2]
        assert cori.target.tolist() == [1.0] * 5

    def test_download_is_tried_again(self, server, tmp_path):
        server.failures = 2
        assert fetch_tokio(data_home=tmp_path, n_retries=2).data.shape == (5, 24)
        assert server.served == 3

    @pytest.mark.parametrize("fault", ["server", "checksum", "no server"])
    def test_failed_download_leaves_nothing(self, server, tmp_path, fault, monkeypatch):
        if fault == "server":
            server.failures = 9
        elif fault == "checksum":
            server.body = b"something else"
        else:
            monkeypatch.setattr(_tokio, "URL", "http://127.0.0.1:9/")
        with pytest.raises(OSError, match=r"could not be downloaded.*data_home"):
            fetch_tokio(data_home=tmp_path, n_retries=1)
        assert not list(tmp_path.iterdir())

    def test_missing_file(self, tmp_path):
        with pytest.raises(OSError, match="download_if_missing is False"):
            fetch_tokio(data_home=tmp_path, download_if_missing=False)

    @pytest.mark.parametrize(
        ("damage", "match"),
        [
            (lambda packed: packed[:200], "is damaged; remove it"),
            (lambda packed: b"", "is damaged; remove it"),
            (lambda packed: gzip.compress(b""), "is damaged; remove it"),
            (lambda packed: gzip.compress(b"a,b\n1,2\n"), "lacks the column 'darshan_total"),
            (
                lambda packed: gzip.compress(
                    gzip.decompress(packed).replace(b"fs_tot_open_ops", b"something", 1)
                ),
                "lacks the column",
            ),
        ],
        ids=["cut", "empty", "no table", "another table", "no such column"],
    )
    def test_damaged_file(self, server, tmp_path, damage, match):
        fetch_tokio(data_home=tmp_path)
        (path,) = tmp_path.iterdir()
        path.write_bytes(damage(path.read_bytes()))
        with (
            pytest.warns(UserWarning, match="not the published file"),
            pytest.raises(OSError, match=match),
        ):
            fetch_tokio(data_home=tmp_path)

    def test_data_home_is_no_folder(self, tmp_path):
        (tmp_path / "file").touch()
        for home in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(OSError, match="data_home must be a folder"):
                fetch_tokio(data_home=home, download_if_missing=False)
        with pytest.raises(TypeError, match="data_home must be a folder"):
            fetch_tokio(data_home=3, download_if_missing=False)

    def test_bad_parameters(self):
        with pytest.raises(ValueError, match="system must be one of 'cori', 'edison', 'mira'"):
            fetch_tokio("theta")
        with pytest.raises(ValueError, match="n_retries must be an integer at least 0"):
            fetch_tokio(n_retries=-1)
