// A chainable controller: joint-space references in, motor commands out.
//
//   effort = feedforward(measured motion, reference acceleration)
//            + turned into motor efforts: reference effort + K (q* - q) + D (v* - v)
//
// then the gate: limits, rate limit and ramp. Parameters are read at activation. update() allocates
// nothing, takes no lock of its own and does not throw.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "myrobot_control/myrobot_controller_parameters.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/logging.hpp"

extern "C" {
#include "myrobot.h"
}
#include "linkage.hpp"

namespace myrobot_control
{
namespace
{
using controller_interface::CallbackReturn;
using controller_interface::interface_configuration_type;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;

constexpr std::size_t kMotors = MYROBOT_MOTORS;
constexpr std::size_t kJoints = MYROBOT_JOINTS;
constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<const char *, 4> kReferences = {"position", "velocity", "acceleration",
                                                     "effort"};
enum Reference { kPosition, kVelocity, kAcceleration, kEffort };
// What the state interface status/code says beyond the status of the exported code.
constexpr double kNoReference = 100.0;
constexpr double kNoState = 101.0;

std::int64_t nanoseconds(double seconds)
{
  return static_cast<std::int64_t>(seconds * 1e9);
}
} // namespace

class Controller : public controller_interface::ChainableControllerInterface
{
public:
  CallbackReturn on_init() override
  {
    try {
      listener_ = std::make_shared<myrobot_controller::ParamListener>(get_node());
    } catch (const std::exception &error) {
      RCLCPP_ERROR(rclcpp::get_logger("myrobot_control"), "parameters: %s", error.what());
      return CallbackReturn::ERROR;
    }
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    return read_parameters() ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
  }

  InterfaceConfiguration command_interface_configuration() const override
  {
    return interfaces(parameters_.command_interfaces);
  }

  InterfaceConfiguration state_interface_configuration() const override
  {
    return interfaces({hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY});
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    if (!read_parameters()) return CallbackReturn::ERROR;
    myrobot_init(&workspace_);
    workspace_.max_condition_number = parameters_.max_condition_number;
    gate_ = myrobot_gate{};
    gate_.last = last_.data();
    gate_.count = kMotors;
    last_.fill(0.0);
    reference_time_ = 0;
    held_.fill(kAbsent);
    std::fill(reference_interfaces_.begin(), reference_interfaces_.end(), kAbsent);
    const myrobot_status status = measure();
    if (status != MYROBOT_OK) {
      RCLCPP_ERROR(get_node()->get_logger(),
                   "the motors' positions are none of this linkage: %s (the hardware must give"
                   " position and velocity of every motor before this controller is activated)",
                   myrobot_status_texts[status]);
      return CallbackReturn::ERROR;
    }
    return CallbackReturn::SUCCESS;
  }

  // Motors are left without effort.
  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  {
    write_zeros();
    return CallbackReturn::SUCCESS;
  }

protected:
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override
  {
    reference_interfaces_.assign(kJoints * kReferences.size(), kAbsent);
    std::vector<hardware_interface::CommandInterface> exported;
    for (std::size_t k = 0; k < kJoints; k++) {
      for (std::size_t r = 0; r < kReferences.size(); r++) {
        exported.emplace_back(joint_interface(k), kReferences[r],
                              &reference_interfaces_[k * kReferences.size() + r]);
      }
    }
    return exported;
  }

  std::vector<hardware_interface::StateInterface> on_export_state_interfaces() override
  {
    state_interfaces_values_.assign(3 * kJoints + 1, kAbsent);
    std::vector<hardware_interface::StateInterface> exported;
    for (std::size_t k = 0; k < kJoints; k++) {
      exported.emplace_back(joint_interface(k), "position", &state_interfaces_values_[3 * k]);
      exported.emplace_back(joint_interface(k), "velocity", &state_interfaces_values_[3 * k + 1]);
      exported.emplace_back(joint_interface(k), "effort", &state_interfaces_values_[3 * k + 2]);
    }
    exported.emplace_back(std::string(get_node()->get_name()) + "/status", "code",
                          &state_interfaces_values_[3 * kJoints]);
    return exported;
  }

  bool on_set_chained_mode(bool) override
  {
    return true;
  }

  // There is no topic: without a controller above there is no reference, and no effort.
  return_type update_reference_from_subscribers(const rclcpp::Time &,
                                                const rclcpp::Duration &) override
  {
    return return_type::OK;
  }

