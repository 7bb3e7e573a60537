"""A node that passes joint states on, and no more: what the middleware takes by itself."""

import rclpy
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("echo")
    publisher = node.create_publisher(JointState, "echo", 10)
    node.create_subscription(JointState, "shout", publisher.publish, qos_profile_sensor_data)
    rclpy.spin(node)


if __name__ == "__main__":
    main()
