# {{ title }} with NXP's Neutron library, for {{ board.mcuxpresso }}; made by OpenNeutron {{ version }}.
cmake_minimum_required(VERSION 3.22.0)
include(${SdkRootDirPath}/cmake/extension/mcux.cmake)
# Pins, clocks, the NPU's power and memory protection are those of the SDK's {{ example }}.
project({{ name }}_npu LANGUAGES C CXX ASM PROJECT_BOARD_PORT_PATH ${board_root}/${board}/eiq_examples/{{ example }})
get_filename_component(top ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)

mcux_add_include(
  BASE_PATH ${SdkRootDirPath}
  INCLUDES examples/eiq_examples/common
)

include(${SdkRootDirPath}/CMakeLists.txt)

mcux_add_source(
  BASE_PATH ${top}
  SOURCES {{ npu_sources }} npu/npu_compare.c npu/npu_model.c npu/npu_samples.c npu/main.c application/console.c
)
mcux_add_include(
  BASE_PATH ${top}
  INCLUDES application npu
)
{% if board.npu_model %}
# That example's linker script has the regions m_model and m_ncache.
mcux_remove_armgcc_linker_script(
  TARGETS flash_debug flash_release
  BASE_PATH ${SdkRootDirPath}
  LINKER ${device_root}/${soc_portfolio}/${soc_series}/${device}/gcc/${CONFIG_MCUX_TOOLCHAIN_LINKER_DEVICE_PREFIX}_flash.ld
)
mcux_add_armgcc_linker_script(
  TARGETS flash_debug flash_release
  BASE_PATH ${SdkRootDirPath}
  LINKER ${board_root}/{{ script_board }}/eiq_examples/{{ example }}/cm33_core0/gcc/MIMXRT798Sxxxx_cm33_core0_flash.ld
)
{% endif %}
mcux_add_macro(
  CC "-DSDK_DEBUGCONSOLE_UART -DARM_MATH_CM33 -D__FPU_PRESENT=1{% if board.npu_model %}{% endif %}"
  CX "-DSDK_DEBUGCONSOLE_UART -DARM_MATH_CM33 -D__FPU_PRESENT=1{% if board.npu_model %}{% endif %}"
)
mcux_add_armgcc_configuration(LD "-Xlinker --defsym=__stack_size__=0x2000{% if board.npu_model %} -Xlinker --defsym=__heap_size__=0x8000{% endif %}")

mcux_convert_binary(BINARY ${APPLICATION_BINARY_DIR}/${MCUX_SDK_PROJECT_NAME}.bin)