  return_type update_and_write_commands(const rclcpp::Time &time, const rclcpp::Duration &) override
  {
    const std::int64_t now = time.nanoseconds();
    take_references(now);
    const myrobot_status status = measure();
    double code = status;
    if (status == MYROBOT_OK) {
      code = reference_time_ == 0 || now - reference_time_ > timeout_ ? kNoReference : command();
    } else if (status == MYROBOT_BAD_ARGUMENT) {
      code = kNoState;
    }
    if (code == MYROBOT_OK) {
      myrobot_gate_pass(&gate_, &rules_, now, efforts_.data());
      write_commands();
    } else {
      myrobot_gate_end(&gate_, now);
      write_zeros();
    }
    state_interfaces_values_[3 * kJoints] = code;
    return return_type::OK;
  }

private:
  std::string joint_interface(std::size_t k) const
  {
    return std::string(get_node()->get_name()) + "/" + myrobot_joint_names[k];
  }

  // Motor after motor, and of each the interfaces in the order of `names`.
  InterfaceConfiguration interfaces(const std::vector<std::string> &names) const
  {
    InterfaceConfiguration wanted;
    wanted.type = interface_configuration_type::INDIVIDUAL;
    for (const auto &motor : parameters_.motors) {
      for (const auto &name : names) wanted.names.push_back(motor + "/" + name);
    }
    return wanted;
  }

  bool read_parameters()
  {
    parameters_ = listener_->get_params();
    const auto count = [this](const char *name, std::size_t given, std::size_t wanted) {
      if (given == wanted) return true;
      RCLCPP_ERROR(get_node()->get_logger(), "%s has %zu entries; give %zu", name, given, wanted);
      return false;
    };
    if (!count("motors", parameters_.motors.size(), kMotors)
        || !count("stiffness", parameters_.stiffness.size(), kJoints)
        || !count("damping", parameters_.damping.size(), kJoints)
        || !count("effort_limits", parameters_.effort_limits.size(), kMotors)) {
      return false;
    }
    for (std::size_t k = 0; k < kMotors; k++) {
      const double given = parameters_.effort_limits[k];
      limits_[k] =
          given > 0.0 ? std::fmin(given, myrobot_effort_limits[k]) : myrobot_effort_limits[k];
      if (!std::isfinite(limits_[k])) {
        RCLCPP_WARN(get_node()->get_logger(),
                    "%s has no effort limit in the description: near a dead point its effort grows"
                    " without bound; give effort_limits",
                    parameters_.motors[k].c_str());
      }
    }
    rules_ = {limits_.data(), parameters_.effort_rate, nanoseconds(parameters_.ramp_time),
              nanoseconds(parameters_.ramp_after_pause)};
    timeout_ = nanoseconds(parameters_.reference_timeout);
    return true;
  }

  // A reference counts for `reference_timeout`; it is taken once, so that silence shows.
  void take_references(std::int64_t now)
  {
    bool fresh = false;
    for (std::size_t k = 0; k < held_.size(); k++) fresh |= std::isfinite(reference_interfaces_[k]);
    if (!fresh) return;
    reference_time_ = now;
    for (std::size_t k = 0; k < held_.size(); k++) {
      held_[k] = reference_interfaces_[k];
      reference_interfaces_[k] = kAbsent;
    }
  }

  // Read the motors, close the loops and tell the joints' motion.
  myrobot_status measure()
  {
    for (std::size_t k = 0; k < kMotors; k++) {
      position_[k] = state_interfaces_[2 * k].get_optional().value_or(kAbsent);
      velocity_[k] = state_interfaces_[2 * k + 1].get_optional().value_or(kAbsent);
    }
    const myrobot_status status =
        joints_from_motors(&workspace_, position_.data(), velocity_.data(), last_.data(),
                           joint_position_.data(), joint_velocity_.data(), joint_effort_.data());
    for (std::size_t k = 0; k < kJoints; k++) {
      const bool known = status == MYROBOT_OK;
      state_interfaces_values_[3 * k] = known ? joint_position_[k] : kAbsent;
      state_interfaces_values_[3 * k + 1] = known ? joint_velocity_[k] : kAbsent;
      state_interfaces_values_[3 * k + 2] = known ? joint_effort_[k] : kAbsent;
    }
    return status;
  }

