"""The reference is complete: every refusal and error message has a cause and a remedy."""

import re
from pathlib import Path

import messages
import reference
import yaml

import rbda_ros.node.diagnostics
import rbda_ros.node.slow_services
from rbda_ros.control.rejections import Reason

KEY = re.compile(r'^ +(?:values\[)?"([a-z][^"]*)"\]?(?::| =) ', re.MULTILINE)
README = Path("README.md").read_text()


def test_every_message_says_what_to_do():
    silent = [f"{m.module}: {m.cause}" for m in messages.messages() if not m.remedy]
    assert not silent, f"say what to change after a semicolon, or in {messages.REMEDIES.name}"


def test_no_remedy_is_left_over():
    assert not messages.unused_remedies()


def test_every_kind_of_message_is_found():
    """Of a table of messages, each written in another way in the sources."""
    texts = [message.cause for message in messages.messages()]
    for part in (
        "they leave no freedom to",  # Problem(...), its remedy apart
        "type … is unknown (…)",  # report.problem(...)
        "q does not satisfy the loops: residual …",  # raise InputError(f"...")
        "does not close: … is left",  # raise ClosureError(_failure(...))
        "is no vector",  # a remedy in a variable
    ):
        assert any(part in text for text in texts), part


def test_every_refusal_is_told():
    told = yaml.safe_load(reference.REFUSALS.read_text())
    assert set(told) == {reason.value for reason in Reason}
    assert all(entry["cause"] and entry["remedy"] for entry in told.values())


def test_every_package_with_messages_has_a_section():
    assert reference.packages_with_messages() <= set(reference.PACKAGES)
    page = reference.errors()
    for message in messages.messages():
        assert reference._cell(message.cause) in page


def test_the_api_page_has_all_that_is_exported_and_all_of_it_has_docstrings():
    page = reference.api()
    for name in rbda_ros.__all__:
        assert f"rbda_ros.{name}\n" in page
        assert getattr(rbda_ros, name).__doc__


def test_every_field_of_every_interface_has_a_comment():
    page = reference.interfaces()
    for path in [*Path("msg").glob("*.msg"), *Path("srv").glob("*.srv")]:
        assert path.read_text().rstrip() in page
        assert "#" in path.read_text()


def test_every_diagnostic_is_explained():
    sources = [rbda_ros.node.diagnostics, rbda_ros.node.slow_services]
    keys = {key for each in sources for key in KEY.findall(Path(each.__file__).read_text())}
    assert {"rate [Hz]", "requests waiting", "contact"} <= keys
    table = Path("docs/hardware.md").read_text()
    for key in keys:
        assert f"`{re.split(r', | of ', key)[0]}" in table, key


def test_every_method_of_the_tasks_exists():
    rows = [
        line for line in Path("docs/tasks.md").read_text().splitlines() if line.startswith("| ")
    ]
    names = {name for row in rows[1:] for name in re.findall(r"`(\w+)`", row.split("|")[2])}
    assert len(names) > 30
    missing = {n for n in names if not hasattr(rbda_ros.Robot, n) and n not in rbda_ros.__all__}
    assert not missing
