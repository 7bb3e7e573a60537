"""Inverse dynamics from a request in place to the response in place, all in machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rbda_ros.kernels.compile import Code
from rbda_ros.kernels.entry import builtin, python_function
from rbda_ros.kernels.llvm_text import at_address, literal
from rbda_ros.node.services.c_messages import Many
from rbda_ros.robot import Robot
from rbda_ros.robot.inputs import UNIT

IR = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)
declare double @llvm.fabs.f64(double)

define ptr @answer(ptr %self, ptr %arguments, i64 %count) nounwind {{
  %position = alloca [{most} x double], align 64
  %velocity = alloca [{most} x double], align 64
  %acceleration = alloca [{most} x double], align 64
  %tau = alloca [{most} x double], align 64
  %positions = load i64, ptr {positions}
  %velocities = load i64, ptr {velocities}
  %accelerations = load i64, ptr {accelerations}
  %wrenches = load i64, ptr {wrenches}
  %efforts = load i64, ptr {efforts}
  %all_positions = icmp eq i64 %positions, {joints}
  %all_velocities = icmp eq i64 %velocities, {joints}
  %no_velocities = icmp eq i64 %velocities, 0
  %right_velocities = or i1 %all_velocities, %no_velocities
  %all_accelerations = icmp eq i64 %accelerations, {joints}
  %no_accelerations = icmp eq i64 %accelerations, 0
  %right_accelerations = or i1 %all_accelerations, %no_accelerations
  %no_wrenches = icmp eq i64 %wrenches, 0
  %all_efforts = icmp eq i64 %efforts, {actuated}
  %a = and i1 %all_positions, %right_velocities
  %b = and i1 %right_accelerations, %no_wrenches
  %c = and i1 %a, %b
  %right_sizes = and i1 %c, %all_efforts
  br i1 %right_sizes, label %look, label %no
look:
  %q = load <4 x double>, ptr {orientation}, align 8
  %squares = fmul <4 x double> %q, %q
  %square = call double @llvm.vector.reduce.fadd.v4f64(double -1.0, <4 x double> %squares)
  %off = call double @llvm.fabs.f64(double %square)
  %unit = fcmp ole double %off, {unit}
  %right_pose = or i1 %unit, {fixed_base}
  br i1 %right_pose, label %solve, label %no
solve:
  %joint_position = getelementptr i8, ptr %position, i64 {pose_bytes}
  %joint_velocity = getelementptr i8, ptr %velocity, i64 {twist_bytes}
  %joint_acceleration = getelementptr i8, ptr %acceleration, i64 {twist_bytes}
  %given_position = load ptr, ptr {position}
  %some_velocity = load ptr, ptr {velocity}
  %some_acceleration = load ptr, ptr {acceleration}
  %given_velocity = select i1 %no_velocities, ptr {zeros}, ptr %some_velocity
  %given_acceleration = select i1 %no_accelerations, ptr {zeros}, ptr %some_acceleration
  call void {copy}(ptr %position, ptr {base_pose}, i64 {pose_bytes}, i1 false)
  call void {copy}(ptr %velocity, ptr {base_twist}, i64 {twist_bytes}, i1 false)
  call void {copy}(ptr %acceleration, ptr {base_acceleration}, i64 {twist_bytes}, i1 false)
  call void {copy}(ptr %joint_position, ptr %given_position, i64 {joint_bytes}, i1 false)
  call void {copy}(ptr %joint_velocity, ptr %given_velocity, i64 {joint_bytes}, i1 false)
  call void {copy}(ptr %joint_acceleration, ptr %given_acceleration, i64 {joint_bytes}, i1 false)
  %effort = load ptr, ptr {effort}
  %good = call zeroext i1 {solve}(
    ptr %position, ptr %velocity, ptr %acceleration, ptr %tau, ptr %effort)
  call void {copy}(ptr {base_wrench}, ptr %tau, i64 {twist_bytes}, i1 false)
  br i1 %good, label %yes, label %no
yes:
  call void {incref}(ptr {true})
  ret ptr {true}
no:
  call void {incref}(ptr {false})
  ret ptr {false}
}}
"""


def native_answer(robot: Robot, request: Any, response: Any) -> Callable[[], bool]:
    """Make a function that computes efforts and base wrench of a response; it says if it could.

    It does for the independent joints in model order, whatever the request names, and without
    external wrenches. To make it takes as long as kernels take to compile.

    Args:
        robot: the model.
        request: an InverseDynamics request in place.
        response: its response in place, with as many efforts as this robot has.
    """
    native, joints = robot.native_inverse_dynamics(), len(robot.independent_joint_names)
    floating = robot.floating_base
    layout = robot.coordinates
    if native is None or native.positions != joints + layout.base_nq:
        return lambda: False  # a joint has a quaternion, which State has no place for
    zeros, code, state = np.zeros(joints), Code(), request.state
    addresses = {
        "orientation": ctypes.addressof(state.base_pose.orientation),
        "base_pose": ctypes.addressof(state.base_pose),
        "base_twist": ctypes.addressof(state.base_twist),
        "base_acceleration": ctypes.addressof(request.base_acceleration),
        "base_wrench": ctypes.addressof(response.base_wrench),
        **_array("position", "positions", state._position),
        **_array("velocity", "velocities", state._velocity),
        **_array("acceleration", "accelerations", request._acceleration),
        **_array("wrench", "wrenches", request._external_wrenches),
        **_array("effort", "efforts", response._effort),
        "zeros": zeros.ctypes.data,
        "solve": native.address,
        "true": id(True),
        "false": id(False),
    }
    ir = IR.format(
        joints=joints,
        actuated=len(robot.actuated_joint_names),
        most=joints + 7,
        joint_bytes=8 * joints,
        pose_bytes=8 * layout.base_nq,
        twist_bytes=8 * layout.base_nv,
        fixed_base="false" if floating else "true",
        unit=literal(UNIT),
        copy="@llvm.memcpy.p0.p0.i64",
        incref=python_function("Py_IncRef"),
        **{name: at_address(address) for name, address in addresses.items()},
    )
    (address,) = code.add({"answer": ir})
    # The function keeps its `otherwise` alive, and that what the machine code uses.
    in_use = native, zeros, code, request, response
    return builtin("answer", address, partial(_no, in_use))


def _no(in_use: Any) -> bool:
    return False


def _array(data: str, size: str, many: Many) -> dict[str, int]:
    """Where the pointer to an array is, and its size."""
    here = ctypes.addressof(many)
    return {data: here, size: here + Many.size.offset}
