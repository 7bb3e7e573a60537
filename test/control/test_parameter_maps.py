"""Numbers by joint name, as parameters have them."""

import pytest

from rbda_ros.control.settings import joint_gains


def test_reads_numbers_by_name():
    assert joint_gains("stiffness", "{knee: 80, ankle: 3.5}") == {"knee": 80.0, "ankle": 3.5}
    assert joint_gains("stiffness", "") == {}
    assert joint_gains("joint_offsets", "{knee: -0.1}", signed=True) == {"knee": -0.1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1.0]", "is no mapping"),
        ("{knee: [", "not YAML"),
        ("{knee: stiff}", "'knee' is stiff"),
        ("{knee: -1}", "'knee' is -1"),
        ("{knee: .nan}", "finite"),
        ("{knee: true}", "finite"),
    ],
)
def test_mistakes_are_named(text, says):
    with pytest.raises(ValueError, match="stiffness") as refused:
        joint_gains("stiffness", text)
    assert says in str(refused.value)
