"""A year of I/O benchmarks on three supercomputers, fetched and prepared."""

from __future__ import annotations

import hashlib
import warnings
import zlib
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.datasets import get_data_home

from sklearn_cl._checks import check_number, check_option
from sklearn_cl.datasets._bunch import description, import_pandas, table_bunch

COMMIT = "d8594fb7cc0060d24d7f24c68390daebdf18383f"
URL = f"https://raw.githubusercontent.com/NERSC/tokio-abcutils/{COMMIT}/summaries/"


class System(NamedTuple):
    """A supercomputer: its published file and what is taken from it."""

    file: str
    sha256: str
    # Local days on which an experience begins.
    cuts: tuple[str, ...]
    state: tuple[str, ...]


_LUSTRE = (
    "fs_ave_oss_cpu",
    "fs_ave_mds_cpu",
    "fshealth_ost_avg_full_pct",
    "fshealth_ost_most_full_pct",
    "jobsdb_concurrent_jobs",
    "jobsdb_concurrent_nodes",
    "topology_job_avg_radius",
    "fs_tot_gibs_read",
    "fs_tot_gibs_written",
    "fs_tot_mkdir_ops",
    "fs_tot_rename_ops",
    "fs_tot_rmdir_ops",
    "fs_tot_unlink_ops",
    "fs_tot_open_ops",
)
_GPFS = (
    "fshealth_ost_avg_full_pct",
    "fshealth_ost_most_full_pct",
    "fs_tot_gibs_read",
    "fs_tot_gibs_written",
    "fs_tot_open_ops",
    "fs_tot_close_ops",
    "fs_tot_readdir_ops",
    "fs_tot_inode_updates",
    "fs_tot_read_ops",
    "fs_tot_write_ops",
)
_UPGRADES = ("2017-03-24", "2017-08-10")
SYSTEMS = {
    "cori": System(
        "cori-summaries_2017-02-14-2018-02-15.csv.gz",
        "6ab5e6ae540d312885a3cc12773fd4318315e5200a2df18c605b674aaea60bb3",
        _UPGRADES,
        _LUSTRE,
    ),
    "edison": System(
        "edison-summaries_2017-02-14-2018-02-15.csv.gz",
        "64719cafd2f260dc5dacc94eddf149750cbac13110e65b1e5c8042d1de72e29d",
        ("2017-08-01",),
        _LUSTRE,
    ),
    "mira": System(
        "mira-summaries_2017-02-14_2018-02-15.csv.gz",
        "c67f021fb1aa8fe04d85c290220ffc2caa8b7b21097209ed430b8510a6c58f45",
        _UPGRADES,
        _GPFS,
    ),
}
_APPLICATIONS = {
    "ior": "ior",
    "hacc_io_read": "hacc",
    "hacc_io_write": "hacc",
    "vpicio_uni": "vpic",
    "dbscan_read": "bdcats",
}
_CATEGORIES = {
    "app": ("bdcats", "hacc", "ior", "vpic"),
    "io_dir": ("read", "write"),
    "file_mode": ("fpp", "shared"),
}
_SCRATCH = ("scratch1", "scratch2", "scratch3")


