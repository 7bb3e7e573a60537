"""Recordings: bags labelled with the node's messages, and parameters identified from bags.

Lives here: bags in and out, labels by the state machine of `control`, tables of samples, many files
on many cores or machines, identification, and motions for it.
Comes in: `robot` and `control`; no rclpy, no running ROS.
Used from outside: `label_file.label_file`, `fleet.label_all`, by the command line.
"""
