"""What the documentation promises."""

from __future__ import annotations

import importlib
import re
import textwrap
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn

from sklearn_cl.strategies import available
from tests.conftest import ROOT

DOCS = ROOT / "docs"
PACKAGES = [
    "sklearn_cl",
    *(
        f"sklearn_cl.{name}"
        for name in (
            "buffers",
            "datasets",
            "drift",
            "inspection",
            "metrics",
            "model_selection",
            "strategies",
            "testing",
        )
    ),
]
PUBLIC = [
    f"{package}.{name}"
    for package in PACKAGES
    for name in importlib.import_module(package).__all__
    if name != "__version__"
]
PAGES = sorted(DOCS.glob("*.rst")) + sorted((DOCS / "user_guide").glob("*.rst"))
# What a page takes as given: a stream with labels, a model, and the names of the package.
GIVEN = """
import numpy, pandas, sklearn
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn_cl import *
from sklearn_cl.datasets import *
from sklearn_cl.drift import *
from sklearn_cl.metrics import *
from sklearn_cl.model_selection import *
from sklearn_cl.strategies import *
X, y, labels = make_drift_stream(3, 60, random_state=0)
model = ContinualMLPRegressor(max_iter=3, random_state=0)
X_test, y_test, labels_test = X, y, labels
"""
ALSO = {
    "evaluation": "",
    "drift": """
stream = [(X[:90], y[:90]), (X[90:], y[90:])]
old = ContinualMLPRegressor(max_iter=3, random_state=0).fit(X[:60], y[:60])
X_old, y_old, X_new, y_new = X[:60], y[:60], X[60:90], y[60:90]
""",
}


def code_of(page):
    """The code of a page, block by block."""
    lines, blocks, i = page.read_text().splitlines(), [], 0
    while i < len(lines):
        line = lines[i]
        i += 1
        python = line.strip() == ".. code-block:: python"
        if not python and not (line.endswith("::") and not line.lstrip().startswith("..")):
            continue
        block = []
        while i < len(lines) and (not lines[i].strip() or lines[i].startswith("   ")):
            block.append(lines[i])
            i += 1
        code = textwrap.dedent("\n".join(block)).strip()
        if python or not code.startswith("pip "):
            blocks.append(code)
    return blocks


WITH_CODE = [page for page in PAGES if code_of(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_code_of_the_pages_runs(page, capsys, monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    names = {}
    np.random.seed(0)
    with sklearn.config_context():
        exec(GIVEN + ALSO.get(page.stem, ""), names)
        for code in code_of(page):
            exec(compile(code, str(page), "exec"), names)


def test_pages_have_code():
    assert {"start", "evaluation", "drift", "pipelines", "production", "migrating", "concepts"} <= {
        page.stem for page in WITH_CODE
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_on_the_api_page(name):
    assert re.search(rf"\b{name.rsplit('.', 1)[1]}\b", (DOCS / "api.rst").read_text())


# Not asked for: extended summaries, "See Also" and examples everywhere, capitals and full stops
# where a line is a formula or a name, and the order of sections.
OPTIONAL = {"ES01", "SA01", "SA04", "EX01", "GL01", "GL02", "GL03", "RT02", "RT03", "RT05", "PR08"}


# Scorers are objects: what numpydoc reads is the docstring of their class.
@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.endswith("ing_scorer")])
def test_docstring_is_valid(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    faults = [fault for fault in validate(name)["errors"] if fault[0] not in OPTIONAL]
    assert not faults


def test_every_strategy_says_when_to_take_it():
    from sklearn_cl import strategies

    classes = [c for c in vars(strategies).values() if getattr(c, "name", "") in available()]
    assert {c.name for c in classes} == set(available())
    assert [c.__name__ for c in classes if "\n    Take it " not in c.__doc__] == []


class Links(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self):
        super().__init__()
        self.targets, self.ids = set(), set()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        target = found.get("href") or found.get("src")
        if target and not re.match(r"[a-z]+:|//", target):
            self.targets.add(target)


def test_links_of_the_site_resolve():
    site = DOCS / "_build" / "html"
    if not site.is_dir():
        pytest.skip("the site has not been built: make -C docs html")
    pages = {}
    for path in site.rglob("*.html"):
        if "_static" in path.parts:  # templates of the theme
            continue
        pages[path.resolve()] = links = Links()
        links.feed(path.read_text())
    assert len(pages) > 50
    broken = []
    for path, links in pages.items():
        for target in links.targets:
            file, _, anchor = target.partition("#")
            there = (path.parent / file.split("?")[0]).resolve() if file else path
            here = pages.get(there)
            if not there.exists() or (here and anchor and anchor not in here.ids):
                broken.append(f"{path.name} -> {target}")
    assert not broken