def fetch_tokio(
    system: Literal["cori", "edison", "mira"] = "cori",
    data_home: Any = None,
    download_if_missing: bool = True,
    *,
    as_frame: bool = False,
    return_X_y: bool = False,
    n_retries: int = 3,
) -> Any:
    """Load a year of daily I/O benchmarks on a supercomputer, downloading them once.

    Cori and Edison (NERSC) and Mira (ALCF), from February 2017 to February 2018: throughput of
    four applications on the parallel file system, with its state while the job ran. On Cori
    two dated upgrades of the file system make three experiences; on Edison an outage makes two.
    Mira's are cut at Cori's dates, where nothing happened: a negative control.

    ======  =======  ===========  ======================
    system     rows  experiences  inputs (as an array)
    ======  =======  ===========  ======================
    cori      4 989            3  24
    edison    7 243            2  27
    mira      2 261            3  20
    ======  =======  ===========  ======================

    Parameters
    ----------
    system : {"cori", "edison", "mira"}, default="cori"
        The supercomputer.
    data_home : str or path-like, default=None
        Folder of the published file; None is scikit-learn's, as `sklearn.datasets.get_data_home`
        names it. A file that is there is taken as it is, with a warning where its checksum is
        not the published one.
    download_if_missing : bool, default=True
        Whether to download a file that is not there.
    as_frame : bool, default=False
        Return pandas objects, with categories as such. Otherwise these are columns of 0 and 1.
    return_X_y : bool, default=False
        Return ``(data, target)`` only. The experiences are in the Bunch.
    n_retries : int, default=3
        How often a failed download is tried again, at least 0.

    Returns
    -------
    data : `sklearn.utils.Bunch`
        What was loaded, by name:

        data : {ndarray, DataFrame} of shape (n_samples, n_features)
            Configuration of the job and state of the file system.
        target : {ndarray, Series} of shape (n_samples,)
            Aggregate throughput, in GiB/s. It spans two decades: learn its logarithm.
        experience : {ndarray, Series} of shape (n_samples,)
            Number of the experience, from 0; the rows are in the order of time.
        frame : DataFrame
            All columns, with the start of the job (UTC) and its wall time in seconds; only
            with ``as_frame=True``.
        feature_names, target_names : list of str
            Names of the columns.
        DESCR : str
            The data card.

    Raises
    ------
    OSError
        If the file is missing and may not or could not be downloaded, is damaged, or is another
        table; or if `data_home` is no folder and cannot be made.

    Warns
    -----
    UserWarning
        If the file is not the published one.

    References
    ----------
    G. K. Lockwood et al., "A year in the life of a parallel file system", SC'18,
    doi:10.1109/SC.2018.00077. Data: NERSC/tokio-abcutils, licence LBNL BSD.

    Examples
    --------
    >>> from sklearn_cl.datasets import fetch_tokio
    >>> cori = fetch_tokio()  # doctest: +SKIP
    >>> cori.data.shape, set(cori.experience)  # doctest: +SKIP
    ((4989, 24), {0, 1, 2})
    """
    check_option("system", system, SYSTEMS)
    check_number("n_retries", n_retries, low=0, integer=True)
    import_pandas("fetch_tokio")
    about = SYSTEMS[system]
    path = _published(about, _home(data_home), download_if_missing, n_retries)
    try:
        table = _prepare(_read(path), system)
    except KeyError as error:
        raise OSError(f"{path} is not the published table: it lacks the column {error}.") from error
    outputs = ["experience", "timestamp", "run_time_s", "target"]
    categories: dict[str, tuple[str, ...]] = dict(_CATEGORIES)
    if system == "edison":
        categories["file_system"] = _SCRATCH
    bunch = table_bunch(
        {name: table[name].to_numpy() for name in table},
        [name for name in table if name not in outputs],
        categories,
        "target",
        as_frame=as_frame,
        DESCR=description("tokio"),
    )
    return (bunch.data, bunch.target) if return_X_y else bunch


def _home(data_home: Any) -> Path:
    try:
        return Path(get_data_home(data_home))
    except (OSError, TypeError) as error:
        raise type(error)(
            f"data_home must be a folder that exists or can be made; got {data_home!r}: {error}"
        ) from error


def _published(about: System, folder: Path, download: bool, n_retries: int) -> Path:
    path = folder / about.file
    if not path.exists():
        if not download:
            raise OSError(
                f"{about.file} is not in {folder}, and download_if_missing is False. Download it "
                f"from {URL}{about.file}, or pass the folder that holds it as data_home."
            )
        _download(about, folder, n_retries)
    elif hashlib.sha256(path.read_bytes()).hexdigest() != about.sha256:
        warnings.warn(
            f"{path} is not the published file: its SHA-256 differs. It is taken as it is; remove "
            "it to download the published one.",
            stacklevel=3,
        )
    return path


