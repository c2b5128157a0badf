"""Mathematics without network or script: MathML for formulas, raised and lowered letters in text.

Formulas of `$…$` and `$$…$$` become MathML, which browsers draw themselves; docutils translates
them. In running text, where a formula is written as it is read (R^M, σ_*, e^{−ε}), what follows `^`
or `_` is raised or lowered.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.transforms.post_transforms import SphinxPostTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_AS_IT_IS = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)
_SCRIPT = re.compile(
    r"(?<=[\w)\]}‖|′'⟩])\^(\{(?:[^{}]|\{[^{}]*\})*\}|\([^()]*\)|[−-]?(?:\d+|[^\W\d_])(?!\w))"
    r"|(?<=[^\W\d_])_(\{(?:[^{}]|\{[^{}]*\})*\}|\*|(?:\d+|[^\W\d_])(?!\w))"
)


class Scripts(SphinxPostTransform):
    """Raises and lowers letters in running text."""

    default_priority = 400

    def run(self, **_: Any) -> None:
        """Replace every text in which something is to be raised or lowered."""
        for text in list(self.document.findall(nodes.Text)):
            if not any(isinstance(parent, _AS_IT_IS) for parent in _above(text)):
                parts = scripts(text.astext())
                if len(parts) > 1:
                    text.parent.replace(text, parts)


def scripts(text: str) -> list[nodes.Node]:
    """Return a text as nodes.

    >>> "".join(str(node) for node in scripts("n in R^M"))
    'n in R<superscript>M</superscript>'
    """
    found: list[nodes.Node] = []
    end = 0
    for match in _SCRIPT.finditer(text):
        kind, inner = (nodes.superscript, match[1]) if match[1] else (nodes.subscript, match[2])
        inner = inner[1:-1] if inner[0] in "{" else inner
        if match.start() > end:
            found.append(nodes.Text(text[end : match.start()]))
        found.append(kind("", "", *scripts(inner)))
        end = match.end()
    if end < len(text):
        found.append(nodes.Text(text[end:]))
    return found


def _above(node: nodes.Node) -> list[nodes.Node]:
    found = []
    while node.parent is not None:
        node = node.parent
        found.append(node)
    return found


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    drawn = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="formula">{drawn}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.add_post_transform(Scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
