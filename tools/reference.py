"""The reference of the site, generated from the sources: API, interfaces, parameters, errors.

`write` is called by docs/conf.py. The pages are in docs/reference, and not committed.
"""

from dataclasses import fields
from pathlib import Path

import messages
import yaml

ROOT = Path(__file__).resolve().parents[1]
REFUSALS = ROOT / "docs" / "reference" / "refusals.yaml"
PACKAGES = {
    "description": "Descriptions: URDF, MJCF, loop files",
    "cluster_tree": "Loops",
    "engine": "Installation of the engine",
    "kernels": "Kernels",
    "robot": "Python API",
    "control": "The stream",
    "simulation": "Simulation",
    "node": "The node",
    "recordings": "Recordings",
    "view": "The page in the browser",
    "exports": "Files for other programs: C, MJCF",
    "cli": "Command line",
    "demo": "Demo",
}


def write(docs):
    """Write the pages that changed."""
    pages = {
        "api": api(),
        "interfaces": interfaces(),
        "parameters": parameters(),
        "errors": errors(),
    }
    for name, text in pages.items():
        page = docs / "reference" / f"{name}.md"
        if not page.is_file() or page.read_text() != text:
            page.write_text(text)


def api():
    """Everything that `import rbda_ros` gives."""
    import rbda_ros

    functions = [n for n in rbda_ros.__all__ if not isinstance(getattr(rbda_ros, n), type)]
    classes = [n for n in rbda_ros.__all__ if isinstance(getattr(rbda_ros, n), type)]
    problems = [n for n in classes if issubclass(getattr(rbda_ros, n), Exception)]
    data = [n for n in classes if n not in problems and n != "Robot"]
    lines = ["# Python API", "", "Everything here is imported from `rbda_ros` itself."]
    lines += ["", "## Loading", "", *_rst(f".. autofunction:: rbda_ros.{n}" for n in functions)]
    members = ["   :members:", "   :inherited-members:"]
    lines += ["", "## Robot", "", *_rst([".. autoclass:: rbda_ros.Robot", *members])]
    for title, names in (("Data", data), ("Errors", problems)):
        lines += ["", f"## {title}"]
        for name in names:
            known = "   :members:" if name not in problems else ""
            lines += ["", *_rst([f".. autoclass:: rbda_ros.{name}", known])]
    return "\n".join(lines) + "\n"


def _rst(lines):
    return ["```{eval-rst}", *lines, "```"]


def interfaces():
    """Messages and services with their fields and comments, as they are written."""
    lines = [
        "# Messages and services",
        "",
        "As in `msg/` and `srv/`; above `---` is the request, below it the response.",
    ]
    for folder, title in (("srv", "Services"), ("msg", "Messages")):
        lines += ["", f"## {title}"]
        for path in sorted((ROOT / folder).glob(f"*.{folder}")):
            heading = f"### rbda_ros/{folder}/{path.stem}"
            lines += ["", heading, "", "```text", path.read_text().rstrip(), "```"]
    return "\n".join(lines) + "\n"


def parameters():
    """Every parameter of the node with its type, default, range and description."""
    from rbda_ros.node import parameters as declared

    lines = [
        "# Parameters",
        "",
        "Of the node `dynamics`. [config/dynamics.yaml](../../config/dynamics.yaml) has them all"
        " with their defaults, to be copied and changed. What is refused is refused whole, with the"
        " reason, and nothing changes.",
        "",
        "| parameter | type | default | meaning |",
        "|---|---|---|---|",
    ]
    for field in fields(declared.Settings):
        descriptor = declared.DESCRIPTORS[field.name]
        text = f"{descriptor.description} {descriptor.additional_constraints}".strip()
        for bounds in (*descriptor.floating_point_range, *descriptor.integer_range):
            text += f" From {bounds.from_value:g} to {bounds.to_value:g}."
        if descriptor.read_only:
            text += " Read-only."
        kind, default = _typed(field.default)
        lines.append(f"| `{field.name}` | {kind} | `{default}` | {_cell(text)} |")
    return "\n".join(lines) + "\n"


def _typed(default):
    """Type and value as ROS writes them."""
    names = {bool: "bool", int: "integer", float: "double", str: "string"}
    if isinstance(default, tuple):
        inner = names[type(default[0])] if default else "string"
        return f"{inner}[]", yaml.safe_dump(list(default), default_flow_style=True).strip()
    if isinstance(default, bool):
        return "bool", str(default).lower()
    return names[type(default)], f'"{default}"' if isinstance(default, str) else repr(default)


def errors():
    """Every refusal of the stream and every error message, with cause and remedy."""
    from rbda_ros.control.rejections import Reason

    told = yaml.safe_load(REFUSALS.read_text())
    lines = [
        "# Rejections and errors",
        "",
        "## Rejected input",
        "",
        "Input for which the node publishes no effort. Diagnostics count each as"
        " `refused: <reason>`, and `last refusal` has its message.",
        "",
        "| reason | cause | remedy |",
        "|---|---|---|",
    ]
    for reason in Reason:
        entry = told[reason.value]
        lines.append(f"| {reason.value} | {_cell(entry['cause'])} | {_cell(entry['remedy'])} |")
    lines += [
        "",
        "## Error messages",
        "",
        "By the part of the program that they come from; … stands for what is filled in, such as"
        " the name of a joint. A `DescriptionError` lists every problem of a file at once.",
    ]
    found = messages.messages()
    for package, title in PACKAGES.items():
        own = [m for m in found if m.module.split(".")[1] == package]
        if own:
            lines += ["", f"### {title}", "", "| message | class | what to do |", "|---|---|---|"]
            lines += [
                f"| {_cell(m.cause)} | `{m.error}` | {_cell(m.remedy)} |"
                for m in sorted(own, key=lambda m: m.cause.lstrip("…: "))
            ]
    return "\n".join(lines) + "\n"


def _cell(text):
    """Text for one cell of a table; marks of Markdown and HTML stand for themselves."""
    for mark in ("\\", "|", "<", "[", "*", "_", "`", "$"):
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def packages_with_messages():
    """Packages that have messages; for the test that holds `PACKAGES` complete."""
    return {message.module.split(".")[1] for message in messages.messages()}
