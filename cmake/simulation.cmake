# rbda_ros.simulation.stepper: integrators over compiled kernels. It needs no ROS.
find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module)
Python3_add_library(rbda_ros_stepper MODULE WITH_SOABI
  "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/simulation/stepper.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/simulation/ground_contacts.c"
  "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/engine/cones.c")
set_target_properties(rbda_ros_stepper PROPERTIES
  OUTPUT_NAME stepper C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_link_libraries(rbda_ros_stepper PRIVATE Threads::Threads m)
target_compile_options(rbda_ros_stepper PRIVATE
  -Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off $<$<NOT:$<CONFIG:Debug>>:-O3>)
install(TARGETS rbda_ros_stepper DESTINATION "${PYTHON_INSTALL_DIR}/${PROJECT_NAME}/simulation")
