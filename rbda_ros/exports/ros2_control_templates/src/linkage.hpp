// Steps that the plugins share: motors to joints with a second try, and accelerations of the robot's
// independent joints, which its dynamics are written in.
#pragma once

#include <array>

namespace myrobot_control
{
// Joints from motors, from the last position; where the loops do not close from there, e.g. after
// a dead point or a jump, from the assembly.
inline myrobot_status joints_from_motors(myrobot_workspace *workspace, const double *position,
                                         const double *velocity, const double *effort,
                                         double *joint_position, double *joint_velocity,
                                         double *joint_effort)
{
  myrobot_status status =
      myrobot_motors_to_joints(workspace, position, velocity, nullptr, effort, joint_position,
                               joint_velocity, nullptr, joint_effort);
  if (status == MYROBOT_NOT_CLOSED) {
    std::array<double, MYROBOT_NQ> last;
    for (std::size_t k = 0; k < last.size(); k++) {
      last[k] = workspace->q[k];
      workspace->q[k] = myrobot_assembly[k];
    }
    status = myrobot_motors_to_joints(workspace, position, velocity, nullptr, effort,
                                      joint_position, joint_velocity, nullptr, joint_effort);
    if (status != MYROBOT_OK) {
      for (std::size_t k = 0; k < last.size(); k++) workspace->q[k] = last[k];
    }
  }
  return status;
}

// Of each independent joint: its place among the joints, or -1 - its place among the motors.
constexpr std::array<int, MYROBOT_NY> kIndependent = {INDEPENDENT_PLACES};

// From position, velocity and acceleration of the joints; `workspace` keeps the closed position.
inline myrobot_status independent_acceleration(myrobot_workspace *workspace, const double *position,
                                               const double *velocity, const double *acceleration,
                                               double *independent)
{
  std::array<double, MYROBOT_MOTORS> motors;
  const myrobot_status status =
      myrobot_joints_to_motors(workspace, position, velocity, acceleration, nullptr, nullptr,
                               nullptr, motors.data(), nullptr);
  if (status != MYROBOT_OK) return status;
  for (std::size_t k = 0; k < kIndependent.size(); k++) {
    const int place = kIndependent[k];
    independent[k] =
        place >= 0 ? acceleration[place] : motors[static_cast<std::size_t>(-1 - place)];
  }
  return MYROBOT_OK;
}
} // namespace myrobot_control