def _download(about: System, folder: Path, n_retries: int) -> None:
    try:
        import pooch
        from requests import RequestException
    except ImportError:
        raise ImportError(
            "fetch_tokio needs pooch to download: pip install 'sklearn-cl[datasets]'."
        ) from None
    fetcher = pooch.create(
        folder, URL, registry={about.file: f"sha256:{about.sha256}"}, retry_if_failed=n_retries
    )
    try:
        fetcher.fetch(about.file)
    except (RequestException, ValueError) as error:
        # A ValueError is a file that has another checksum; it has not been kept.
        raise OSError(
            f"{about.file} could not be downloaded from {URL}: {error} With the file at hand, pass "
            "its folder as data_home."
        ) from error


def _read(path: Path) -> Any:
    pd = import_pandas("fetch_tokio")
    faults = (
        EOFError,
        OSError,
        zlib.error,
        UnicodeDecodeError,
        pd.errors.ParserError,
        pd.errors.EmptyDataError,
    )
    try:
        # Where rows have one field more than the header, pandas makes the first the index.
        return pd.read_csv(path)
    except faults as error:
        raise OSError(f"{path} is damaged; remove it and fetch it again: {error}") from error


def _prepare(table: Any, system: str) -> Any:
    """Jobs that moved more than 1 GiB and lack no value, in the order of time."""
    pd = import_pandas("fetch_tokio")
    about = SYSTEMS[system]
    jobs = table.dropna()
    jobs = jobs[jobs["darshan_total_gibs_posix"] > 1]
    # Jobs may start in the same second.
    jobs = jobs.sort_values(["darshan_start_time", "darshan_end_time", "darshan_jobid"])
    # The published name may be a path.
    binary = jobs["darshan_app"].str.rsplit("/", n=1).str[-1]
    writes = jobs["darshan_biggest_write_api_bytes"] > jobs["darshan_biggest_read_api_bytes"]
    biggest = {
        what: jobs[f"darshan_biggest_write_api_{what}"].where(
            writes, jobs[f"darshan_biggest_read_api_{what}"]
        )
        for what in ("bytes", "files")
    }
    # A file for each process, and a few of the job itself.
    own = biggest["files"] % jobs["darshan_nprocs"] < 0.05 * biggest["files"]
    start = pd.to_datetime(jobs["darshan_start_time"], unit="s")
    # NERSC's column holds local time; Mira's dates fall in a gap of days.
    local = start if system == "mira" else pd.to_datetime(jobs["_datetime_start"], unit="s")
    columns = {
        "experience": np.searchsorted(
            pd.to_datetime(list(about.cuts)).to_numpy(), local.to_numpy(), side="right"
        ),
        "timestamp": start.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "app": binary.map(_APPLICATIONS),
        "io_dir": np.where(writes, "write", "read"),
        "file_mode": np.where(own, "fpp", "shared"),
        "n_procs": jobs["darshan_nprocs"],
        "volume_gib": jobs["darshan_total_gibs_posix"].round(),
    }
    for name in about.state:
        bytes_of = name.replace("gibs", "bytes")
        columns[name] = jobs[name] if name in jobs else jobs[bytes_of] / 2**30
    columns["run_time_s"] = jobs["darshan_walltime"]
    columns["target"] = jobs["darshan_agg_perf_by_slowest_posix"] / 1024
    if system == "edison":
        columns["file_system"] = jobs["_file_system"]
    made = pd.DataFrame(columns)
    if system == "edison":
        made.insert(5, "file_system", made.pop("file_system"))
    if system == "mira":
        made = made[~((binary == "hacc_io_write") & ~own)]
    return made.reset_index(drop=True)
