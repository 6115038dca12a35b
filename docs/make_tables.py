"""Write the tables of the documentation from the figures that the benchmarks saved.

python docs/make_tables.py
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
OUT = HERE / "_generated"


def table(rows: dict[str, dict[str, float]], first: str) -> str:
    """A list table: one row for each entry, figures with two digits."""
    columns = sorted(next(iter(rows.values())), key=lambda name: not name.endswith("naive"))
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for cells in [[first, *columns]] + [
        [name, *(f"{figures[column]:.2f}" for column in columns)] for name, figures in rows.items()
    ]:
        lines += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(cells)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write every table."""
    OUT.mkdir(exist_ok=True)
    figures = json.loads((RESULTS / "strategies.json").read_text())
    order = dict(sorted(figures["table"].items(), key=lambda item: item[1]["all / naive"]))
    (OUT / "strategies.rst").write_text(table(order, "strategy"))


if __name__ == "__main__":
    main()
