"""What every benchmark tells of itself, and where its figures go."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def parser(doc: str | None, name: str) -> argparse.ArgumentParser:
    """A parser that knows ``--json``."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--json",
        type=Path,
        default=RESULTS / f"{name}.json",
        help="where the figures go, for the documentation (default: %(default)s)",
    )
    return made


def machine(*packages: str) -> dict[str, str]:
    """Processor, cores, Python, and the release of each package that is installed."""
    found = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
    }
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def peak_rss() -> float:
    """The most memory that this process has held, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage would count what the parent held when it started us.
        (peak,) = (s for s in status.read_text().splitlines() if s.startswith("VmHWM"))
        return int(peak.split()[1]) / 2**10
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_bytes / 2**20


def rss() -> float:
    """The memory that this process holds now, in MiB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def save(path: Path, figures: dict[str, Any]) -> None:
    """Write the figures of a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1) + "\n")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
