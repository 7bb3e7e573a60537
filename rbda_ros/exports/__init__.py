"""A robot as files for other programs: C99 that closes loops, checks and computes.

`export_robot` writes the C library of `rbda_ros export-c`, `export_ros2_control` the package of
`rbda_ros export-ros2-control`. It may import `robot`, `control` and
what is below them, and no ROS. Others use what is named here.
"""

from rbda_ros.exports.c_library import ExportReport, export_robot
from rbda_ros.exports.ros2_control_package import PackageReport, export_ros2_control

__all__ = ["ExportReport", "PackageReport", "export_robot", "export_ros2_control"]
