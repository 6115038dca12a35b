"""The ladder of imports, read from the syntax trees."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "sklearn_cl"
MEMBERS = [
    f"strategies.{name}"
    for name in (
        "_baselines",
        "_distill",
        "_ewc",
        "_gradient",
        "_importance",
        "_pseudo",
        "_registry",
        "_replay",
        "_select",
    )
]
# An import goes from a rung to a lower one only. Modules on one rung do not see each other.
LADDER = [
    [
        "_state",
        "_checks",
        "_losses",
        "_scaling",
        "_experiences",
        "_chance",
        "_optimizer",
        "_schedule",
        "_denormals",
        "_threads",
    ],
    ["_rows", "_plan"],
    ["_units", "_flat", "_module"],
    ["buffers", "_engine"],
    ["_dense"],
    ["_jacobian"],
    ["_learner"],
    ["strategies._base"],
    ["strategies._pull", "strategies._rehearsal"],
    ["strategies._chain", *MEMBERS],
    ["strategies"],
    ["_net"],
    ["_estimator"],
    ["_regressor"],
    ["testing", "testing._checks", ""],
]
# These serve any estimator: they see numpy, scikit-learn and the checks, no torch.
# Each may see those before it.
FREE = ["metrics", "datasets", "drift", "_pipeline", "model_selection", "inspection"]
RUNG = {name: height for height, rung in enumerate(LADDER) for name in rung}
FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_down(path):
    here = name_of(path)
    free = here.split(".")[0] in FREE
    for module in imports(path):
        if module.split(".")[0] != "sklearn_cl":
            assert not (free and module.split(".")[0] in ("torch", "skorch")), module
            assert not any(part.startswith("_") for part in module.split(".")[1:]), (
                f"{here} imports {module}, which is private"
            )
            continue
        target = module.removeprefix("sklearn_cl").lstrip(".")
        if free:
            before = FREE[: FREE.index(here.split(".")[0]) + 1]
            allowed = target.split(".")[0] in before or RUNG.get(target, 99) == 0
            assert allowed, f"{here} imports {target}"
        elif target.split(".")[0] in FREE:
            allowed = here.split(".")[0] in ("testing", "") or target == "drift"
            assert allowed, f"{here} imports {target}"
        else:
            inside_testing = here == "testing" and target == "testing._checks"
            assert RUNG[target] < RUNG[here] or inside_testing, f"{here} imports {target}"


def test_every_module_has_a_rung():
    names = {name_of(path) for path in FILES}
    free = {name for name in names if name.split(".")[0] in FREE}
    assert names - free == set(RUNG)


def test_import_is_quiet_and_light():
    code = (
        "import sklearn, numpy, torch; before = sklearn.get_config(), torch.get_num_threads()\n"
        "import sys, sklearn_cl, sklearn_cl.strategies, sklearn_cl.inspection\n"
        "assert (sklearn.get_config(), torch.get_num_threads()) == before\n"
        "assert 'matplotlib' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_public_names_are_documented():
    for package in (
        "",
        ".strategies",
        ".metrics",
        ".model_selection",
        ".inspection",
        ".datasets",
        ".testing",
    ):
        module = importlib.import_module("sklearn_cl" + package)
        public = [getattr(module, name) for name in module.__all__ if name != "__version__"]
        assert all(thing.__doc__ for thing in public)
