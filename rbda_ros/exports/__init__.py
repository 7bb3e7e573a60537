"""A robot as files for other programs: C99 that closes loops, checks and computes.

`export_robot` writes the C library of `rbda_ros export-c`. It may import `robot`, `control` and
what is below them, and no ROS. Others use what is named here.
"""

from rbda_ros.exports.c_library import ExportReport, export_robot

__all__ = ["ExportReport", "export_robot"]
