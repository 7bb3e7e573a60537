"""The SROS2 policy says exactly what the node offers and uses."""

from contextlib import suppress

from lxml import etree
from sensor_msgs.msg import JointState

from rbda_ros.demo.resources import share_file

POLICY = "config/security/dynamics.policy.xml"
JOINTS = ["hip_abduction", "hip_flexion", "knee", "ankle"]
RULES = {
    ("topics", "publish"): "get_publisher_names_and_types_by_node",
    ("topics", "subscribe"): "get_subscriber_names_and_types_by_node",
    ("services", "reply"): "get_service_names_and_types_by_node",
    ("services", "request"): "get_client_names_and_types_by_node",
}


def allowed(profile, kind, rule):
    """Full names that a profile allows; names as ROS resolves them."""
    namespace, node = profile.get("ns").rstrip("/"), profile.get("node")
    names = set()
    for rules in profile.findall(kind):
        if rules.get(rule) == "ALLOW":
            for element in rules:
                if element.tag is not etree.Comment:
                    name = element.text.replace("~", f"{namespace}/{node}")
                    names.add(name if name.startswith("/") else f"{namespace}/{name}")
    return names


def test_policy_names_exactly_what_the_node_has(graph):
    graph.serve(
        robot_description=share_file("config/robots/demo_leg.urdf").read_text(),
        loop_constraints=str(share_file("config/robots/demo_leg_loops.yaml")),
        command_joints=["knee_rotor"],
        command_source="joint_commands",
        publish_external_effort=True,
        contact_end_effector="foot",
        joint_state_timeout=0.0,
        use_sim_time=True,
    )
    client = graph.client()
    client.until_active()
    states = client.publisher(JointState, "joint_states")
    message = client.joint_states(JOINTS, [0.0, 0.3, 0.9, 0.0], [0.0] * 4)

    def commands():
        states.publish(message)
        return client.node.count_publishers("/dynamics/effort_commands")

    client.until(commands)  # it is there from the first command on
    profiles = etree.parse(share_file(POLICY)).findall("enclaves/enclave/profiles/profile")
    assert {(p.get("ns"), p.get("node")) for p in profiles} == {
        (namespace, name)
        for name, namespace in client.node.get_node_names_and_namespaces()
        if name != client.node.get_name()
    }
    asked = {(p, kind, rule): allowed(p, kind, rule) for p in profiles for kind, rule in RULES}

    def live(profile, kind, rule):
        ask = getattr(client.node, RULES[kind, rule])
        return {name for name, _ in ask(profile.get("node"), profile.get("ns"))}

    with suppress(AssertionError):  # discovery
        client.until(lambda: all(live(*rule) == names for rule, names in asked.items()))
    client.spin(0.5)  # in case there is more
    for (profile, kind, rule), names in asked.items():
        assert live(profile, kind, rule) == names, (profile.get("node"), kind, rule)
