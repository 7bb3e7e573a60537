"""The build file and the example beside exported C."""

from __future__ import annotations

from rbda_ros.exports.c_builder import Builder

_CMAKE = """\
# Written by rbda_ros export-c. Add it with add_subdirectory, and link to {name}.
cmake_minimum_required(VERSION 3.10)
project({name} LANGUAGES C)
include(CheckCCompilerFlag)
add_library({name} STATIC {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES C_STANDARD 99 POSITION_INDEPENDENT_CODE ON)
target_compile_options({name} PRIVATE -O2 -ffp-contract=off)
# Every x86 processor since 2013 fuses where the source says fma(); without it that is a call.
option({upper}_FMA "Use the processor's fused multiply-add" ON)
check_c_compiler_flag(-mfma {upper}_HAS_FMA)
if({upper}_FMA AND {upper}_HAS_FMA)
  target_compile_options({name} PRIVATE -mfma)
endif()
target_link_libraries({name} PUBLIC m)

add_executable({name}_example EXCLUDE_FROM_ALL example.c)
target_link_libraries({name}_example PRIVATE {name})
"""


def cmake_text(name: str) -> str:
    """A CMakeLists.txt of the library and its example."""
    return _CMAKE.format(name=name, upper=name.upper())


def example_text(builder: Builder) -> str:
    """A main program that calls the library as a controller would."""
    name, upper, robot = builder.name, builder.upper, builder.robot
    lines = [
        "/* How to call the library: one workspace, and a status that is looked at. */",
        f'#include "{name}.h"',
        "",
        "#include <stdio.h>",
        "",
        "int main(void)",
        "{",
        f"  static {name}_workspace w;",
        f"  {name}_init(&w);",
    ]
    if "feedforward" in builder.functions:
        assert builder.measured is not None
        base = [
            f"  const {name}_real base[7] = {{0, 0, 0, 0, 0, 0, 1}};",
            f"  const {name}_real still[6] = {{0}};",
        ]
        has_base = robot.coordinates.base_nq > 0
        lines += [
            *(base if has_base else []),
            f"  {name}_real position[{upper}_MEASURED + 1];",
            f"  {name}_real velocity[{upper}_MEASURED + 1] = {{0}};",
            f"  {name}_real acceleration[{upper}_NY + 1] = {{0}}, efforts[{upper}_MOTORS + 1];",
            *(
                f"  position[{k}] = {name}_assembly[{entry}]; /* {_plain(joint)} */"
                for k, (joint, entry) in enumerate(
                    zip(builder.measured.names, builder.measured.entries, strict=True)
                )
            ),
            f"  const {name}_status status = {name}_feedforward("
            f"&w, {'base, still, still, ' if has_base else ''}position, velocity, acceleration,",
            f"      {name}_effort_limits, efforts);",
            f"  if (status != {upper}_OK) {{",
            f'    fprintf(stderr, "%s\\n", {name}_status_texts[status]);',
            "    return 1;",
            "  }",
            f"  for (int k = 0; k < {upper}_MOTORS; k++)",
            f'    printf("%s: %g\\n", {name}_motor_names[k], (double)efforts[k]);',
        ]
    else:
        lines += [
            f"  const {name}_status status = {name}_start_from(&w, {name}_assembly);",
            f'  printf("%s\\n", {name}_status_texts[status]);',
        ]
    return "\n".join([*lines, "  return 0;", "}", ""])


def _plain(text: str) -> str:
    return "".join(each if each.isalnum() or each in "_-. " else "_" for each in text)
