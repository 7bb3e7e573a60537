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
# Calls of 0.1 us pass through several files: inlined across these, they take up to 15 % less.
include(CheckIPOSupported)
check_ipo_supported(RESULT rbda_ros_ipo LANGUAGES C)
set_target_properties(rbda_ros_engine PROPERTIES INTERPROCEDURAL_OPTIMIZATION ${rbda_ros_ipo})
install(TARGETS rbda_ros_engine DESTINATION "${PYTHON_INSTALL_DIR}/${PROJECT_NAME}/engine")
