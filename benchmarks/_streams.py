"""The real streams, prepared in one way for every benchmark.

Target: its natural logarithm. Inputs: categories one-hot, the state of a file system
log(1 + x), sizes and times log, everything else as it is. Identifiers, times and other
targets are left out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

META = [
    "timestamp",
    "run_time_s",
    "gpu",
    "rel_std",
    "environment",
    "config_id",
    "video",
    "category",
    "resolution",
]
CATEGORIES = ["app", "io_dir", "file_mode", "file_system", "me", "analyse", "direct"]
LOGGED = ("fs_", "fshealth_", "jobsdb_", "topology_", "n_procs", "volume_gib", "frames")
STREAMS = ["tokio_cori", "tokio_edison", "gpu_convolution", "x264_versions", "x264_inputs"]
# The columns that identify the regime: the state of the file system, the device, the revision
# and the machine, the resolution.
_STATE = ("fs_", "fshealth_", "jobsdb_", "topology_")
REGIME = {
    "tokio_cori": _STATE,
    "tokio_edison": _STATE,
    "tokio_mira": _STATE,
    "gpu_convolution": ("vendor_amd", "log2_", "warp64"),
    "gpu_dedispersion": ("vendor_amd", "log2_", "warp64"),
    "x264_versions": ("revision", "cpus", "clock_ghz", "ram_gib", "cloud"),
    "x264_inputs": ("width", "height"),
}
# The inputs of arXiv 2310.16996, beside the one-hot configuration.
PAPER = [
    "fs_ave_oss_cpu",
    "fs_ave_mds_cpu",
    "fs_tot_gibs_read",
    "fs_tot_gibs_written",
    "jobsdb_concurrent_jobs",
    "fshealth_ost_avg_full_pct",
    "fs_tot_mkdir_ops",
    "fs_tot_rename_ops",
    "fs_tot_rmdir_ops",
    "fs_tot_unlink_ops",
]


class Stream(NamedTuple):
    """A stream as arrays."""

    X: np.ndarray
    y: np.ndarray
    experience: np.ndarray


def shared_data() -> Path:
    """The folder of the real data."""
    beside = Path(__file__).parents[2] / "shared"
    folder = Path(os.environ.get("SKLEARN_CL_SHARED", beside)) / "data"
    if not folder.is_dir():
        raise SystemExit("the shared data are absent; set SKLEARN_CL_SHARED to their folder")
    return folder


def load(
    name: str, folder: Path, rows: int | None = None, seed: int = 0, regime: bool = True
) -> Stream:
    """A stream, with at most so many rows of each experience, in their order.

    Without ``regime``, without the columns that identify it.
    """
    table = pd.read_csv(folder / f"{name}.csv.gz")
    if rows is not None:
        shuffled = table.sample(frac=1, random_state=seed)
        table = shuffled.groupby("experience").head(rows).sort_index()
    X = table.drop(columns=["experience", "target", *META], errors="ignore")
    if not regime:
        X = X[[column for column in X if not column.startswith(REGIME[name])]]
    X = pd.get_dummies(X, columns=[c for c in CATEGORIES if c in X], dtype=float)
    logged = [c for c in X if c.startswith(LOGGED)]
    X[logged] = np.log1p(X[logged])
    y = np.log(table["target"].to_numpy())
    return Stream(X.to_numpy(float), y, table["experience"].to_numpy())


def load_paper(folder: Path) -> Stream:
    """Cori as arXiv 2310.16996 has it: 18 inputs, nothing logged, throughput in GiB/s."""
    table = pd.read_csv(folder / "tokio_cori.csv.gz")
    one_hot = pd.get_dummies(table[["app", "io_dir", "file_mode"]], dtype=float)
    X = pd.concat([one_hot, table[PAPER]], axis=1)
    y, experience = table["target"].to_numpy(), table["experience"].to_numpy()
    return Stream(X.to_numpy(float), y, experience)
