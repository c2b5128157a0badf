"""Sphinx's settings. `python docs/build.py` builds the site."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "dpassay"
author = "The dpassay authors"
copyright = author  # noqa: A001  # the name that Sphinx reads
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",
    "mathematics",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
toc_object_entries = False
exclude_patterns = ["_build", "extensions"]
html_theme = "furo"
html_title = "dpassay"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_copy_source = False
html_show_sphinx = False
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]
"""Types in signatures: most are no public names, and have no page to link to."""
