"""Sphinx: what the documentation is made of."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import _pages  # noqa: E402

import sklearn_cl  # noqa: E402

project = "sklearn_cl"
author = "sklearn-cl developers"
copyright = f"2026, {author}"  # noqa: A001
release = version = sklearn_cl.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",
    "myst_parser",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
# The inventories of others come over the network, so only where there is one.
if os.environ.get("READTHEDOCS") or os.environ.get("DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
        "skorch": ("https://skorch.readthedocs.io/en/stable", None),
    }

templates_path = ["_templates"]
exclude_patterns = ["_build", "_generated/parts"]
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_cl"
html_static_path = ["_static"]
html_css_files = ["page.css"]
html_show_sourcelink = False
html_sidebars = {"start": [], "index": []}
html_theme_options = {
    "show_prev_next": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"optuna_search",
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": [
        "../examples/performance",
        "../examples/strategies",
        "../examples/evaluation",
        "../examples/drift",
    ],
    "doc_module": "sklearn_cl",
    "backreferences_dir": "_generated/parts",
    "reference_url": {"sklearn_cl": None},
    "show_signature": False,
    "show_memory": False,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
}
# Terms of scikit-learn's glossary are in docstrings that are inherited from it.
suppress_warnings = ["config.cache", "myst.header", "ref.term"]

# Figures are drawn without a screen.
warnings.filterwarnings("ignore", message=".*non-interactive.*")

_pages.write(HERE / "_generated")

# Labels of scikit-learn's guide in docstrings that are inherited from it.
THEIRS = {"r2_score", "metadata_routing", "scoring_parameter"}


def keep_text(app, env, node, contnode):
    """Offline, a label of theirs stays as text."""
    return contnode if node.get("reftarget") in THEIRS else None


def setup(app):
    """Sphinx calls this."""
    app.connect("missing-reference", keep_text)