  // Efforts, and positions and velocities of the motors, for the references; the status.
  double command()
  {
    std::array<double, kJoints> position, velocity, acceleration, effort, stiffness;
    for (std::size_t k = 0; k < kJoints; k++) {
      const double *reference = &held_[k * kReferences.size()];
      const bool placed = std::isfinite(reference[kPosition]);
      position[k] = placed ? reference[kPosition] : joint_position_[k];
      stiffness[k] = placed ? parameters_.stiffness[k] : 0.0;
      velocity[k] = present(reference[kVelocity]);
      acceleration[k] = present(reference[kAcceleration]);
      effort[k] = present(reference[kEffort]);
    }
    std::array<double, kMotors> feedforward;
    const myrobot_status status = feedforward_efforts(acceleration.data(), feedforward.data());
    if (status != MYROBOT_OK) return status;
    return myrobot_motor_command(&workspace_, position.data(), velocity.data(), effort.data(),
                                 stiffness.data(), parameters_.damping.data(), velocity_.data(),
                                 feedforward.data(), nullptr, motor_position_.data(),
                                 motor_velocity_.data(), efforts_.data());
  }

  // The chosen terms of the dynamics, at the measured motion.
  myrobot_status feedforward_efforts(const double *joint_acceleration, double *efforts)
  {
    const auto &terms = parameters_.feedforward;
    const std::array<double, kMotors> still{};
    std::array<double, MYROBOT_NY> acceleration{}, none{};
    std::array<double, kMotors> weight{};
    myrobot_status status = MYROBOT_OK;
    if (terms.inertial) {
      // At the measured position, wherever the commanded one was closed last.
      std::array<double, MYROBOT_NQ> commanded;
      std::copy_n(workspace_.command_q, commanded.size(), commanded.begin());
      std::copy_n(workspace_.q, commanded.size(), workspace_.command_q);
      status = independent_acceleration(&workspace_, joint_position_.data(), joint_velocity_.data(),
                                        joint_acceleration, acceleration.data());
      std::copy_n(commanded.begin(), commanded.size(), workspace_.command_q);
    }
    if (status == MYROBOT_OK) {
      status = myrobot_feedforward(&workspace_, position_.data(),
                                   terms.coriolis ? velocity_.data() : still.data(),
                                   acceleration.data(), nullptr, efforts);
    }
    if (status == MYROBOT_OK && !terms.gravity) {
      status = myrobot_feedforward(&workspace_, position_.data(), still.data(), none.data(),
                                   nullptr, weight.data());
      for (std::size_t k = 0; k < kMotors; k++) efforts[k] -= weight[k];
    }
    return status;
  }

  static double present(double reference)
  {
    return std::isfinite(reference) ? reference : 0.0;
  }

  void write_commands()
  {
    const std::size_t count = parameters_.command_interfaces.size();
    for (std::size_t k = 0; k < kMotors; k++) {
      for (std::size_t i = 0; i < count; i++) {
        const char kind = parameters_.command_interfaces[i][0];
        const double value = kind == 'e'   ? efforts_[k]
                             : kind == 'v' ? motor_velocity_[k]
                                           : motor_position_[k];
        static_cast<void>(command_interfaces_[k * count + i].set_value(value));
      }
    }
  }

  // No effort and no velocity; a commanded position stays.
  void write_zeros()
  {
    const std::size_t count = parameters_.command_interfaces.size();
    for (std::size_t k = 0; k < command_interfaces_.size(); k++) {
      if (parameters_.command_interfaces[k % count][0] == 'p') continue;
      static_cast<void>(command_interfaces_[k].set_value(0.0));
    }
  }

  std::shared_ptr<myrobot_controller::ParamListener> listener_;
  myrobot_controller::Params parameters_;
  myrobot_workspace workspace_;
  myrobot_gate gate_{};
  myrobot_gate_rules rules_{};
  std::int64_t timeout_ = 0, reference_time_ = 0;
  std::array<double, kMotors> limits_{}, last_{};
  std::array<double, kMotors> position_{}, velocity_{};
  std::array<double, kMotors> motor_position_{}, motor_velocity_{}, efforts_{};
  std::array<double, kJoints> joint_position_{}, joint_velocity_{}, joint_effort_{};
  std::array<double, kJoints * kReferences.size()> held_{};
};
} // namespace myrobot_control

PLUGINLIB_EXPORT_CLASS(myrobot_control::Controller,
                       controller_interface::ChainableControllerInterface)
