"""A leg with Tello's differentials, exactly and without them."""

from __future__ import annotations

from pathlib import Path

from lxml import etree

from rbda_ros import Robot, load_robot

MECHANISMS = Path(__file__).resolve().parents[2] / "test" / "mechanisms"


def tello_leg() -> tuple[Robot, Robot]:
    """The leg of the tests on a floating base, and the same without its motors' wheels."""
    urdf = (MECHANISMS / "tello_leg.urdf").read_text()
    exact = load_robot(urdf, MECHANISMS / "tello_leg.yaml", floating_base=True)
    root = etree.fromstring(urdf.encode())
    wheels = {
        j.find("child").get("link") for j in root.findall("joint") if "rotor" in j.get("name")
    }
    for element in list(root):
        name = element.get("name") if element.tag == "link" else None
        child = element.find("child").get("link") if element.tag == "joint" else None
        if {name, child} & wheels:
            root.remove(element)
    return exact, load_robot(etree.tostring(root).decode(), floating_base=True)
