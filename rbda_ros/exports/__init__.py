"""A robot as files for other programs: C99 that closes loops, checks and computes, and MJCF.

`export_robot` writes the C library of `rbda_ros export-c`, `export_ros2_control` the package of
`rbda_ros export-ros2-control`, `write_mjcf` the MJCF of `rbda_ros convert`, `serial_tree` what
`--serial` writes. It may import `robot`,
`control` and what is below them, and no ROS. Others use what is named here.
"""

from rbda_ros.exports.c_library import ExportReport, export_robot
from rbda_ros.exports.mjcf_writer import MjcfExport, closed_poses, write_mjcf
from rbda_ros.exports.ros2_control_package import PackageReport, export_ros2_control
from rbda_ros.exports.serial_tree import SerialTree, serial_tree

__all__ = [
    "ExportReport",
    "MjcfExport",
    "PackageReport",
    "SerialTree",
    "closed_poses",
    "export_robot",
    "export_ros2_control",
    "serial_tree",
    "write_mjcf",
]
