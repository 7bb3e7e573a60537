"""Recordings: what the node would have answered to months of bags, and models that learn from them.

Lives here: bags in and out, labels by the very code that answers the node's stream, tables of
samples, many files on many cores or machines, identification and what excites it.
Comes in: `robot`, and of the node what decides about messages; no rclpy, no running ROS.
Used from outside: `label_file.label_file`, `fleet.label_all`, by the command line.
"""
