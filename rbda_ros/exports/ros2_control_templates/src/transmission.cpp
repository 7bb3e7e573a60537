// A transmission through the linkage: position, velocity and effort of motors and joints.
//
// Efforts and velocities are turned by the linkage's own velocity map, so power is kept. The
// functions allocate nothing, take no lock and do not throw once configure() has returned.
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "hardware_interface/hardware_info.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/logging.hpp"
#include "transmission_interface/transmission.hpp"
#include "transmission_interface/transmission_loader.hpp"

extern "C" {
#include "myrobot.h"
}
#include "linkage.hpp"

namespace myrobot_control
{
namespace
{
constexpr std::size_t kMotors = MYROBOT_MOTORS;
constexpr std::size_t kJoints = MYROBOT_JOINTS;
constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// Values of one interface, in the order of the exported code.
template <class HandleType, std::size_t Count> class Values
{
public:
  void find(const std::vector<HandleType> &handles, const std::array<std::string, Count> &names,
            const std::string &interface)
  {
    handles_.clear();
    for (const auto &name : names) {
      for (const auto &handle : handles) {
        if (handle.get_prefix_name() == name && handle.get_interface_name() == interface) {
          handles_.push_back(handle);
          break;
        }
      }
    }
    if (!handles_.empty() && handles_.size() != Count) {
      throw std::runtime_error("some, but not all, have the interface " + interface);
    }
  }
  bool present() const
  {
    return !handles_.empty();
  }
  // Null where there is no such interface, as the exported functions want it.
  const double *read()
  {
    for (std::size_t k = 0; k < handles_.size(); k++) numbers_[k] = handles_[k].get_value();
    return present() ? numbers_.data() : nullptr;
  }
  double *room()
  {
    return present() ? numbers_.data() : nullptr;
  }
  void write()
  {
    for (std::size_t k = 0; k < handles_.size(); k++) handles_[k].set_value(numbers_[k]);
  }
  void fill(double number)
  {
    for (auto &handle : handles_) handle.set_value(number);
  }

private:
  std::vector<HandleType> handles_;
  std::array<double, Count> numbers_{};
};
} // namespace

class Transmission : public transmission_interface::Transmission
{
public:
  Transmission(const std::array<std::string, kMotors> &motors,
               const std::array<std::string, kJoints> &joints)
      : motors_(motors), joints_(joints)
  {
    myrobot_init(&workspace_);
  }

  void configure(const std::vector<transmission_interface::JointHandle> &joints,
                 const std::vector<transmission_interface::ActuatorHandle> &actuators) override
  {
    joint_position_.find(joints, joints_, hardware_interface::HW_IF_POSITION);
    joint_velocity_.find(joints, joints_, hardware_interface::HW_IF_VELOCITY);
    joint_effort_.find(joints, joints_, hardware_interface::HW_IF_EFFORT);
    position_.find(actuators, motors_, hardware_interface::HW_IF_POSITION);
    velocity_.find(actuators, motors_, hardware_interface::HW_IF_VELOCITY);
    effort_.find(actuators, motors_, hardware_interface::HW_IF_EFFORT);
    measured_.find(actuators, motors_, "measured_position");
    if (!measured_.present() && !joint_position_.present() && !position_.present()) {
      throw std::runtime_error("a linkage needs positions: of the actuators, of the joints, or"
                               " the actuators' measured_position");
    }
  }

  std::vector<std::string> get_supported_actuator_interfaces() const override
  {
    return {hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
            hardware_interface::HW_IF_EFFORT, "measured_position"};
  }

  // A state that the linkage cannot be in leaves the joints without numbers (NaN).
  void actuator_to_joint() override
  {
    if (!position_.present()) return;
    const myrobot_status status =
        joints_from_motors(&workspace_, position_.read(), velocity_.read(), effort_.read(),
                           joint_position_.room(), joint_velocity_.room(), joint_effort_.room());
    if (status == MYROBOT_OK) {
      joint_position_.write();
      joint_velocity_.write();
      joint_effort_.write();
    } else {
      joint_position_.fill(kAbsent);
      joint_velocity_.fill(kAbsent);
      joint_effort_.fill(kAbsent);
    }
  }

  // Efforts and velocities are turned at measured_position where the actuators have it, else at
  // the commanded position. What cannot be turned becomes zero, and positions stay as they are.
  void joint_to_actuator() override
  {
    bool turned = true;
    if (joint_position_.present() && position_.present()) {
      turned = myrobot_joints_to_motors(&workspace_, joint_position_.read(), nullptr, nullptr,
                                        nullptr, position_.room(), nullptr, nullptr, nullptr)
               == MYROBOT_OK;
      if (turned) position_.write();
    }
    if (!velocity_.present() && !effort_.present()) return;
    const double *where = joint_position_.read();
    std::array<double, kJoints> measured;
    if (measured_.present()) {
      turned &= joints_from_motors(&workspace_, measured_.read(), nullptr, nullptr, measured.data(),
                                   nullptr, nullptr)
                == MYROBOT_OK;
      where = measured.data();
    }
    turned = turned && where != nullptr
             && myrobot_joints_to_motors(&workspace_, where, joint_velocity_.read(), nullptr,
                                         joint_effort_.read(), nullptr, velocity_.room(), nullptr,
                                         effort_.room())
                    == MYROBOT_OK;
    if (turned) {
      velocity_.write();
      effort_.write();
    } else {
      velocity_.fill(0.0);
      effort_.fill(0.0);
    }
  }

  std::size_t num_actuators() const override
  {
    return kMotors;
  }
  std::size_t num_joints() const override
  {
    return kJoints;
  }

private:
  std::array<std::string, kMotors> motors_;
  std::array<std::string, kJoints> joints_;
  Values<transmission_interface::JointHandle, kJoints> joint_position_, joint_velocity_,
      joint_effort_;
  Values<transmission_interface::ActuatorHandle, kMotors> position_, velocity_, effort_, measured_;
  myrobot_workspace workspace_;
};

// Reads the tag: `role` is the joint's name in the exported code, and may be left out where the
// name is the same.
class TransmissionLoader : public transmission_interface::TransmissionLoader
{
public:
  std::shared_ptr<transmission_interface::Transmission>
  load(const hardware_interface::TransmissionInfo &info) override
  {
    try {
      return std::make_shared<Transmission>(names<kMotors>(info.actuators, myrobot_motor_names),
                                            names<kJoints>(info.joints, myrobot_joint_names));
    } catch (const std::exception &error) {
      RCLCPP_ERROR(rclcpp::get_logger("myrobot_control"), "transmission %s: %s", info.name.c_str(),
                   error.what());
      return nullptr;
    }
  }

private:
  template <std::size_t Count, class Info>
  static std::array<std::string, Count> names(const std::vector<Info> &given,
                                              const char *const *exported)
  {
    std::array<std::string, Count> found;
    for (std::size_t k = 0; k < Count; k++) {
      for (const auto &each : given) {
        if (each.role == exported[k] || (each.role.empty() && each.name == exported[k])) {
          found[k] = each.name;
        }
      }
      if (found[k].empty()) {
        throw std::runtime_error(std::string("nothing has the name or the role ") + exported[k]);
      }
    }
    return found;
  }
};
} // namespace myrobot_control

PLUGINLIB_EXPORT_CLASS(myrobot_control::TransmissionLoader,
                       transmission_interface::TransmissionLoader)
