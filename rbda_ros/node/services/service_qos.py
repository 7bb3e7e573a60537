"""How deep the queues of services are: a burst of requests must not push each other out."""

from rclpy.qos import QoSProfile, qos_profile_services_default

SERVICE_DEPTH = 200
"""Requests, or responses, that the middleware keeps until they are taken: by default it is 10."""

SERVICE_QOS = QoSProfile(
    depth=SERVICE_DEPTH,
    history=qos_profile_services_default.history,
    reliability=qos_profile_services_default.reliability,
    durability=qos_profile_services_default.durability,
)
