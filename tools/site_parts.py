"""Parts of the documentation site that Sphinx lacks: MathML without scripts, and plain diagrams."""

import re
from html import unescape
from xml.etree import ElementTree

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math import latex2mathml

FORWARD = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
TAG = re.compile(r"\\tag\{([^}]*)\}")  # the number of an equation, as the papers have it
MATHML = "http://www.w3.org/1998/Math/MathML"
ENTITY = re.compile(r"&(?!amp|lt|gt|quot|apos)\w+;")  # those that XML does not know
ACCENTS = "˙¨˚¯^"
CODE = re.compile(r"(?<![`:\w])`([^`\n]+)`(?!`)")


def _mathml(text, display):
    """Browsers draw MathML by themselves: no script, no fonts, nothing to load."""
    block = "\\begin{aligned}" + text + "\\end{aligned}" if display and "\\\\" in text else text
    tree = latex2mathml.tex2mathml(block, as_block=display)
    return indices_beside(tree if isinstance(tree, str) else tree.toxml())


def indices_beside(mathml):
    """The i of a dotted q stands beside it: docutils would write it below, as of a sum."""
    ElementTree.register_namespace("", MATHML)
    root = ElementTree.fromstring(ENTITY.sub(lambda found: unescape(found[0]), mathml))
    for both in root.iter(f"{{{MATHML}}}munderover"):
        base, index, accent = both
        if accent.text in ACCENTS:
            dotted = ElementTree.Element(f"{{{MATHML}}}mover", accent="true")
            dotted.extend([base, accent])
            both.tag, both[:] = f"{{{MATHML}}}msub", [dotted, index]
    return ElementTree.tostring(root, encoding="unicode")


def inline_mathml(translator, node):
    translator.body.append(_mathml(node.astext(), display=False))
    raise nodes.SkipNode


def display_mathml(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    number = TAG.search(node.astext())
    translator.body.append(_mathml(TAG.sub("", node.astext()), display=True))
    if number:
        translator.body.append(f'<span class="eqno">({number[1]})</span>')
    translator.body.append("</div>")
    raise nodes.SkipNode


class Mermaid(Directive):
    """A diagram as the text it is: drawing it would take a script from elsewhere."""

    has_content = True

    def run(self):
        text = "\n".join(self.content)
        return [nodes.literal_block(text, text, language="text")]


def as_markup(app, what, name, obj, options, lines):
    """Docstrings write `name` for code and |phi| for sizes; reStructuredText means others by it."""
    for i, line in enumerate(lines):
        parts = CODE.sub(r"``\1``", line).split("``")
        parts[::2] = [text.replace("|", "\\|").replace("*", "\\*") for text in parts[::2]]
        lines[i] = "``".join(parts)


def signature_by_names(app, what, name, obj, options, signature, result):
    """Names of types inside unions, which autodoc shows as TypeAliasForwardRef('Name')."""
    return tuple(text and FORWARD.sub(r"\1", text) for text in (signature, result))
