# rbda_ros.control.native: the stream's state machine. It needs no ROS.
find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module)
file(GLOB control_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/control/*.c")
Python3_add_library(rbda_ros_control MODULE WITH_SOABI
  ${control_sources} "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/engine/closing.c")
set_target_properties(rbda_ros_control PROPERTIES
  OUTPUT_NAME native C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_link_libraries(rbda_ros_control PRIVATE Threads::Threads m)
target_compile_options(rbda_ros_control PRIVATE
  -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off $<$<NOT:$<CONFIG:Debug>>:-O2>)
install(TARGETS rbda_ros_control DESTINATION "${PYTHON_INSTALL_DIR}/${PROJECT_NAME}/control")
