"""The robot in the browser: `rbda_ros view`.

Lives here: where the sliders take the robot and other branches of its loops (`posing`), its
conditioning along a slider (`sweep`), what is drawn (`shapes` of `forms`, `loop_lines`), how
(`drawn_bodies`, `scene`), the panel beside it, the page of both, and `following`, which listens to
a running node.
Comes in: `robot` and what is below it. viser is imported where it is used, as it is an optional
extra; rclpy by `following` alone.
Used from outside: `page.Page`, by the command line.
"""
