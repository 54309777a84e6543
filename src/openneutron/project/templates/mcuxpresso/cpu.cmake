# {{ title }} with the open runtime, for {{ board.mcuxpresso }}; made by OpenNeutron {{ version }}.
cmake_minimum_required(VERSION 3.22.0)
include(${SdkRootDirPath}/cmake/extension/mcux.cmake)
# Pins, clocks and console are those of the SDK's hello_world.
project({{ name }}_cpu LANGUAGES C CXX ASM PROJECT_BOARD_PORT_PATH ${board_root}/${board}/demo_apps/hello_world)
get_filename_component(top ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)

include(${SdkRootDirPath}/CMakeLists.txt)

# The model's kernel selection takes the place of the table with all kernels.
file(GLOB_RECURSE runtime_sources RELATIVE ${top} ${top}/runtime/firmware/*.c)
list(FILTER runtime_sources EXCLUDE REGEX "/kernel_table\\.c$")
mcux_add_source(
  BASE_PATH ${top}
  SOURCES ${runtime_sources} model/model.c model/samples.c model/kernel_selection.c application/self_test.c application/console.c
  cpu/main.c
)
mcux_add_include(
  BASE_PATH ${top}
  INCLUDES application model runtime/include runtime/firmware runtime/firmware/machine
)
mcux_add_macro(
  CC "-DNEUTRON_NO_HEAP -DNEUTRON_NO_THREADS"
)
mcux_add_armgcc_configuration(LD "-Xlinker --defsym=__stack_size__={{ stack_bytes }}")

mcux_convert_binary(BINARY ${APPLICATION_BINARY_DIR}/${MCUX_SDK_PROJECT_NAME}.bin)
