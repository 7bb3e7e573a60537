# rbda_ros._native.calls. Answers must be the same with it and without, on every processor: no
# product is fused with a sum.
find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module NumPy)
set(native "${CMAKE_CURRENT_SOURCE_DIR}/rbda_ros/_native")
Python3_add_library(rbda_ros_calls MODULE WITH_SOABI
  "${native}/answering.c" "${native}/batch.c" "${native}/blocks.c" "${native}/branches.c" "${native}/calls.c" "${native}/checked_call.c" "${native}/closing.c"
  "${native}/contacts.c" "${native}/kernel.c" "${native}/method.c" "${native}/motion.c" "${native}/reader.c" "${native}/rows.c"
  "${native}/shares.c" "${native}/solving.c" "${native}/spare.c" "${native}/wrenches.c")
set_target_properties(rbda_ros_calls PROPERTIES
  OUTPUT_NAME calls C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_link_libraries(rbda_ros_calls PRIVATE Python3::NumPy Threads::Threads m)
target_compile_options(rbda_ros_calls PRIVATE
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
  -ffp-contract=off $<$<NOT:$<CONFIG:Debug>>:-O3>)
# rbda_ros._native.cones
Python3_add_library(rbda_ros_cones MODULE WITH_SOABI "${native}/cones.c")
set_target_properties(rbda_ros_cones PROPERTIES
  OUTPUT_NAME cones C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_link_libraries(rbda_ros_cones PRIVATE Python3::NumPy m)
target_compile_options(rbda_ros_cones PRIVATE -Wall -Wextra -Wno-missing-field-initializers
  -ffp-contract=off $<$<NOT:$<CONFIG:Debug>>:-O3>)
install(TARGETS rbda_ros_calls rbda_ros_cones DESTINATION "${PYTHON_INSTALL_DIR}/${PROJECT_NAME}/_native")
