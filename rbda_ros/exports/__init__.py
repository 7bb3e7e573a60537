"""A robot as files for other programs.

`write_mjcf` writes MJCF for MuJoCo. It may import `robot`, `control` and what is below them, and
no ROS. Others use what is named here.
"""

from rbda_ros.exports.mjcf_writer import MjcfExport, closed_poses, write_mjcf

__all__ = ["MjcfExport", "closed_poses", "write_mjcf"]
