"""The site's configuration. `scripts/make_docs.py` runs Sphinx on a mirror of the repository's pages, with the generated ones beside them."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mxnet.libinfo import remex_version  # noqa: E402

project, author, copyright = "Remex", "the Remex contributors", "the Remex contributors; Apache License 2.0"
release = version = remex_version
root_doc = "docs/index"
extensions = ["myst_nb"]
exclude_patterns = ["src", "tests", "scripts", "examples/*/*.py", "examples/*.py"]
source_suffix = {".md": "myst-nb"}

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4
# Pages of the repository begin their sections where GitHub shows them well; generated pages are linked from tables.
suppress_warnings = ["myst.header", "toc.not_included"]
if os.environ.get("DOCS_EXECUTION") == "off":
    suppress_warnings.append("myst-nb.lexer")  # a kernel tells the language of cells when it runs

nb_execution_mode = os.environ.get("DOCS_EXECUTION", "cache")
nb_execution_cache_path = os.environ.get("DOCS_CACHE", str(ROOT / "build" / "docs" / "cache"))
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js = {}

html_theme = "pydata_sphinx_theme"
html_title = "Remex"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "static" / "search.js")  # Sphinx opens it from the working directory
html_show_sourcelink = False
html_copy_source = False
html_baseurl = os.environ.get("DOCS_URL", "")
html_sidebars = {"docs/index": [], "reference/nd/*": [], "reference/np/*": [], "benchmarks/results/**": []}
html_context = {"default_mode": "auto"}  # light or dark, as the system has it
html_theme_options = {
    "logo": {"text": "Remex"},
    "navigation_depth": 2,
    "collapse_navigation": True,
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
