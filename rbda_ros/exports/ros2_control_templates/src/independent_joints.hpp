// Accelerations of the robot's independent joints, which its dynamics are written in.
#pragma once

#include <array>

namespace myrobot_control
{
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
