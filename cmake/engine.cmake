# rbda_ros.engine.core. Results must be the same on every processor: no product is fused with a sum.
find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module NumPy)
set(engine "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/engine")
file(GLOB engine_sources CONFIGURE_DEPENDS "${engine}/*.c")
Python3_add_library(rbda_ros_engine MODULE WITH_SOABI ${engine_sources})
set_target_properties(rbda_ros_engine PROPERTIES
  OUTPUT_NAME core C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_link_libraries(rbda_ros_engine PRIVATE Python3::NumPy Threads::Threads m)
target_compile_options(rbda_ros_engine PRIVATE
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
  -ffp-contract=off $<$<NOT:$<CONFIG:Debug>>:-O3>)
install(TARGETS rbda_ros_engine DESTINATION "${PYTHON_INSTALL_DIR}/${PROJECT_NAME}/engine")

# rbda_ros._native.xla_call: what compiled JAX code calls. JAX is not needed to build it.
Python3_add_library(rbda_ros_xla_call MODULE WITH_SOABI
  "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/_native/xla_call.c")
set_target_properties(rbda_ros_xla_call PROPERTIES
  OUTPUT_NAME xla_call C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_compile_options(rbda_ros_xla_call PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
install(TARGETS rbda_ros_xla_call DESTINATION "${PYTHON_INSTALL_DIR}/${PROJECT_NAME}/_native")

# rbda_ros._native.cones: impulses of contacts with friction.
Python3_add_library(rbda_ros_cones MODULE WITH_SOABI
  "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/_native/cones.c")
set_target_properties(rbda_ros_cones PROPERTIES
  OUTPUT_NAME cones C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_link_libraries(rbda_ros_cones PRIVATE Python3::NumPy m)
target_compile_options(rbda_ros_cones PRIVATE -Wall -Wextra -Wno-missing-field-initializers
  -ffp-contract=off $<$<NOT:$<CONFIG:Debug>>:-O3>)
install(TARGETS rbda_ros_cones DESTINATION "${PYTHON_INSTALL_DIR}/${PROJECT_NAME}/_native")
