# Makes the ROS wheels of PyPI usable from CMake. Pass it as CMAKE_PROJECT_INCLUDE; a real ROS
# installation needs none of it. Installed files are not touched.

function(mend_ros_wheels)
  find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module NumPy)
  set(headers ${Python3_INCLUDE_DIRS} ${Python3_NumPy_INCLUDE_DIRS})

  # The targets that the wheels export name the Python and numpy headers of the machine where the
  # wheels were built (/opt/python/...), and CMake refuses include directories that do not exist.
  # The true ones stand in for them.
  get_directory_property(targets IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(folders MATCHES "/opt/python/")
      list(FILTER folders EXCLUDE REGEX "^/opt/python/")
      set_target_properties(${target} PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${folders};${headers}")
    endif()
  endforeach()

  # The generator makes our own export name these headers too. CMake refuses that where the
  # environment lies inside the source folder, as .venv does, so they stay private to this build.
  set(target ${PROJECT_NAME}__rosidl_generator_py)
  get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  list(REMOVE_ITEM folders ${headers})
  set_target_properties(${target} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${folders};$<BUILD_INTERFACE:${headers}>")
endfunction()

# At the end of CMakeLists.txt, when every package has been found.
cmake_language(DEFER CALL mend_ros_wheels)
