"""Sphinx: the documentation site. `make docs` builds it; nothing is loaded from the internet."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import reference  # noqa: E402

project = "rbda_ros"
author = "rbda_ros maintainers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["papers/*", "README.md"]
html_theme = "furo"
html_title = "rbda_ros"
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = []

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
# By these names, and not by the long unions that they stand for.
autodoc_type_aliases = {
    name: name
    for name in (
        *("Array", "ArrayLike", "FrameName", "Given", "Position", "Velocity", "Independent"),
        *("Force", "Spanning", "Wrenches", "Task", "Coordinates"),
    )
}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False


def setup(app):
    from site_parts import Mermaid, as_markup, display_mathml, inline_mathml, signature_by_names

    app.connect("builder-inited", lambda _: reference.write(ROOT / "docs"))
    app.connect("autodoc-process-docstring", as_markup)
    app.connect("autodoc-process-signature", signature_by_names)
    app.add_directive("mermaid", Mermaid)
    app.add_html_math_renderer("mathml", (inline_mathml, None), (display_mathml, None))
