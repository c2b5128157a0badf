"""Sphinx's settings. `python docs/build.py` builds the site."""

project = "dpassay"
author = "The dpassay authors"
copyright = author  # noqa: A001  # the name that Sphinx reads
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "dpassay"
html_copy_source = False
html_show_sphinx = False
nitpicky = True
