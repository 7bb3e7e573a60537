"""Starts the node of a colcon install space and asks it to describe its model.

try_install_space.py INSTALL_FOLDER, run by the Python that the workspace was built with. Fails
unless the answer is right and all code of rbda_ros comes from the install space.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import yaml

URDF = """<robot name="pendulum">
  <link name="base"/>
  <joint name="hinge" type="continuous">
    <parent link="base"/> <child link="rod"/> <axis xyz="0 1 0"/>
  </joint>
  <link name="rod">
    <inertial>
      <origin xyz="0 0 -0.5"/> <mass value="2"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
</robot>
"""
SECONDS_TO_ANSWER = 60


def install_space_environment(install):
    """The environment after sourcing setup.sh, with the libraries of the ROS wheels behind it."""
    source = '. "$0/setup.sh" && exec env -0'
    pairs = subprocess.check_output(["sh", "-c", source, install], text=True).split("\0")
    env = dict(pair.split("=", 1) for pair in pairs if pair)
    # The wheels would add their libraries themselves, but in no certain order, and the environment
    # has another build of rbda_ros, that of pip.
    wheels = Path(sysconfig.get_path("purelib")).glob("ros_*.libs")
    folders = [env["LD_LIBRARY_PATH"], f"{sys.prefix}/lib", *map(str, wheels)]
    env["LD_LIBRARY_PATH"] = os.pathsep.join(folders)
    env["_ROS_WHEELS_BOOTSTRAP_COMPLETE"] = "1"
    env["ROS_DOMAIN_ID"] = str(100 + os.getpid() % 100)
    env["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    return env


def describe_model(node_process):
    """The node's answer, from this process."""
    import rclpy
    from rbda_ros.srv import DescribeModel
    from rclpy.executors import SingleThreadedExecutor

    deadline = time.monotonic() + SECONDS_TO_ANSWER
    rclpy.init()
    node = rclpy.create_node("try_install_space")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    client = node.create_client(DescribeModel, "/dynamics/describe_model")
    while time.monotonic() < deadline:
        if node_process.poll() is not None:
            sys.exit(f"The node ended by itself with exit code {node_process.returncode}.")
        if not client.wait_for_service(1.0):
            continue
        future = client.call_async(DescribeModel.Request())
        asked = time.monotonic()
        while not future.done() and time.monotonic() < asked + 5.0:
            executor.spin_once(0.1)
        if future.done() and future.result().success:
            return future.result()
        time.sleep(0.1)  # there, but not configured yet
    sys.exit(f"The node gave no description within {SECONDS_TO_ANSWER} s.")


def libraries(process_id):
    """The shared libraries of rbda_ros that a process has loaded."""
    lines = Path(f"/proc/{process_id}/maps").read_text().splitlines()
    return {line.split()[-1] for line in lines if "rbda_ros" in Path(line.split()[-1]).name}


def main(install):
    prefix = install.resolve() / "rbda_ros"
    program = prefix / "lib" / "rbda_ros" / "dynamics"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as parameters:
        yaml.safe_dump({"/**": {"ros__parameters": {"robot_description": URDF}}}, parameters)
        parameters.flush()
        process = subprocess.Popen([program, "--ros-args", "--params-file", parameters.name])
        try:
            answer = describe_model(process)
            loaded = libraries(process.pid) | libraries(os.getpid())
        finally:
            process.terminate()
            try:
                code = process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                sys.exit("The node did not end when told to.")
    foreign = {path for path in loaded if not path.startswith(f"{prefix}/")}
    if foreign or not loaded:
        sys.exit(f"Code from outside the install space: {sorted(foreign)}")
    if (answer.robot_name, list(answer.joint_names)) != ("pendulum", ["hinge"]):
        sys.exit(f"Not the model that was given: {answer}")
    if code != 0:
        sys.exit(f"The node ended with exit code {code}.")
    print(f"The node describes {answer.robot_name}: {answer.joint_names}")


if __name__ == "__main__":
    if sys.argv[2:] == ["--inside"]:
        main(Path(sys.argv[1]))
    else:
        environment = install_space_environment(sys.argv[1])
        os.execve(sys.executable, [sys.executable, __file__, sys.argv[1], "--inside"], environment)
