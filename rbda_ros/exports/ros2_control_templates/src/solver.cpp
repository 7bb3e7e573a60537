// Inverse dynamics in joint space, for inverse_dynamics_solver of unisa-acg. Not for a real-time
// loop: its interface returns vectors that are allocated.
#include <array>
#include <stdexcept>
#include <string>

#include "inverse_dynamics_solver/inverse_dynamics_solver.h"
#include "pluginlib/class_list_macros.hpp"

extern "C" {
#include "myrobot.h"
}
#include "linkage.hpp"

namespace myrobot_control
{
class Solver : public inverse_dynamics_solver::InverseDynamicsSolver
{
public:
  void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr,
                  const std::string &, const std::string &) override
  {
    myrobot_init(&workspace_);
  }

  Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd &position) const override
  {
    const Eigen::VectorXd still = Eigen::VectorXd::Zero(MYROBOT_JOINTS);
    const Eigen::VectorXd weight = getGravityVector(position);
    Eigen::MatrixXd inertia(MYROBOT_JOINTS, MYROBOT_JOINTS);
    for (int k = 0; k < MYROBOT_JOINTS; k++) {
      const Eigen::VectorXd unit = Eigen::VectorXd::Unit(MYROBOT_JOINTS, k);
      inertia.col(k) = getTorques(position, still, unit) - weight;
    }
    return inertia;
  }

  Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd &position,
                                    const Eigen::VectorXd &velocity) const override
  {
    const Eigen::VectorXd none = Eigen::VectorXd::Zero(MYROBOT_JOINTS);
    return getTorques(position, velocity, none) - getGravityVector(position);
  }

  Eigen::VectorXd getGravityVector(const Eigen::VectorXd &position) const override
  {
    const Eigen::VectorXd none = Eigen::VectorXd::Zero(MYROBOT_JOINTS);
    return getTorques(position, none, none);
  }

  // The exported dynamics have no friction.
  Eigen::VectorXd getFrictionVector(const Eigen::VectorXd &) const override
  {
    return Eigen::VectorXd::Zero(MYROBOT_JOINTS);
  }

  Eigen::VectorXd getTorques(const Eigen::VectorXd &position, const Eigen::VectorXd &velocity,
                             const Eigen::VectorXd &acceleration) const override
  {
    if (position.size() != MYROBOT_JOINTS || velocity.size() != MYROBOT_JOINTS
        || acceleration.size() != MYROBOT_JOINTS) {
      throw std::invalid_argument("myrobot_control: give " + std::to_string(MYROBOT_JOINTS)
                                  + " numbers each");
    }
    Eigen::VectorXd torques(MYROBOT_JOINTS);
    myrobot_status status = compute(position, velocity, acceleration, torques);
    if (status != MYROBOT_OK) { // far from the last position: from the assembly
      myrobot_init(&workspace_);
      status = compute(position, velocity, acceleration, torques);
    }
    if (status != MYROBOT_OK) throw std::domain_error(myrobot_status_texts[status]);
    return torques;
  }

private:
  myrobot_status compute(const Eigen::VectorXd &position, const Eigen::VectorXd &velocity,
                         const Eigen::VectorXd &acceleration, Eigen::VectorXd &torques) const
  {
    std::array<double, MYROBOT_MOTORS> motor_position, motor_velocity, efforts;
    std::array<double, MYROBOT_NY> independent;
    myrobot_status status = independent_acceleration(&workspace_, position.data(), velocity.data(),
                                                     acceleration.data(), independent.data());
    if (status == MYROBOT_OK) {
      status =
          myrobot_joints_to_motors(&workspace_, position.data(), velocity.data(), nullptr, nullptr,
                                   motor_position.data(), motor_velocity.data(), nullptr, nullptr);
    }
    if (status == MYROBOT_OK) {
      status = myrobot_feedforward(&workspace_, motor_position.data(), motor_velocity.data(),
                                   independent.data(), nullptr, efforts.data());
    }
    if (status == MYROBOT_OK) {
      status = myrobot_motors_to_joints(&workspace_, motor_position.data(), nullptr, nullptr,
                                        efforts.data(), nullptr, nullptr, nullptr, torques.data());
    }
    return status;
  }

  mutable myrobot_workspace workspace_;
};
} // namespace myrobot_control

PLUGINLIB_EXPORT_CLASS(myrobot_control::Solver, inverse_dynamics_solver::InverseDynamicsSolver)
